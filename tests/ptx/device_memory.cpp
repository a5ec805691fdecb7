#include "tests/ptx/device_memory.hpp"

#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace hcp::ptx {

DeviceMemory::Region& DeviceMemory::insert(const void* base, std::size_t bytes, std::string name,
                                           bool writable) {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const auto after = regions_.lower_bound(begin);
  const bool hits_after = after != regions_.end() && after->first < begin + bytes;
  const bool hits_before = after != regions_.begin() && std::prev(after)->second.contains(begin, 1);
  if (hits_after || hits_before) {
    throw std::invalid_argument{"device memory '" + name + "' overlaps '" +
                                (hits_after ? after : std::prev(after))->second.name + "'"};
  }
  return regions_.insert({begin, {begin, bytes, std::move(name), writable, {}}}).first->second;
}

void DeviceMemory::add(void* base, std::size_t bytes, std::string name) {
  insert(base, bytes, std::move(name), true);
}

void DeviceMemory::add_read_only(const void* base, std::size_t bytes, std::string name) {
  insert(base, bytes, std::move(name), false);
}

void DeviceMemory::add_uninitialised(void* base, std::size_t bytes, std::string name) {
  insert(base, bytes, std::move(name), true).written.assign(bytes, 0);
  std::memset(base, 0xff, bytes);  // NaN in every floating-point type
}

void DeviceMemory::remove(const void* base) {
  if (regions_.erase(reinterpret_cast<std::uintptr_t>(base)) == 0) {
    throw std::invalid_argument{"no device memory begins there"};
  }
}

void DeviceMemory::mark_written(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  Region* region = find(address, bytes);
  if (region == nullptr) {
    throw std::invalid_argument{"bytes outside of device memory are said to be written"};
  }
  if (!region->written.empty()) {
    std::memset(region->written.data() + (address - region->base), 1, bytes);
  }
}

DeviceMemory::Region* DeviceMemory::find(std::uint64_t address, std::uint64_t bytes) {
  const auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) {
    return nullptr;
  }
  Region& region = std::prev(after)->second;
  return region.contains(address, bytes) ? &region : nullptr;
}

}  // namespace hcp::ptx
