#include "kernels/back_end.hpp"

#include <utility>

namespace hcp {

BackEnd make_host_back_end(std::unique_ptr<AttentionKernel> kernel) {
  // The host's memory belongs to nobody.
  return {.memory = std::shared_ptr<MemorySource>{std::shared_ptr<void>{}, &host_memory()},
          .kernel = std::move(kernel),
          .clock = make_host_phase_clock(),
          .stream = nullptr};
}

}  // namespace hcp
