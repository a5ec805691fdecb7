#include "src/job/back_end.hpp"

#include <optional>
#include <stdexcept>

namespace hcp {
namespace {

/// Why a rank cannot compute on a device.
std::optional<std::string> obstacle(const DeviceSearch& devices, int cp_size) {
  if (devices.names.empty()) {
    return "no device answers: " + devices.reason;
  }
  if (cp_size > 1) {
    return devices.names.front() + " answers, but " + std::to_string(cp_size) +
           " context-parallel ranks need transports between devices, which are not built yet";
  }
  return std::nullopt;
}

}  // namespace

ChosenBackEnd choose_back_end(const JobConfig& config, const std::function<DeviceSearch()>& search,
                              int cp_size) {
  const bool cuda_back_end = config.backend == BackendChoice::cuda;
  const bool cuda = cuda_back_end || config.attention_kernel == KernelChoice::cuda;
  const bool cpu_kernel =
      config.attention_kernel == KernelChoice::cpu || config.attention_kernel == KernelChoice::reference;
  if (cuda && (cpu_kernel || config.backend == BackendChoice::cpu)) {
    throw std::invalid_argument{"--backend " + std::string{name_in(backend_choice_names, config.backend)} +
                                " and --attention-kernel " +
                                std::string{name_in(kernel_choice_names, config.attention_kernel)} +
                                " compute in different memory; one of them is enough"};
  }
  if (config.backend == BackendChoice::cpu || cpu_kernel) {
    return {};
  }
  const std::optional<std::string> found = obstacle(search(), cp_size);
  if (!found) {
    return {.back_end = BackendChoice::cuda, .reason = {}};
  }
  if (cuda) {
    throw std::invalid_argument{std::string{cuda_back_end ? "--backend" : "--attention-kernel"} +
                                " cuda: " + *found + "; use cpu"};
  }
  return {.back_end = BackendChoice::cpu, .reason = *found};
}

}  // namespace hcp
