#include "tests/software_gpu/copies.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tests/software_gpu/checks.hpp"
#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

struct Copy {
  CopyEnds ends;
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};

/// Memory of the host that is not pinned is not watched.
void check_end(const Operation& operation, const void* begin, std::size_t bytes, AccessMode mode) {
  if (gpu().memory.place_of(begin) != Place::host) {
    check_order(operation, begin, bytes, mode);
  }
}

/// Flags of written bytes go along within the device.
void move_flags(const Copy& copy) {
  if (copy.ends.to_device) {
    const std::span<std::uint8_t> target = gpu().memory.written(copy.target, copy.bytes);
    if (copy.ends.from_device) {
      std::ranges::copy(gpu().memory.written(copy.source, copy.bytes), target.begin());
    } else {
      std::ranges::fill(target, std::uint8_t{1});
    }
  } else if (copy.ends.from_device) {
    const std::span<std::uint8_t> flags = gpu().memory.written(copy.source, copy.bytes);
    if (const auto missing = std::ranges::count(flags, 0); missing > 0) {
      gpu().misuses.push_back("cudaMemcpyAsync: " + std::to_string(missing) + " of " +
                              std::to_string(copy.bytes) +
                              " bytes go to the host that nobody has written, the first at " +
                              std::to_string(std::ranges::find(flags, 0) - flags.begin()));
    }
  }
}

/// What the host has to do with it, if it is not done at once.
struct HostEnds {
  std::shared_ptr<HostCopies::Copy> source;
  std::shared_ptr<HostCopies::Copy> target;
};

HostEnds host_ends(const Copy& copy) {
  HostEnds ends;
  if (gpu().engine.deferred()) {
    const std::string name = name_of_copy(copy.ends, copy.bytes);
    if (!copy.ends.from_device) {
      ends.source = gpu().host_copies.from_host(name, copy.source, copy.bytes);
    }
    if (!copy.ends.to_device) {
      ends.target = gpu().host_copies.to_host(name, copy.target, copy.bytes);
    }
  }
  return ends;
}

void move_bytes(const Operation& operation, const Copy& copy, const HostEnds& ends) {
  if (ends.source != nullptr && ends.target != nullptr) {
    std::vector<std::byte> bytes(copy.bytes);
    gpu().host_copies.take(ends.source, operation.stamp, bytes.data());
    gpu().host_copies.bring(ends.target, operation.stamp, bytes.data());
  } else if (ends.source != nullptr) {
    gpu().host_copies.take(ends.source, operation.stamp, copy.target);
  } else if (ends.target != nullptr) {
    gpu().host_copies.bring(ends.target, operation.stamp, copy.source);
  } else {
    std::memcpy(copy.target, copy.source, copy.bytes);
  }
}

}  // namespace

std::string name_of_copy(CopyEnds ends, std::size_t bytes) {
  const char* way = ends.from_device ? ends.to_device ? "within the device" : "to the host"
                    : ends.to_device ? "to the device"
                                     : "within the host";
  return "cudaMemcpyAsync of " + std::to_string(bytes) + " bytes " + way;
}

Advance copy_operation(CopyEnds ends, void* target, const void* source, std::size_t bytes) {
  const Copy copy{.ends = ends, .target = target, .source = source, .bytes = bytes};
  return [copy, seen = host_ends(copy)](const Operation& operation, bool /*first*/) {
    check_end(operation, copy.source, copy.bytes, AccessMode::read);
    check_end(operation, copy.target, copy.bytes, AccessMode::write);
    move_bytes(operation, copy, seen);
    move_flags(copy);
    return true;
  };
}

}  // namespace hcp::software_gpu
