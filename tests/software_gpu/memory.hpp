/// The memory that the software GPU gives out: of its devices, and pinned memory of the host.
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

  static constexpr std::size_t device_bytes = std::size_t{256} << 20;  ///< that a device has at all

  /// NaN. nullptr if less is left.
  [[nodiscard]] void* allocate_device(int device, std::size_t bytes);
  [[nodiscard]] void* allocate_pinned(std::size_t bytes);
  /// @return its bytes; nothing if no memory of a device begins there
  std::optional<std::size_t> free_device(const void* base);
  std::optional<std::size_t> free_pinned(const void* base);

  [[nodiscard]] Place place_of(const void* address);
  /// Nothing, if memory of no device lies there.
  [[nodiscard]] std::optional<int> device_of(const void* address);
  /// Nothing, if all of these bytes lie in `place`, and on this device if it is one; else where they lie.
  [[nodiscard]] std::optional<std::string> elsewhere(Place place, int device, const void* begin,
                                                     std::size_t bytes);

  /// Flags of bytes of a device, all in one piece: 1 for those that have been written.
  [[nodiscard]] std::span<std::uint8_t> written(const void* begin, std::size_t bytes);

  /// Memory of a device or pinned memory that holds the address: its name, and how far into it.
  struct Piece {
    std::string name;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Piece piece_at(std::uint64_t address);

  [[nodiscard]] ptx::DeviceMemory& device(int device) { return devices_[device].memory; }
  [[nodiscard]] ptx::DeviceMemory& pinned() { return pinned_; }

  /// For as long as one lives, memory of devices can be touched. At other times a host that does so ends
  /// with a segmentation fault, as it would with a device.
  class Opened {
   public:
    explicit Opened(Memory& memory) : memory_{memory} {
      if (memory_.opened_++ == 0) {
        memory_.device_space_.set_open(true);
      }
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
      if (--memory_.opened_ == 0) {
        memory_.device_space_.set_open(false);
      }
    }

   private:
    Memory& memory_;
  };

 private:
  struct OnDevice {
    ptx::DeviceMemory memory;
    std::size_t live_bytes = 0;
  };

  /// nullptr if memory of no device lies there.
  [[nodiscard]] OnDevice* owner_of(const void* address);
  [[nodiscard]] std::optional<std::size_t> remove(const void* base, ptx::DeviceMemory& regions,
                                                  AddressSpace& space);

  AddressSpace device_space_;
  AddressSpace pinned_space_;
  std::map<int, OnDevice> devices_;
  ptx::DeviceMemory pinned_;
  int opened_ = 0;                              // how many Opened live
  std::map<std::uint64_t, std::size_t> freed_;  // bytes by base
};

}  // namespace hcp::software_gpu
