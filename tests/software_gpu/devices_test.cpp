/// Which devices the product takes: the software GPU with the limits of other architectures.
#include "kernels/cuda/devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::HasSubstr;

class DevicesOf : public testing::Test {
 protected:
  ~DevicesOf() override { gpu().architecture = before_; }

  static DeviceSearch found_with(int major, int minor, int max_shared_kib) {
    gpu().architecture = {.major = major, .minor = minor, .max_shared_bytes = max_shared_kib << 10};
    return find_devices();
  }

 private:
  Architecture before_ = gpu().architecture;
};

TEST_F(DevicesOf, DataCentersAreTaken) {
  for (const DeviceSearch& found : {found_with(8, 0, 163), found_with(9, 0, 227), found_with(10, 0, 227)}) {
    EXPECT_EQ(found.names.size(), 1U);
    EXPECT_EQ(found.indices, std::vector<int>{0});
    EXPECT_EQ(found.reason, "");
  }
}

TEST_F(DevicesOf, OlderOnesAndCardsForGraphicsAreLeftOutWithTheReason) {
  const DeviceSearch older = found_with(7, 5, 64);
  EXPECT_TRUE(older.names.empty() && older.indices.empty());
  EXPECT_THAT(older.reason,
              HasSubstr("has compute capability 7.5 and 64 KiB of shared memory for a block; 8.0 "
                        "and 163 KiB are needed"));
  const DeviceSearch graphics = found_with(8, 9, 99);
  EXPECT_TRUE(graphics.names.empty());
  EXPECT_THAT(graphics.reason, HasSubstr("compute capability 8.9 and 99 KiB"));
}

}  // namespace
}  // namespace hcp::software_gpu
