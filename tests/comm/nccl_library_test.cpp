#include "src/comm/nccl_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "src/comm/nccl_transport.hpp"

namespace hcp {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

template <std::size_t N>
std::string reason_against(const std::array<const char*, N>& names) {
  try {
    return "none: NCCL " + load_nccl(names).version();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(NcclLibrary, ItsAbsenceIsOneReason) {
  const std::string reason = reason_against(std::array{"libnccl-of-nobody.so.2", "libnccl-of-nobody.so"});
  EXPECT_THAT(reason, HasSubstr("NCCL cannot be loaded: libnccl-of-nobody.so.2: "));
  EXPECT_THAT(reason, HasSubstr("; libnccl-of-nobody.so: "));
}

TEST(NcclLibrary, ALibraryWithoutItsFunctionsIsRefused) {
  EXPECT_EQ(reason_against(std::array{"libm.so.6"}), "libm.so.6 has no ncclGetVersion");
}

TEST(NcclLibrary, AnOldOneIsRefusedWithBothVersions) {
  EXPECT_THAT(reason_against(std::array{"libnccl-of-nobody.so", HCP_OLD_NCCL}),
              HasSubstr(" is NCCL 2.13.4; 2.14.0 is the first that creates communicators"));
}

TEST(NcclLibrary, VersionsHaveTwoFormsOfNumbers) {
  NcclLibrary nccl;
  nccl.version_code = 2708;
  EXPECT_EQ(nccl.version(), "2.7.8");
  nccl.version_code = 21805;
  EXPECT_EQ(nccl.version(), "2.18.5");
}

TEST(NcclLibrary, KeepsTheOrderOfLaunchesFrom2_26On) {
  NcclLibrary nccl;
  nccl.version_code = NCCL_VERSION(2, 26, 0);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  EXPECT_TRUE(nccl.launches_in_order());
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  EXPECT_FALSE(nccl.launches_in_order());
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  EXPECT_FALSE(nccl.launches_in_order());
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  nccl.version_code = NCCL_VERSION(2, 25, 1);
  EXPECT_FALSE(nccl.launches_in_order());
}

TEST(NcclLibrary, TheSearchGivesAVersionOrAReason) {
  const NcclSearch search = find_nccl();
  EXPECT_NE(search.version.empty(), search.reason.empty());
  EXPECT_THAT(nccl_build(), MatchesRegex("2\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace hcp
