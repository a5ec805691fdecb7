#include "src/job/back_end.hpp"

#include <stdexcept>

namespace hcp {
namespace {

/// "--backend cuda" and what to write instead, if the user insists on devices.
struct Insistence {
  std::string option{};
  std::string instead{};
};

Insistence insistence_on_devices(const JobConfig& config) {
  if (config.backend == BackendChoice::cuda) {
    return {"--backend cuda", "use cpu"};
  }
  if (config.attention_kernel == KernelChoice::cuda) {
    return {"--attention-kernel cuda", "use cpu"};
  }
  if (config.transport == TransportChoice::nccl || config.transport == TransportChoice::staged) {
    return {"--transport " + std::string{name_in(transport_choice_names, config.transport)}, "use auto"};
  }
  return {};
}

}  // namespace

ChosenBackEnd choose_back_end(const JobConfig& config, const std::function<DeviceSearch()>& search) {
  const bool cpu_kernel =
      config.attention_kernel == KernelChoice::cpu || config.attention_kernel == KernelChoice::reference;
  const bool cuda_kernel = config.attention_kernel == KernelChoice::cuda;
  if ((config.backend == BackendChoice::cuda && cpu_kernel) ||
      (config.backend == BackendChoice::cpu && cuda_kernel)) {
    throw std::invalid_argument{"--backend " + std::string{name_in(backend_choice_names, config.backend)} +
                                " and --attention-kernel " +
                                std::string{name_in(kernel_choice_names, config.attention_kernel)} +
                                " compute in different memory; one of them is enough"};
  }
  if (config.backend == BackendChoice::cpu || cpu_kernel || config.transport == TransportChoice::mpi) {
    return {};
  }
  const DeviceSearch devices = search();
  if (!devices.names.empty()) {
    return {.back_end = BackendChoice::cuda, .reason = {}};
  }
  const std::string obstacle = "no device answers: " + devices.reason;
  if (const Insistence insistence = insistence_on_devices(config); !insistence.option.empty()) {
    throw std::invalid_argument{insistence.option + ": " + obstacle + "; " + insistence.instead};
  }
  return {.back_end = BackendChoice::cpu, .reason = obstacle};
}

}  // namespace hcp
