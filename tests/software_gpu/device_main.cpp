// main() of device tests on hardware.

#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/cuda/devices.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  testing::InitGoogleTest(&argc, argv);
  const hcp::DeviceSearch devices = hcp::find_devices();
  if (devices.names.empty()) {
    std::printf("skipped, no device answers: %s\n", devices.reason.c_str());
    return skipped;
  }
  std::printf("device: %s\n", devices.names.front().c_str());
  return RUN_ALL_TESTS();
}
