// The back end that a run gets, on machines with devices and without.

#include "src/job/back_end.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const DeviceSearch no_devices{
    .names = {}, .indices = {}, .pci_bus_ids = {}, .reason = "the driver is on holiday"};
const DeviceSearch two_devices{.names = {"Abacus 5000", "Abacus 5000"},
                               .indices = {0, 1},
                               .pci_bus_ids = {"0000:1b:00.0", "0000:2c:00.0"},
                               .reason = {}};

JobConfig with(BackendChoice backend, KernelChoice kernel = KernelChoice::back_end,
               TransportChoice transport = TransportChoice::automatic) {
  JobConfig config;
  config.backend = backend;
  config.attention_kernel = kernel;
  config.transport = transport;
  return config;
}

JobConfig with(TransportChoice transport) {
  return with(BackendChoice::automatic, KernelChoice::back_end, transport);
}

std::string refusal(const JobConfig& config, const DeviceSearch& devices) {
  try {
    static_cast<void>(choose_back_end(config, [&] { return devices; }));
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

TEST(BackEnd, WhoeverMovesTheMemoryOfDevicesNeedsOne) {
  EXPECT_THAT(refusal(with(TransportChoice::nccl), no_devices),
              AllOf(HasSubstr("--transport nccl: no device answers: the driver is on holiday"),
                    HasSubstr("use auto")));
  EXPECT_THAT(refusal(with(TransportChoice::staged), no_devices),
              HasSubstr("--transport staged: no device answers: the driver is on holiday"));
}

TEST(BackEnd, ADeviceThatAnswersIsTaken) {
  for (const JobConfig& config : {with(BackendChoice::automatic), with(BackendChoice::cuda),
                                  with(BackendChoice::automatic, KernelChoice::cuda),
                                  with(TransportChoice::nccl), with(TransportChoice::staged)}) {
    const ChosenBackEnd chosen = choose_back_end(config, [] { return two_devices; });
    EXPECT_EQ(chosen.back_end, BackendChoice::cuda);
    EXPECT_EQ(chosen.reason, "");
  }
}

TEST(BackEnd, WhoWantsTheHostGetsIt) {
  for (const JobConfig& config :
       {with(BackendChoice::cpu), with(BackendChoice::automatic, KernelChoice::cpu),
        with(BackendChoice::automatic, KernelChoice::reference), with(TransportChoice::mpi)}) {
    const auto nobody_asks = []() -> DeviceSearch { throw std::logic_error{"devices do not matter here"}; };
    const ChosenBackEnd chosen = choose_back_end(config, nobody_asks);
    EXPECT_EQ(chosen.back_end, BackendChoice::cpu);
    EXPECT_EQ(chosen.reason, "");
  }
}

TEST(BackEnd, TwoMemoriesAtOnceAreRefused) {
  EXPECT_THAT(refusal(with(BackendChoice::cuda, KernelChoice::reference), two_devices),
              HasSubstr("--backend cuda and --attention-kernel reference compute in different memory"));
  EXPECT_THAT(refusal(with(BackendChoice::cpu, KernelChoice::cuda), two_devices),
              HasSubstr("--backend cpu and --attention-kernel cuda compute in different memory"));
}

TEST(BackEnd, AutoSaysWhatDecided) {
  EXPECT_EQ(choose_back_end(with(BackendChoice::automatic), [] { return no_devices; }).reason,
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
