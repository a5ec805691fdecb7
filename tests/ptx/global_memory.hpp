/// Device memory during one launch: who accessed which word, and which bytes at all.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/ptx/access_clock.hpp"
#include "tests/ptx/device_memory.hpp"
#include "tests/ptx/report.hpp"
#include "tests/ptx/shared_memory.hpp"

namespace hcp::ptx {

enum class AccessKind { read, write, atomic };

/// One lane's access. Blocks are counted from 1.
struct GlobalAccess {
  AccessKind kind = AccessKind::read;
  const WarpClock& clock;
  std::uint32_t block = 0;
  std::uint32_t barriers = 0;  ///< barriers of the whole block so far
  int lane = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t alignment = 0;  ///< that the address must have, in bytes
};

/// Blocks of one launch are never in order with each other. Reads by several warps of one block, between two
/// barriers of the whole block, are taken together: a write that only a named barrier of some warps orders
/// after them is called a race.
class GlobalMemory {
 public:
  /// @param granule as of SharedMemory
  GlobalMemory(DeviceMemory& memory, std::uint32_t granule, bool races, bool footprint);

  /// Checks and notes the access. Where the fault is a kind of memcheck, the access must not be made.
  std::optional<Fault> note(const GlobalAccess& access);

  /// Held by whoever touches device memory or this, where blocks run at the same time.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  void write_footprint(Report& report) const;

 private:
  struct Word {
    std::uint32_t writer_block = 0;  // 0: none
    bool atomic = false;             // the last write was one
    AccessStamp write;
    std::uint32_t reader_block = 0;  // several_blocks: more than one
    AccessStamp read;                // the last one
    LaneMask reader_warps = 0;       // since `barriers`
    std::uint32_t barriers = 0;
  };
  struct Watched {
    DeviceMemory::Region* region = nullptr;
    std::vector<Word> words;              // from the first access on; none for read-only memory
    std::vector<std::uint8_t> footprint;  // from the first access on, per byte: bit 0 read, bit 1 written
  };
  static constexpr std::uint32_t several_blocks = ~0U;

  [[nodiscard]] Watched* find(const GlobalAccess& access);
  std::optional<Fault> race(Watched& watched, const GlobalAccess& access);
  [[nodiscard]] static const char* against_write(const Word& word, const GlobalAccess& access);
  [[nodiscard]] static const char* against_reads(const Word& word, const GlobalAccess& access);
  static void note_read(Word& word, const GlobalAccess& access);

  std::uint32_t granule_;
  bool races_;
  bool footprint_;
  std::map<std::uint64_t, Watched> watched_;  // by base
  Watched* last_ = nullptr;
  std::mutex mutex_;
};

}  // namespace hcp::ptx
