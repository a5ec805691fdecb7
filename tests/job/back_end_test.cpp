// The back end that a run gets, on machines with devices and without.

#include "src/job/back_end.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const DeviceSearch no_devices{.names = {}, .indices = {}, .reason = "the driver is on holiday"};
const DeviceSearch two_devices{.names = {"Abacus 5000", "Abacus 5000"}, .indices = {0, 1}, .reason = {}};

JobConfig with(BackendChoice backend, KernelChoice kernel = KernelChoice::back_end) {
  JobConfig config;
  config.backend = backend;
  config.attention_kernel = kernel;
  return config;
}

std::string refusal(const JobConfig& config, const DeviceSearch& devices, int cp_size) {
  try {
    static_cast<void>(choose_back_end(
        config, [&] { return devices; }, cp_size));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(BackEnd, CudaWithoutADeviceIsRefusedWithTheReason) {
  EXPECT_THAT(
      refusal(with(BackendChoice::cuda), no_devices, 1),
      AllOf(HasSubstr("--backend cuda: no device answers: the driver is on holiday"), HasSubstr("use cpu")));
  EXPECT_THAT(refusal(with(BackendChoice::automatic, KernelChoice::cuda), no_devices, 1),
              HasSubstr("--attention-kernel cuda: no device answers: the driver is on holiday"));
}

TEST(BackEnd, SeveralContextParallelRanksNeedTransportsBetweenDevices) {
  EXPECT_THAT(refusal(with(BackendChoice::cuda), two_devices, 4),
              AllOf(HasSubstr("Abacus 5000 answers"), HasSubstr("4 context-parallel ranks"),
                    HasSubstr("need transports between devices")));
  EXPECT_THAT(choose_back_end(
                  with(BackendChoice::automatic), [] { return two_devices; }, 4)
                  .reason,
              HasSubstr("Abacus 5000 answers, but 4 context-parallel ranks"));
}

TEST(BackEnd, OneContextParallelRankComputesOnItsDevice) {
  for (const JobConfig& config : {with(BackendChoice::automatic), with(BackendChoice::cuda),
                                  with(BackendChoice::automatic, KernelChoice::cuda)}) {
    const ChosenBackEnd chosen = choose_back_end(
        config, [] { return two_devices; }, 1);
    EXPECT_EQ(chosen.back_end, BackendChoice::cuda);
    EXPECT_EQ(chosen.reason, "");
  }
}

TEST(BackEnd, WhoWantsTheHostGetsIt) {
  for (const JobConfig& config : {with(BackendChoice::cpu), with(BackendChoice::automatic, KernelChoice::cpu),
                                  with(BackendChoice::automatic, KernelChoice::reference)}) {
    const auto nobody_asks = []() -> DeviceSearch { throw std::logic_error{"devices do not matter here"}; };
    const ChosenBackEnd chosen = choose_back_end(config, nobody_asks, 1);
    EXPECT_EQ(chosen.back_end, BackendChoice::cpu);
    EXPECT_EQ(chosen.reason, "");
  }
}

TEST(BackEnd, TwoMemoriesAtOnceAreRefused) {
  EXPECT_THAT(refusal(with(BackendChoice::cuda, KernelChoice::reference), two_devices, 1),
              HasSubstr("--backend cuda and --attention-kernel reference compute in different memory"));
  EXPECT_THAT(refusal(with(BackendChoice::cpu, KernelChoice::cuda), two_devices, 1),
              HasSubstr("--backend cpu and --attention-kernel cuda compute in different memory"));
}

TEST(BackEnd, AutoSaysWhatDecided) {
  EXPECT_EQ(choose_back_end(
                with(BackendChoice::automatic), [] { return no_devices; }, 1)
                .reason,
            "no device answers: the driver is on holiday");
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
