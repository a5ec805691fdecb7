#include "tests/software_gpu/operation.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>

#include "tests/software_gpu/checks.hpp"
#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
void access(const Operation& operation, const void* begin, std::size_t bytes, AccessMode mode) {
  const Place place = gpu().memory.place_of(begin);
  if (bytes == 0 || place == Place::host) {
    return;
  }
  const Place expected = place == Place::freed ? Place::device : place;
  if (const auto fault = gpu().memory.elsewhere(expected, operation.device, begin, bytes)) {
    report("'" + operation.name + "' touches what " + *fault);
    return;
  }
  check_order(operation, begin, bytes, mode);
  if (place != Place::device) {
    return;
  }
  const std::span<std::uint8_t> flags = gpu().memory.written(begin, bytes);
  if (mode == AccessMode::write) {
    std::ranges::fill(flags, std::uint8_t{1});
  } else if (const auto missing = std::ranges::count(flags, 0); missing > 0) {
    report("'" + operation.name + "' reads " + std::to_string(missing) + " of " + std::to_string(bytes) +
           " bytes that nobody has written, the first at " +
           std::to_string(std::ranges::find(flags, 0) - flags.begin()));
  }
}

void poison(void* begin, std::size_t bytes) {
  std::memset(begin, 0xff, bytes);
  std::ranges::fill(gpu().memory.written(begin, bytes), std::uint8_t{0});
}

void set_written(const void* begin, std::size_t bytes) {
  std::ranges::fill(gpu().memory.written(begin, bytes), std::uint8_t{1});
}

void host_access(const std::string& name, const void* begin, std::size_t bytes, AccessMode mode) {
  const std::lock_guard lock{gpu().mutex};
  if (bytes > 0 && gpu().memory.place_of(begin) == Place::pinned) {
    check_order(gpu().engine.host_operation(name), begin, bytes, mode);
  }
}

void progress() {
  const std::lock_guard lock{gpu().mutex};
  gpu().engine.step();
}

void report(const std::string& finding, const std::string& place) {
  if (gpu().reported.insert(finding).second) {
    gpu().misuses.push_back(finding + place);
  }
}

}  // namespace hcp::software_gpu
