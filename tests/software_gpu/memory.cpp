#include "tests/software_gpu/memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <new>

namespace hcp::software_gpu {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment = 256;  // of cudaMalloc

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// With room for the alignment before it, and a page behind it that belongs to nobody.
std::size_t mapped_bytes(std::size_t bytes) {
  return (alignment + bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes;
}

}  // namespace

std::string name_of(Place place) {
  switch (place) {
    case Place::host:
      return "memory of the host";
    case Place::pinned:
      return "pinned memory of the host";
    case Place::device:
      return "memory of the device";
    case Place::freed:
      return "freed memory";
  }
  return "";
}

void* Memory::map(std::size_t bytes) {
  void* base = mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    throw std::bad_alloc{};
  }
  return static_cast<std::byte*>(base) + alignment;
}

/// The addresses stay taken, the memory behind them goes.
void Memory::retire(std::uint64_t base, std::size_t bytes) {
  void* mapped = reinterpret_cast<std::byte*>(base) - alignment;
  if (mmap(mapped, mapped_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
           -1, 0) == MAP_FAILED) {
    throw std::bad_alloc{};
  }
  freed_[base] = bytes;
}

void* Memory::allocate_device(std::size_t bytes) {
  if (bytes > device_bytes - device_live_bytes_) {
    return nullptr;
  }
  void* base = map(bytes);
  device_.add_uninitialised(base, bytes, "cudaMalloc of " + std::to_string(bytes) + " bytes");
  device_live_bytes_ += bytes;
  return base;
}

void* Memory::allocate_pinned(std::size_t bytes) {
  void* base = map(bytes);
  pinned_.add(base, bytes, "cudaMallocHost of " + std::to_string(bytes) + " bytes");
  std::memset(base, 0xff, bytes);
  return base;
}

bool Memory::free_device(const void* base) {
  const auto found = device_.regions().find(address_of(base));
  if (found == device_.regions().end()) {
    return false;
  }
  const std::size_t bytes = found->second.bytes;
  device_.remove(base);
  device_live_bytes_ -= bytes;
  retire(address_of(base), bytes);
  return true;
}

bool Memory::free_pinned(const void* base) {
  const auto found = pinned_.regions().find(address_of(base));
  if (found == pinned_.regions().end()) {
    return false;
  }
  const std::size_t bytes = found->second.bytes;
  pinned_.remove(base);
  retire(address_of(base), bytes);
  return true;
}

Place Memory::place_of(const void* address) {
  const std::uint64_t value = address_of(address);
  if (device_.find(value, 1) != nullptr) {
    return Place::device;
  }
  if (pinned_.find(value, 1) != nullptr) {
    return Place::pinned;
  }
  const auto after = freed_.upper_bound(value);
  if (after != freed_.begin() && value - std::prev(after)->first < std::prev(after)->second) {
    return Place::freed;
  }
  return Place::host;
}

std::optional<std::string> Memory::elsewhere(Place place, const void* begin, std::size_t bytes) {
  const Place found = place_of(begin);
  if (found != place) {
    return "is " + name_of(found);
  }
  ptx::DeviceMemory* owner = place == Place::device ? &device_ : place == Place::pinned ? &pinned_ : nullptr;
  if (owner != nullptr && owner->find(address_of(begin), bytes) == nullptr) {
    return "runs past the end of '" + owner->find(address_of(begin), 1)->name + "'";
  }
  return std::nullopt;
}

}  // namespace hcp::software_gpu
