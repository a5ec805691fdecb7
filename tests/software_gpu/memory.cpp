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

void* Memory::allocate_device(int device, std::size_t bytes) {
  OnDevice& owner = devices_[device];
  if (bytes > device_bytes - owner.live_bytes) {
    return nullptr;
  }
  const Opened opened{*this};
  void* base = device_space_.take(bytes);
  owner.memory.add_uninitialised(base, bytes, "cudaMalloc of " + std::to_string(bytes) + " bytes");
  owner.live_bytes += bytes;
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
  OnDevice* owner = owner_of(base);
  if (owner == nullptr) {
    return std::nullopt;
  }
  const std::optional<std::size_t> bytes = remove(base, owner->memory, device_space_);
  owner->live_bytes -= bytes.value_or(0);
  return bytes;
}

std::optional<std::size_t> Memory::free_pinned(const void* base) {
  return remove(base, pinned_, pinned_space_);
}

std::optional<int> Memory::device_of(const void* address) {
  for (auto& [device, owner] : devices_) {
    if (owner.memory.find(address_of(address), 1) != nullptr) {
      return device;
    }
  }
  return std::nullopt;
}

Memory::OnDevice* Memory::owner_of(const void* address) {
  const std::optional<int> device = device_of(address);
  return device ? &devices_.at(*device) : nullptr;
}

Place Memory::place_of(const void* address) {
  const std::uint64_t value = address_of(address);
  if (owner_of(address) != nullptr) {
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

std::optional<std::string> Memory::elsewhere(Place place, int device, const void* begin, std::size_t bytes) {
  const Place found = place_of(begin);
  if (found != place) {
    return "is " + name_of(found);
  }
  if (place == Place::device && device_of(begin) != device) {
    return "is memory of another device";
  }
  ptx::DeviceMemory* owner = place == Place::device   ? &devices_.at(device).memory
                             : place == Place::pinned ? &pinned_
                                                      : nullptr;
  if (owner != nullptr && owner->find(address_of(begin), bytes) == nullptr) {
    return "runs past the end of '" + owner->find(address_of(begin), 1)->name + "'";
  }
  return std::nullopt;
}

std::span<std::uint8_t> Memory::written(const void* begin, std::size_t bytes) {
  ptx::DeviceMemory::Region* region = owner_of(begin)->memory.find(address_of(begin), bytes);
  return std::span{region->written}.subspan(address_of(begin) - region->base, bytes);
}

Memory::Piece Memory::piece_at(std::uint64_t address) {
  OnDevice* device = owner_of(reinterpret_cast<const void*>(address));
  const auto* region = device != nullptr ? device->memory.find(address, 1) : pinned_.find(address, 1);
  return region == nullptr ? Piece{} : Piece{.name = region->name, .offset = address - region->base};
}

}  // namespace hcp::software_gpu
