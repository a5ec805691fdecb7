/// The memory that the software GPU gives out: of the device, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "tests/ptx/device_memory.hpp"
#include "tests/software_gpu/address_space.hpp"

namespace hcp::software_gpu {

/// Where an address lies; freed: in memory that was once given out.
enum class Place : std::uint8_t { host, pinned, device, freed };

[[nodiscard]] std::string name_of(Place place);

class Memory {
 public:
  Memory() { device_space_.set_open(false); }

  static constexpr std::size_t device_bytes = std::size_t{256} << 20;  ///< that there are at all

  /// NaN. nullptr if less is left.
  [[nodiscard]] void* allocate_device(std::size_t bytes);
  [[nodiscard]] void* allocate_pinned(std::size_t bytes);
  /// @return its bytes; nothing if no memory of the device begins there
  std::optional<std::size_t> free_device(const void* base);
  std::optional<std::size_t> free_pinned(const void* base);

  [[nodiscard]] Place place_of(const void* address);
  /// Nothing, if all of these bytes lie in `place`; else where they lie.
  [[nodiscard]] std::optional<std::string> elsewhere(Place place, const void* begin, std::size_t bytes);

  /// Flags of bytes of the device, all in one piece: 1 for those that have been written.
  [[nodiscard]] std::span<std::uint8_t> written(const void* begin, std::size_t bytes);

  /// Memory of the device or pinned memory that holds the address: its name, and how far into it.
  struct Piece {
    std::string name;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Piece piece_at(std::uint64_t address);

  [[nodiscard]] ptx::DeviceMemory& device() { return device_; }
  [[nodiscard]] ptx::DeviceMemory& pinned() { return pinned_; }

  /// For as long as it lives, memory of the device can be touched. At other times a host that does so ends
  /// with a segmentation fault, as it would with a device.
  class Opened {
   public:
    explicit Opened(Memory& memory) : space_{memory.device_space_} { space_.set_open(true); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { space_.set_open(false); }

   private:
    AddressSpace& space_;
  };

 private:
  [[nodiscard]] std::optional<std::size_t> remove(const void* base, ptx::DeviceMemory& regions,
                                                  AddressSpace& space);

  AddressSpace device_space_;
  AddressSpace pinned_space_;
  ptx::DeviceMemory device_;
  ptx::DeviceMemory pinned_;
  std::size_t device_live_bytes_ = 0;
  std::map<std::uint64_t, std::size_t> freed_;  // bytes by base
};

}  // namespace hcp::software_gpu
