#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/planted_bugs.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

/// 0 or more.
unsigned number_from(const std::string& name, std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument{name + "=" + std::string{text} + ": a whole number is needed, not below 0"};
  }
  return number;
}

unsigned number_of(const char* name, unsigned otherwise) {
  const std::string_view text = variable(name);
  return text.empty() ? otherwise : number_from(name, text);
}

/// "early_record:2". @return in words
std::string plant_from_environment() {
  const std::string text{variable("HCP_SOFTWARE_GPU_BUG")};
  if (text.empty()) {
    return "";
  }
  const std::size_t colon = text.find(':');
  const std::string nth = colon == std::string::npos ? "1" : text.substr(colon + 1);
  const Bug bug = bug_from(text.substr(0, colon));
  plant(bug, static_cast<int>(number_from("call of HCP_SOFTWARE_GPU_BUG", nth)));
  return ", bug " + name_of(bug) + " in call " + nth;
}

void set_devices_from_environment() {
  const unsigned installed = number_of("HCP_SOFTWARE_GPU_DEVICES", 1);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // without a device, if it is empty
  const std::lock_guard lock{gpu().mutex};
  gpu().devices.set(static_cast<int>(installed),
                    visible == nullptr ? std::nullopt : std::optional<std::string_view>{visible});
}

}  // namespace

std::string configure_from_environment() {
  set_devices_from_environment();
  const std::string_view chosen = variable("HCP_SOFTWARE_GPU_ARCHITECTURE");
  const std::string architecture{chosen.empty() ? "compute_90" : chosen};
  load_built_ptx(architecture);
  const unsigned seed = number_of("HCP_SOFTWARE_GPU_SCHEDULE", 0);
  set_schedule(seed);
  return architecture + (seed == 0 ? "" : ", schedule " + std::to_string(seed)) + plant_from_environment();
}

}  // namespace hcp::software_gpu
