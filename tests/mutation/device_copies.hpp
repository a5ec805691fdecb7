/// The arrays of one launch in the memory of the device: each alone in its region, so that whatever lies
/// outside of it is out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/device_memory.hpp"

namespace hcp::mutation {

class DeviceCopies {
 public:
  /// A copy that the kernel may read; nullptr if there are no bytes.
  template <typename Element>
  const Element* input(const Element* host, std::int64_t bytes, const std::string& name) {
    return static_cast<const Element*>(copy(host, bytes, name, nullptr));
  }
  /// A copy that the kernel may also write; download() writes it back.
  template <typename Element>
  Element* output(Element* host, std::int64_t bytes, const std::string& name) {
    return static_cast<Element*>(copy(host, bytes, name, host));
  }
  void download() const;

  [[nodiscard]] ptx::DeviceMemory& memory() { return memory_; }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  struct Output {
    void* host;
    const void* device;
    std::size_t bytes;
  };

  void* copy(const void* host, std::int64_t bytes, const std::string& name, void* target);

  ptx::DeviceMemory memory_;
  std::vector<std::unique_ptr<void, Free>> arrays_;
  std::vector<Output> outputs_;
};

}  // namespace hcp::mutation
