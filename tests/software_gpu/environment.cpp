#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

unsigned seed_from(std::string_view text) {
  unsigned seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (!text.empty() && (error != std::errc{} || end != text.data() + text.size())) {
    throw std::invalid_argument{"HCP_SOFTWARE_GPU_SCHEDULE=" + std::string{text} +
                                ": a whole number is needed, 0 for no schedule"};
  }
  return seed;
}

}  // namespace

std::string configure_from_environment() {
  const std::string_view chosen = variable("HCP_SOFTWARE_GPU_ARCHITECTURE");
  const std::string architecture{chosen.empty() ? "compute_90" : chosen};
  load_built_ptx(architecture);
  const unsigned seed = seed_from(variable("HCP_SOFTWARE_GPU_SCHEDULE"));
  set_schedule(seed);
  return architecture + (seed == 0 ? "" : ", schedule " + std::to_string(seed));
}

}  // namespace hcp::software_gpu
