// Each check with a small kernel that it must flag, and a twin that it must not.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CaseSetup two_warps() {
  CaseSetup setup;
  setup.threads = 64;
  setup.dynamic_shared_bytes = 256;
  return setup;
}

std::vector<FindingKind> kinds(const std::string& body, const CaseSetup& setup = two_warps()) {
  return kinds_of(run_case(body, setup));
}

// %r0: this thread's word of shared memory; %r1: that of the thread 32 on, around; %r2: of the lane beside,
// around
const std::string words =
    "mov.u32 %r9, dynamic; mad.lo.u32 %r0, %r39, 4, %r9; xor.b32 %r1, %r39, 32; mad.lo.u32 %r1, %r1, 4, %r9;"
    "xor.b32 %r2, %r39, 1; mad.lo.u32 %r2, %r2, 4, %r9;";

TEST(Memcheck, GlobalBounds) {
  const std::string store = "mad.wide.u32 %d0, %r39, 4, %d9;";
  EXPECT_THAT(kinds(store + "st.global.u32 [%d0], 1;"), IsEmpty());
  EXPECT_THAT(kinds(store + "st.global.u32 [%d0+4], 1;"), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(kinds(store + "ld.global.u32 %r0, [%d0+-4];"), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(kinds("ld.global.u32 %r0, [16];"), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(kinds("ld.global.v2.u32 {%r0, %r1}, [%d8+252];"), ElementsAre(FindingKind::out_of_bounds));
}

TEST(Memcheck, TellsWhere) {
  const Report report = run_case(
      "setp.eq.u32 %p0, %r39, 37;\nadd.u64 %d1, %d8, 256;\n.loc 1 12 3\n@%p0 ld.global.u32 %r0, [%d1];",
      two_warps());
  ASSERT_EQ(report.findings.size(), 1U);
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.kernel, "test");
  EXPECT_EQ(finding.warp, 1);
  EXPECT_EQ(finding.lane, 5);
  EXPECT_EQ(finding.line, 14);
  EXPECT_EQ(finding.place.line, 12);
  EXPECT_NE(finding.address, 0U);
  EXPECT_THAT(to_string(finding), HasSubstr("ld.global.u32 %r0, [%d1]"));
}

TEST(Memcheck, ReadOnlyMemory) {
  EXPECT_THAT(kinds("st.global.u32 [%d8], 1;"), ElementsAre(FindingKind::read_only_write));
  EXPECT_THAT(kinds("red.global.add.u32 [%d8], 1;"), ElementsAre(FindingKind::read_only_write));
}

TEST(Memcheck, Alignment) {
  EXPECT_THAT(kinds("ld.global.u32 %r0, [%d8+2];"), ElementsAre(FindingKind::misaligned));
  EXPECT_THAT(kinds("ld.global.u16 %r0, [%d8+2];"), IsEmpty());
  EXPECT_THAT(kinds("mov.u32 %r0, dynamic; st.shared.v4.u32 [%r0+8], {%r0, %r0, %r0, %r0};"),
              ElementsAre(FindingKind::misaligned));
}

TEST(Memcheck, SharedAndLocalBounds) {
  EXPECT_THAT(kinds(words + "st.shared.u32 [%r0], 1;"), IsEmpty());
  EXPECT_THAT(kinds(words + "st.shared.u32 [%r0+4], 1;"), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(kinds("mov.u32 %r0, 0; st.shared.u32 [%r0], 1;"), ElementsAre(FindingKind::out_of_bounds));
  const std::string frame = ".local .align 16 .b8 frame[16]; mov.u64 %d0, frame;";
  EXPECT_THAT(kinds(frame + "st.local.u32 [%d0+12], 1;"), IsEmpty());
  EXPECT_THAT(kinds(frame + "st.local.u32 [%d0+16], 1;"), ElementsAre(FindingKind::out_of_bounds));
}

TEST(Racecheck, WarpsNeedABarrier) {
  const std::string read = "ld.shared.u32 %r3, [%r1];";
  const std::string write = "st.shared.u32 [%r0], %r39;";
  EXPECT_THAT(kinds(words + write + "bar.sync 0;" + read), IsEmpty());
  EXPECT_THAT(kinds(words + write + read), Contains(FindingKind::race));
  // write after read
  EXPECT_THAT(kinds(words + write + "bar.sync 0;" + read + write), ElementsAre(FindingKind::race));
  EXPECT_THAT(kinds(words + write + "bar.sync 0;" + read + "bar.sync 0;" + write), IsEmpty());
  // write after write
  EXPECT_THAT(kinds(words + write + "st.shared.u32 [%r1], 5;"), ElementsAre(FindingKind::race));
  EXPECT_THAT(kinds(words + write + "bar.sync 0; st.shared.u32 [%r1], 5;"), IsEmpty());
}

TEST(Racecheck, EveryScheduleFindsIt) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    CaseSetup setup = two_warps();
    setup.options.schedule_seed = seed;
    EXPECT_THAT(
        kinds(words + "st.shared.u32 [%r0], 1; bar.sync 0; ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r0], 2;",
              setup),
        ElementsAre(FindingKind::race));
  }
}

TEST(Racecheck, LanesNeedSyncwarp) {
  const std::string write = "st.shared.u32 [%r0], %r39;";
  const std::string read = "ld.shared.u32 %r3, [%r2];";
  EXPECT_THAT(kinds(words + write + read), ElementsAre(FindingKind::race));
  EXPECT_THAT(kinds(words + write + "bar.warp.sync -1;" + read), IsEmpty());
  EXPECT_THAT(kinds(words + write + "ld.shared.u32 %r3, [%r0];"), IsEmpty());
  EXPECT_THAT(kinds(words + write + "bar.warp.sync -1;" + read + write), ElementsAre(FindingKind::race));
  // two lanes write one word in one instruction
  EXPECT_THAT(kinds(words + "bar.sync 0; setp.lt.u32 %p0, %r39, 2; @%p0 st.shared.u32 [%r9], %r39;"),
              ElementsAre(FindingKind::race));
}

TEST(Racecheck, ManyReadersThenOneOfThemWrites) {
  const std::string all_read =
      "setp.eq.u32 %p0, %r39, 0; @%p0 st.shared.u32 [%r9], 1; bar.sync 0;"
      "ld.shared.u32 %r3, [%r9]; setp.eq.u32 %p1, %r39, 31;";
  CaseSetup one_warp = two_warps();
  one_warp.threads = 32;
  EXPECT_THAT(kinds(words + all_read + "@%p1 st.shared.u32 [%r9], 2;", one_warp),
              ElementsAre(FindingKind::race));
  EXPECT_THAT(kinds(words + all_read + "bar.warp.sync -1; @%p1 st.shared.u32 [%r9], 2;", one_warp),
              IsEmpty());
}

TEST(Racecheck, WhatFollowsAnArrivalIsNotOrderedByIt) {
  const std::string produce = words + "setp.lt.u32 %p0, %r39, 32; @!%p0 bra CONSUME; st.shared.u32 [%r0], 1;";
  const std::string consume = "ret; CONSUME: bar.sync 1, 64; ld.shared.u32 %r3, [%r1];";
  EXPECT_THAT(kinds(produce + "bar.arrive 1, 64;" + consume), IsEmpty());
  EXPECT_THAT(kinds(produce + "bar.arrive 1, 64; st.shared.u32 [%r0], 2;" + consume),
              ElementsAre(FindingKind::race));
}

TEST(Racecheck, NeighboursWithinAWordAreNoRace) {
  const std::string halves = "mov.u32 %r9, dynamic; mad.lo.u32 %r0, %r39, 2, %r9; mov.u32 %r1, 7;";
  EXPECT_THAT(kinds(halves + "cvt.u16.u32 %s0, %r1; st.shared.u16 [%r0], %s0;"), IsEmpty());
}

TEST(Racecheck, ANamedBarrierOrdersItsWarps) {
  CaseSetup setup = two_warps();
  setup.threads = 96;
  const std::string body = words +
                           "setp.ge.u32 %p0, %r39, 64; @%p0 ret; st.shared.u32 [%r0], %r39; bar.sync 3, 64;"
                           "ld.shared.u32 %r3, [%r1];";
  EXPECT_THAT(kinds(body, setup), IsEmpty());
}

TEST(Racecheck, BlocksAreNeverInOrder) {
  CaseSetup setup;
  setup.grid = {2, 1, 1};
  const std::string own =
      "mov.u32 %r0, %ctaid.x; mad.lo.u32 %r1, %r0, 32, %r39; mad.wide.u32 %d0, %r1, 4, %d9;";
  EXPECT_THAT(kinds(own + "st.global.u32 [%d0], 1;", setup), IsEmpty());
  EXPECT_THAT(kinds("mad.wide.u32 %d0, %r39, 4, %d9; st.global.u32 [%d0], 1;", setup),
              ElementsAre(FindingKind::race));
  // block 0 reads what block 1 writes later, and the other way round
  for (const std::string reader : {"0", "1"}) {
    const std::string word = reader == "0" ? "128" : "0";
    EXPECT_THAT(kinds(own + "setp.eq.u32 %p0, %r0, " + reader + "; setp.eq.and.u32 %p1, %r39, 0, %p0;" +
                          "@%p1 ld.global.u32 %r2, [%d9+" + word + "]; @!%p0 st.global.u32 [%d0], 1;",
                      setup),
                ElementsAre(FindingKind::race));
  }
  EXPECT_THAT(kinds("red.global.add.u32 [%d9], 1;", setup), IsEmpty());
}

TEST(Racecheck, WarpsOfABlockInGlobalMemory) {
  const std::string places =
      "mad.wide.u32 %d0, %r39, 4, %d9; xor.b32 %r1, %r39, 32; mad.wide.u32 %d1, %r1, 4, %d9; st.global.u32 "
      "[%d0], 1;";
  EXPECT_THAT(kinds(places + "bar.sync 0; ld.global.u32 %r2, [%d1];"), IsEmpty());
  EXPECT_THAT(kinds(places + "ld.global.u32 %r2, [%d1];"), Contains(FindingKind::race));
  EXPECT_THAT(kinds(places + "bar.sync 0; ld.global.u32 %r2, [%d1]; st.global.u32 [%d0], 2;"),
              ElementsAre(FindingKind::race));
}

TEST(Racecheck, ABarrierEndsTheReadsOfManyWarps) {
  const std::string read = "ld.global.u32 %r0, [%d9]; setp.eq.u32 %p0, %r39, 0;";
  EXPECT_THAT(kinds(read + "bar.sync 0; @%p0 st.global.u32 [%d9], 1;"), IsEmpty());
  EXPECT_THAT(kinds(read + "bar.warp.sync -1; setp.eq.u32 %p0, %r39, 32; @%p0 st.global.u32 [%d9], 1;"),
              ElementsAre(FindingKind::race));
}

TEST(Initcheck, SharedMemory) {
  EXPECT_THAT(kinds(words + "ld.shared.u32 %r3, [%r0];"), ElementsAre(FindingKind::uninitialised_read));
  EXPECT_THAT(kinds(words + "st.shared.u32 [%r0], 1; ld.shared.u32 %r3, [%r0];"), IsEmpty());
}

TEST(Initcheck, GlobalMemory) {
  Module module =
      Module::load(module_text(kernel_text("ld.global.u32 %r0, [%d8]; st.global.u32 [%d9], %r0;")));
  std::vector<float> fresh(4);
  std::vector<std::uint32_t> out(1);
  DeviceMemory memory;
  memory.add_uninitialised(fresh.data(), 16, "fresh");
  memory.add(out.data(), 4, "out");
  const std::uint64_t parameters[2] = {reinterpret_cast<std::uintptr_t>(fresh.data()),
                                       reinterpret_cast<std::uintptr_t>(out.data())};
  const Launch launch{module.kernel("test"), {1, 1, 1}, {1, 1, 1}, 0, std::as_bytes(std::span{parameters})};
  EXPECT_THAT(kinds_of(run(launch, module, memory)), ElementsAre(FindingKind::uninitialised_read));
  EXPECT_EQ(out[0], 0xffffffffU);  // NaN
  memory.mark_written(fresh.data(), 4);
  EXPECT_THAT(kinds_of(run(launch, module, memory)), IsEmpty());
}

TEST(Synccheck, DivergentBarrier) {
  EXPECT_THAT(kinds("setp.lt.u32 %p0, %r39, 16; @%p0 bra A; bar.sync 0; bra B; A: bar.sync 0; B:"),
              Contains(FindingKind::divergence));
  EXPECT_THAT(kinds("setp.lt.u32 %p0, %r39, 16; @%p0 bra A; mov.u32 %r0, 1; A: bar.sync 0;"), IsEmpty());
}

TEST(Synccheck, ShuffleWithoutItsMembers) {
  const std::string half = "setp.lt.u32 %p0, %r39, 16; mov.u32 %r0, 1;";
  EXPECT_THAT(kinds(half + "@%p0 shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; bar.sync 0;"),
              Contains(FindingKind::divergence));
  CaseSetup one_warp = two_warps();
  one_warp.threads = 32;
  EXPECT_THAT(kinds(half + "@%p0 shfl.sync.idx.b32 %r1, %r0, 0, 31, 65535; bar.sync 0;", one_warp),
              IsEmpty());
  EXPECT_THAT(kinds(half + "@%p0 shfl.sync.idx.b32 %r1, %r0, 20, 31, 65535; bar.sync 0;", one_warp),
              ElementsAre(FindingKind::divergence));  // reads a lane that does not take part
}

TEST(Synccheck, MatrixInstructionsNeedTheWholeWarp) {
  const std::string mma =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6}, {%r0, %r1, "
      "%r2, %r3};";
  EXPECT_THAT(kinds(mma), IsEmpty());
  EXPECT_THAT(kinds("setp.eq.u32 %p0, %r39, 3; @%p0 ret;" + mma), ElementsAre(FindingKind::divergence));
}

TEST(Synccheck, BarrierCounts) {
  EXPECT_THAT(kinds("bar.sync 0, 48;"), Contains(FindingKind::bad_barrier));
  EXPECT_THAT(kinds("mov.u32 %r0, %warpid; mad.lo.u32 %r0, %r0, 32, 64; bar.sync 1, %r0;"),
              Contains(FindingKind::bad_barrier));
}

TEST(Deadlock, WarpsThatWaitForEver) {
  EXPECT_THAT(kinds("bar.sync 1, 96;"), ElementsAre(FindingKind::deadlock));
  EXPECT_THAT(kinds("setp.lt.u32 %p0, %r39, 32; @%p0 bra A; bar.sync 1; bra B; A: bar.sync 2; B:"),
              Contains(FindingKind::deadlock));
}

TEST(Deadlock, EndlessLoop) {
  CaseSetup setup = two_warps();
  setup.options.max_warp_instructions = 10000;
  EXPECT_THAT(kinds("AGAIN: bra AGAIN;", setup), ElementsAre(FindingKind::deadlock));
}

TEST(Findings, AreCountedOncePerLineAndLimited) {
  const Report report = run_case("ld.global.u32 %r0, [16];\nld.global.u32 %r1, [16];", two_warps());
  ASSERT_EQ(report.findings.size(), 2U);
  EXPECT_EQ(report.findings[0].occurrences, 64U);
  CaseSetup setup = two_warps();
  setup.options.max_findings = 1;
  EXPECT_EQ(run_case("ld.global.u32 %r0, [16];\nld.global.u32 %r1, [16];", setup).findings.size(), 1U);
}

TEST(Findings, ATrapIsOne) {
  EXPECT_THAT(kinds("trap;"), ElementsAre(FindingKind::trap));
}

}  // namespace
}  // namespace hcp::ptx
