#include "tests/mutation/device_copies.hpp"

#include <cstring>
#include <new>

namespace hcp::mutation {

void* DeviceCopies::copy(const void* host, std::int64_t bytes, const std::string& name, void* target) {
  if (bytes <= 0) {
    return nullptr;
  }
  constexpr std::size_t alignment = 256;  // as cudaMalloc: it decides how many sectors an access takes
  const auto size = static_cast<std::size_t>(bytes);
  arrays_.emplace_back(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
  void* const device = arrays_.back().get();
  if (device == nullptr) {
    throw std::bad_alloc{};
  }
  std::memcpy(device, host, size);
  if (target == nullptr) {
    memory_.add_read_only(device, size, name);
  } else {
    memory_.add(device, size, name);
    outputs_.push_back({target, device, size});
  }
  return device;
}

void DeviceCopies::download() const {
  for (const Output& output : outputs_) {
    std::memcpy(output.host, output.device, output.bytes);
  }
}

}  // namespace hcp::mutation
