// The back end that a run gets, on machines with devices and without.

#include "src/job/back_end.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const DeviceSearch no_devices{.names = {}, .reason = "the driver is on holiday"};
const DeviceSearch two_devices{.names = {"Abacus 5000", "Abacus 5000"}, .reason = {}};

JobConfig with(BackendChoice backend, KernelChoice kernel = KernelChoice::back_end) {
  JobConfig config;
  config.backend = backend;
  config.attention_kernel = kernel;
  return config;
}

std::string refusal(const JobConfig& config, const DeviceSearch& devices) {
  try {
    check_back_end(config, devices);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(BackEnd, CudaWithoutADeviceIsRefusedWithTheReason) {
  EXPECT_THAT(
      refusal(with(BackendChoice::cuda), no_devices),
      AllOf(HasSubstr("--backend cuda: no device answers: the driver is on holiday"), HasSubstr("use cpu")));
  EXPECT_THAT(refusal(with(BackendChoice::automatic, KernelChoice::cuda), no_devices),
              HasSubstr("--attention-kernel cuda: no device answers: the driver is on holiday"));
}

TEST(BackEnd, CudaWithADeviceNeedsDeviceTransports) {
  EXPECT_THAT(refusal(with(BackendChoice::cuda), two_devices),
              AllOf(HasSubstr("Abacus 5000 answers"), HasSubstr("needs device transports")));
}

TEST(BackEnd, TheOthersAreTakenWhateverTheDevices) {
  for (const BackendChoice backend : {BackendChoice::automatic, BackendChoice::cpu}) {
    for (const DeviceSearch& devices : {no_devices, two_devices}) {
      EXPECT_EQ(refusal(with(backend), devices), "nothing was refused");
    }
  }
}

TEST(BackEnd, AutoSaysWhatDecided) {
  EXPECT_EQ(describe_back_end(with(BackendChoice::automatic), no_devices),
            "cpu (no device answers: the driver is on holiday)");
  EXPECT_THAT(describe_back_end(with(BackendChoice::automatic), two_devices),
              HasSubstr("cpu (Abacus 5000 answers, but the device path needs device transports"));
  EXPECT_EQ(describe_back_end(with(BackendChoice::cpu), no_devices), "cpu");
}

TEST(BackEnd, ASearchForDevicesEitherFindsOneOrSaysWhyNot) {
  const DeviceSearch found = find_devices();
  EXPECT_EQ(found.names.empty(), !found.reason.empty()) << found.reason;
  const DeviceSearch again = find_devices();
  EXPECT_EQ(again.names, found.names);
  EXPECT_EQ(again.reason, found.reason);
}

}  // namespace
}  // namespace hcp
