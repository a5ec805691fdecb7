#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// %r0: 16 bytes of shared memory per thread; %d0: 16 bytes of the input
const std::string places =
    "mov.u32 %r9, dynamic; mad.lo.u32 %r0, %r39, 16, %r9; mad.wide.u32 %d0, %r39, 16, %d8;";
const std::string copy = "cp.async.cg.shared.global [%r0], [%d0], 16;";
const std::string result =
    "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r0]; mad.wide.u32 %d1, %r39, 16, %d9;"
    "st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};";

struct Outcome {
  std::vector<FindingKind> kinds;
  std::vector<std::uint32_t> out;
};

Outcome outcome(const std::string& body) {
  std::vector<std::uint32_t> in(128);
  std::iota(in.begin(), in.end(), 1U);
  Outcome result{{}, std::vector<std::uint32_t>(128)};
  CaseSetup setup;
  setup.dynamic_shared_bytes = 512;
  result.kinds = kinds_of(run_case(places + body, in, result.out, setup));
  return result;
}

TEST(AsyncCopies, LandAtTheWait) {
  for (const std::string wait : {"cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"}) {
    const Outcome found = outcome(copy + wait + result);
    EXPECT_THAT(found.kinds, IsEmpty());
    EXPECT_EQ(found.out[0], 1U);
    EXPECT_EQ(found.out[127], 128U);
  }
}

TEST(AsyncCopies, TooEarlyAReadIsFlaggedAndSeesNan) {
  EXPECT_THAT(outcome(copy + "cp.async.commit_group;" + result + "cp.async.wait_all;").kinds,
              ElementsAre(FindingKind::async_copy));
  EXPECT_THAT(
      outcome(copy + "cp.async.commit_group; cp.async.wait_group 1;" + result + "cp.async.wait_all;").kinds,
      ElementsAre(FindingKind::async_copy));
  // A copy that was not committed is not part of a group.
  EXPECT_THAT(outcome(copy + "cp.async.wait_group 0;" + result + "cp.async.wait_all;").kinds,
              ElementsAre(FindingKind::async_copy));
  const Outcome found = outcome(copy + result + "cp.async.wait_all;");
  EXPECT_EQ(found.out[0], 0xffffffffU);
}

TEST(AsyncCopies, OlderGroupsLandFirst) {
  const std::string second = "cp.async.cg.shared.global [%r0+256], [%d0], 16; cp.async.commit_group;";
  const std::string half = "setp.ge.u32 %p0, %r39, 16; @%p0 ret;";
  EXPECT_THAT(outcome(half + copy + "cp.async.commit_group;" + second + "cp.async.wait_group 1;" + result +
                      "cp.async.wait_group 0;")
                  .kinds,
              IsEmpty());
}

TEST(AsyncCopies, MustNotBePendingAtTheEnd) {
  EXPECT_THAT(outcome(copy).kinds, ElementsAre(FindingKind::async_copy));
  EXPECT_THAT(outcome(copy + "cp.async.commit_group;").kinds, ElementsAre(FindingKind::async_copy));
}

TEST(AsyncCopies, AreTheirOwnLanesUntilABarrier) {
  const std::string other = "xor.b32 %r5, %r39, 1; mad.lo.u32 %r5, %r5, 16, %r9; ld.shared.u32 %r1, [%r5];";
  EXPECT_THAT(outcome(copy + "cp.async.wait_all;" + other).kinds, ElementsAre(FindingKind::race));
  EXPECT_THAT(outcome(copy + "cp.async.wait_all; bar.warp.sync -1;" + other).kinds, IsEmpty());
}

TEST(AsyncCopies, ZerosWhereTheSourceEnds) {
  const Outcome found = outcome(
      "setp.eq.u32 %p0, %r39, 0; selp.u32 %r8, 8, 0, %p0; selp.b64 %d0, %d0, 0, %p0;"  // null where nothing
                                                                                       // is read
      "cp.async.cg.shared.global [%r0], [%d0], 16, %r8; cp.async.wait_all;" +
      result);
  EXPECT_THAT(found.kinds, IsEmpty());
  EXPECT_THAT(std::vector(found.out.begin(), found.out.begin() + 5), ElementsAre(1, 2, 0, 0, 0));
}

TEST(AsyncCopies, SmallOnesAndBounds) {
  EXPECT_THAT(
      outcome("cp.async.ca.shared.global [%r0], [%d0], 4; cp.async.ca.shared.global [%r0+8], [%d0], 8;"
              "cp.async.wait_all; ld.shared.u32 %r1, [%r0+12];")
          .kinds,
      IsEmpty());
  EXPECT_THAT(outcome("cp.async.cg.shared.global [%r0+16], [%d0], 16; cp.async.wait_all;").kinds,
              ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(outcome("cp.async.cg.shared.global [%r0], [%d0+16], 16; cp.async.wait_all;").kinds,
              ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(outcome("cp.async.cg.shared.global [%r0], [%d0+8], 16; cp.async.wait_all;").kinds,
              Contains(FindingKind::misaligned));
}

}  // namespace
}  // namespace hcp::ptx
