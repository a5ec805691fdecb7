#include "tests/software_gpu/memory.hpp"

#include <cstring>
#include <iterator>

namespace hcp::software_gpu {
namespace {

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
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

void* Memory::allocate_device(std::size_t bytes) {
  if (bytes > device_bytes - device_live_bytes_) {
    return nullptr;
  }
  const Opened opened{*this};
  void* base = device_space_.take(bytes);
  device_.add_uninitialised(base, bytes, "cudaMalloc of " + std::to_string(bytes) + " bytes");
  device_live_bytes_ += bytes;
  return base;
}

void* Memory::allocate_pinned(std::size_t bytes) {
  void* base = pinned_space_.take(bytes);
  pinned_.add(base, bytes, "cudaMallocHost of " + std::to_string(bytes) + " bytes");
  std::memset(base, 0xff, bytes);
  return base;
}

std::optional<std::size_t> Memory::remove(const void* base, ptx::DeviceMemory& regions, AddressSpace& space) {
  const auto found = regions.regions().find(address_of(base));
  if (found == regions.regions().end()) {
    return std::nullopt;
  }
  const std::size_t bytes = found->second.bytes;
  freed_[found->first] = bytes;
  space.retire(reinterpret_cast<void*>(found->first), bytes);
  regions.remove(base);
  return bytes;
}

std::optional<std::size_t> Memory::free_device(const void* base) {
  const std::optional<std::size_t> bytes = remove(base, device_, device_space_);
  device_live_bytes_ -= bytes.value_or(0);
  return bytes;
}

std::optional<std::size_t> Memory::free_pinned(const void* base) {
  return remove(base, pinned_, pinned_space_);
}

std::span<std::uint8_t> Memory::written(const void* begin, std::size_t bytes) {
  ptx::DeviceMemory::Region* region = device_.find(address_of(begin), bytes);
  return std::span{region->written}.subspan(address_of(begin) - region->base, bytes);
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

Memory::Piece Memory::piece_at(std::uint64_t address) {
  for (ptx::DeviceMemory* owner : {&device_, &pinned_}) {
    if (const auto* region = owner->find(address, 1)) {
      return {.name = region->name, .offset = address - region->base};
    }
  }
  return {};
}

}  // namespace hcp::software_gpu
