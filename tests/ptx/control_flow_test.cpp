// Branches, loops, calls, special registers, barriers that only order.
#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::IsEmpty;
using Words = Column<std::uint32_t>;

Words lanes() {
  Words values(32);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

TEST(ControlFlow, LoopsOfDifferentLengthPerLane) {
  // 0 + 1 + ... + lane, and then all lanes together again
  const auto result = evaluate<std::uint32_t>(
      "mov.u32 %r1, 0; mov.u32 %r2, 0;"
      "LOOP: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p0, %r2, %r0; @%p0 bra LOOP;"
      "redux.sync.max.u32 %r3, %r1, -1; add.u32 %r7, %r1, %r3;",
      lanes());
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane * (lane + 1) / 2 + 31 * 32 / 2);
  }
}

TEST(ControlFlow, NestedBranchesInAnyOrderOfBlocks) {
  const auto result = evaluate<std::uint32_t>(
      "and.b32 %r1, %r0, 1; and.b32 %r2, %r0, 2; setp.ne.u32 %p0, %r1, 0; setp.ne.u32 %p1, %r2, 0;"
      "bra START;"
      "BOTH: add.u32 %r7, %r7, 100; bra JOIN;"
      "START: mov.u32 %r7, 0; @!%p0 bra EVEN; add.u32 %r7, %r7, 1; @%p1 bra BOTH; add.u32 %r7, %r7, 10; bra "
      "JOIN;"
      "EVEN: @!%p1 bra JOIN; add.u32 %r7, %r7, 1000;"
      "JOIN: vote.sync.ballot.b32 %r3, %p0, -1; add.u32 %r7, %r7, 1;",
      lanes());
  const std::uint32_t expected[4] = {1, 12, 1001, 102};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], expected[lane % 4]);
  }
}

TEST(ControlFlow, LanesThatEndAreNotWaitedFor) {
  std::vector<std::uint32_t> out(32, 7);
  const Report report = run_case(
      "setp.ge.u32 %p0, %r39, 10; @%p0 ret; bar.sync 0; vote.sync.ballot.b32 %r1, %p0, -1;"
      "mad.wide.u32 %d1, %r39, 4, %d9; st.global.u32 [%d1], 1;",
      {}, out);
  EXPECT_THAT(report.findings, IsEmpty());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane < 10 ? 1U : 7U);
  }
}

TEST(ControlFlow, WaitingLanesGoOnWhenTheOthersEnd) {
  std::vector<std::uint32_t> out(32, 7);
  const Report report = run_case(
      "setp.lt.u32 %p0, %r39, 16; @!%p0 bra OUT; vote.sync.ballot.b32 %r1, %p0, -1;"
      "mad.wide.u32 %d1, %r39, 4, %d9; st.global.u32 [%d1], %r1; OUT:",
      {}, out);
  EXPECT_THAT(report.findings, IsEmpty());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane < 16 ? 0xffffU : 7U);
  }
}

TEST(ControlFlow, SpecialRegisters) {
  std::vector<std::uint32_t> out(2 * 3 * 64);
  CaseSetup setup;
  setup.threads = 64;
  setup.grid = {2, 3, 1};
  const Report report = run_case(
      "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ntid.x;"
      "mad.lo.u32 %r4, %r1, %r2, %r0; mad.lo.u32 %r4, %r4, %r3, %r39;"
      "mov.u32 %r5, %laneid; mov.u32 %r6, %warpid; mad.lo.u32 %r5, %r6, 100, %r5; mov.u32 %r7, %lanemask_lt;"
      "popc.b32 %r7, %r7; mad.lo.u32 %r5, %r7, 1000, %r5;"
      "mad.wide.u32 %d1, %r4, 4, %d9; st.global.u32 [%d1], %r5;",
      {}, out, setup);
  EXPECT_THAT(report.findings, IsEmpty());
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i % 32 * 1001 + i / 32 % 2 * 100);
  }
}

TEST(ControlFlow, CallsHaveRegistersAndLabelsOfTheirOwn) {
  const std::string text =
      ".func (.param .b32 result) larger(.param .b32 a, .param .b32 b)\n"
      "{ .reg .pred %p<2>; .reg .b32 %r<3>;\n"
      "ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b]; setp.gt.u32 %p0, %r0, %r1; @%p0 bra FIRST;\n"
      "st.param.b32 [result+0], %r1; ret; FIRST: st.param.b32 [result+0], %r0; ret; }\n" +
      kernel_text(
          "mov.u32 %r0, 77;\n"
          "{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x+0], %r39; st.param.b32 [y+0], 9;\n"
          "call.uni (z), larger, (x, y); ld.param.b32 %r1, [z+0]; }\n"
          "FIRST: { .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x+0], %r1;"
          "st.param.b32 [y+0], 20;\n"
          "call.uni (z), larger, (x, y); ld.param.b32 %r2, [z+0]; }\n"
          "add.u32 %r2, %r2, %r0; mad.wide.u32 %d1, %r39, 4, %d9; st.global.u32 [%d1], %r2;");
  Module module = Module::load(module_text(text));
  std::vector<std::uint32_t> out(32);
  DeviceMemory memory;
  memory.add(out.data(), 128, "out");
  const std::uint64_t parameters[2] = {0, reinterpret_cast<std::uintptr_t>(out.data())};
  const Report report =
      run({module.kernel("test"), {1, 1, 1}, {32, 1, 1}, 0, std::as_bytes(std::span{parameters})}, module,
          memory);
  EXPECT_THAT(report.findings, IsEmpty());
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], std::max(lane, 20U) + 77);
  }
}

TEST(Barriers, ReductionsOverTheBlock) {
  CaseSetup setup;
  setup.threads = 64;
  std::vector<std::uint32_t> out(64);
  const Report report = run_case(
      "setp.lt.u32 %p0, %r39, 40; setp.lt.u32 %p3, %r39, 64; bar.red.popc.u32 %r0, 0, %p0;"
      "bar.red.and.pred %p1, 1, %p3; bar.red.or.pred %p2, 0, !%p3;"
      "selp.u32 %r1, 100, 0, %p1; selp.u32 %r2, 1000, 0, %p2; add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2;"
      "mad.wide.u32 %d1, %r39, 4, %d9; st.global.u32 [%d1], %r0;",
      {}, out, setup);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(out, std::vector<std::uint32_t>(64, 140));
}

TEST(Barriers, ProducersAndConsumersByNumberAndCount) {
  // Warp 0 fills for warp 1 (barrier 1), which gives the buffer back (barrier 2).
  const std::string body =
      "mov.u32 %r0, dynamic; and.b32 %r1, %r39, 31; mad.lo.u32 %r0, %r1, 4, %r0; mov.u32 %r5, 0; mov.u32 "
      "%r6, 0;"
      "setp.lt.u32 %p0, %r39, 32; @!%p0 bra CONSUME;"
      "PRODUCE: st.shared.u32 [%r0], %r5; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r5, %r5, 1;"
      "setp.lt.u32 %p1, %r5, 5; @%p1 bra PRODUCE; bra DONE;"
      "CONSUME: bar.sync 1, 64; ld.shared.u32 %r2, [%r0]; bar.arrive 2, 64; add.u32 %r6, %r6, %r2;"
      "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5; @%p1 bra CONSUME;"
      "DONE: mad.wide.u32 %d1, %r39, 4, %d9; st.global.u32 [%d1], %r6;";
  for (const unsigned seed : {0U, 1U, 2U}) {
    CaseSetup setup;
    setup.threads = 64;
    setup.dynamic_shared_bytes = 128;
    setup.options.schedule_seed = seed;
    std::vector<std::uint32_t> out(64);
    const Report report = run_case(body, {}, out, setup);
    EXPECT_THAT(report.findings, IsEmpty());
    EXPECT_EQ(out[5], 0U);
    EXPECT_EQ(out[40], 10U);
  }
}

}  // namespace
}  // namespace hcp::ptx
