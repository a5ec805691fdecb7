// Counters and footprints of kernels whose accesses are known.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;

Counters shared_stores(int stride, const std::string& type, const std::string& value) {
  CaseSetup setup;
  setup.dynamic_shared_bytes = 8192;
  return run_case("mov.u32 %r0, dynamic; mad.lo.u32 %r1, %r39, " + std::to_string(stride) +
                      ", %r0; mov.u64 %d0, 0; st.shared." + type + " [%r1], " + value + ";",
                  setup)
      .counters;
}

TEST(BankPhases, OfStridedWords) {
  // Stride in words, and how many lanes then share a bank.
  for (const auto& [words, conflicts] :
       std::vector<std::pair<int, std::uint64_t>>{{1, 1}, {2, 2}, {3, 1}, {8, 8}, {32, 32}, {33, 1}}) {
    const Counters counters = shared_stores(4 * words, "u32", "%r1");
    EXPECT_EQ(counters.shared_phases, conflicts) << words;
    EXPECT_EQ(counters.shared_extra_phases, conflicts - 1) << words;
    EXPECT_EQ(counters.shared_store_bytes, 128U);
  }
}

TEST(BankPhases, OfWiderAccesses) {
  EXPECT_EQ(shared_stores(8, "u64", "%d0").shared_phases, 2U);
  EXPECT_EQ(shared_stores(8, "u64", "%d0").shared_extra_phases, 0U);
  EXPECT_EQ(shared_stores(16, "v4.u32", "{%r1, %r1, %r1, %r1}").shared_phases, 4U);
  EXPECT_EQ(shared_stores(16, "v4.u32", "{%r1, %r1, %r1, %r1}").shared_extra_phases, 0U);
  EXPECT_EQ(shared_stores(128, "v4.u32", "{%r1, %r1, %r1, %r1}").shared_phases, 32U);
}

TEST(BankPhases, OfNarrowAccesses) {
  EXPECT_EQ(shared_stores(2, "u16", "%r1").shared_phases, 1U);
  EXPECT_EQ(shared_stores(1, "u8", "%r1").shared_phases, 1U);
  EXPECT_EQ(shared_stores(8, "u16", "%r1").shared_phases, 2U);
}

TEST(BankPhases, OneWordForAllLanesIsServedAtOnce) {
  CaseSetup setup;
  setup.dynamic_shared_bytes = 128;
  const Report report = run_case(
      "mov.u32 %r0, dynamic; setp.eq.u32 %p0, %r39, 0; @%p0 st.shared.u32 [%r0], 1; bar.sync 0; "
      "ld.shared.u32 %r1, [%r0];",
      setup);
  EXPECT_EQ(report.counters.shared_phases, 2U);
  EXPECT_EQ(report.counters.shared_extra_phases, 0U);
  EXPECT_EQ(report.counters.of(InstructionKind::barrier), 1U);
}

TEST(BankPhases, OfMatrixRows) {
  const auto extra = [](int row_stride) {
    CaseSetup setup;
    setup.dynamic_shared_bytes = 8192;
    setup.options.races = false;
    return run_case("mov.u32 %r0, dynamic; mad.lo.u32 %r1, %r39, " + std::to_string(row_stride) +
                        ", %r0; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];",
                    setup)
        .counters;
  };
  EXPECT_EQ(extra(16).shared_extra_phases, 0U);
  EXPECT_EQ(extra(16).shared_phases, 4U);
  EXPECT_EQ(extra(128).shared_extra_phases, 28U);  // the 8 rows of each matrix in one bank
  EXPECT_EQ(extra(144).shared_extra_phases, 0U);
  EXPECT_EQ(extra(16).of(InstructionKind::ldmatrix), 1U);
}

TEST(GlobalSectors, OfStridedWords) {
  const auto sectors = [](int words) {
    std::vector<std::uint32_t> in(32 * 16 + 8);
    std::vector<std::uint32_t> out(1);
    const auto begin = reinterpret_cast<std::uintptr_t>(in.data());
    const std::size_t skipped = (32 - begin % 32) % 32 / 4;
    return run_case(
               "mad.wide.u32 %d0, %r39, " + std::to_string(4 * words) + ", %d8; ld.global.u32 %r0, [%d0];",
               std::span{in}.subspan(skipped, 32 * 16), out)
        .counters.global_load_sectors;
  };
  EXPECT_EQ(sectors(0), 1U);
  EXPECT_EQ(sectors(1), 4U);
  EXPECT_EQ(sectors(2), 8U);
  EXPECT_EQ(sectors(8), 32U);
  EXPECT_EQ(sectors(16), 32U);
}

TEST(Counters, InstructionsOfWarps) {
  CaseSetup setup;
  setup.threads = 64;
  setup.grid = {3, 1, 1};
  const Counters counters = run_case("add.u32 %r0, %r39, 1;", setup).counters;
  EXPECT_EQ(counters.warp_instructions, 6U * 5U);  // three to begin, the sum, ret
  EXPECT_EQ(counters.of(InstructionKind::mma), 0U);
}

TEST(Counters, LanesThatMeetAgainGoOnTogether) {
  // both sides of the branch once, and what follows once
  const Counters counters =
      run_case("setp.lt.u32 %p0, %r39, 16; @%p0 bra A; add.u32 %r0, %r39, 1; A: add.u32 %r0, %r0, 1;")
          .counters;
  EXPECT_EQ(counters.warp_instructions, 3U + 4U + 1U);
}

TEST(Counters, AreTheSameForThreadsAndSchedules) {
  const std::string body =
      "mov.u32 %r0, dynamic; mad.lo.u32 %r1, %r39, 8, %r0; st.shared.u32 [%r1], %r39; bar.sync 0; "
      "ld.shared.u32 %r2, "
      "[%r1]; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r4, %r3, 64, %r39; mad.wide.u32 %d0, %r4, 4, %d9; "
      "st.global.u32 [%d0], %r2;";
  const auto counters = [&](int threads, unsigned seed) {
    CaseSetup setup;
    setup.threads = 64;
    setup.grid = {4, 1, 1};
    setup.dynamic_shared_bytes = 512;
    setup.options.threads = threads;
    setup.options.schedule_seed = seed;
    std::vector<std::uint32_t> out(256);
    const Report report = run_case(body, {}, out, setup);
    EXPECT_TRUE(report.findings.empty());
    EXPECT_EQ(out[255], 63U);
    return report.counters;
  };
  const Counters first = counters(1, 0);
  EXPECT_EQ(counters(2, 0), first);
  EXPECT_EQ(counters(1, 9), first);
}

TEST(Footprint, IsExactToTheByte) {
  std::vector<std::uint32_t> in(64);
  std::vector<std::uint32_t> out(64);
  CaseSetup setup;
  setup.threads = 4;
  setup.options.footprint = true;
  const Report report = run_case(
      "mad.wide.u32 %d0, %r39, 8, %d8; ld.global.u32 %r0, [%d0+4]; mad.wide.u32 %d1, %r39, 2, %d9;"
      "cvt.u16.u32 %s0, %r0; st.global.u16 [%d1+2], %s0;",
      in, out, setup);
  const auto in_at = reinterpret_cast<std::uintptr_t>(in.data());
  const auto out_at = reinterpret_cast<std::uintptr_t>(out.data());
  EXPECT_THAT(report.reads,
              ElementsAre(ByteRange{in_at + 4, in_at + 8}, ByteRange{in_at + 12, in_at + 16},
                          ByteRange{in_at + 20, in_at + 24}, ByteRange{in_at + 28, in_at + 32}));
  EXPECT_THAT(report.writes, ElementsAre(ByteRange{out_at + 2, out_at + 10}));
}

}  // namespace
}  // namespace hcp::ptx
