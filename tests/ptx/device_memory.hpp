/// The memory of the host that kernels may use as device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hcp::ptx {

class DeviceMemory {
 public:
  struct Region {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::string name;
    bool writable = true;
    std::vector<std::uint8_t> written;  ///< per byte, 1 once it has a value; empty if all bytes have one

    [[nodiscard]] bool contains(std::uint64_t address, std::uint64_t count) const {
      return address >= base && count <= bytes && address - base <= bytes - count;
    }
  };

  // Addresses on the device are those on the host; counts of sectors depend on their alignment, which is 256
  // bytes for cudaMalloc. All throw std::invalid_argument if regions would overlap.
  void add(void* base, std::size_t bytes, std::string name);
  void add_read_only(const void* base, std::size_t bytes, std::string name);
  /// Fills the memory with NaN and tells which reads come before the first write.
  void add_uninitialised(void* base, std::size_t bytes, std::string name);

  /// @throws std::invalid_argument if no region begins at `base`
  void remove(const void* base);

  /// The host has given these bytes a value.
  void mark_written(const void* begin, std::size_t bytes);

  /// nullptr if no region holds all of these bytes.
  [[nodiscard]] Region* find(std::uint64_t address, std::uint64_t bytes);
  [[nodiscard]] std::map<std::uint64_t, Region>& regions() { return regions_; }

 private:
  Region& insert(const void* base, std::size_t bytes, std::string name, bool writable);
  std::map<std::uint64_t, Region> regions_;  // by base
};

}  // namespace hcp::ptx
