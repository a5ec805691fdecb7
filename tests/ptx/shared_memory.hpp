/// Shared memory of one block, with who accessed which word when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/access_clock.hpp"
#include "tests/ptx/report.hpp"

namespace hcp::ptx {

/// What is wrong with an access.
struct Fault {
  FindingKind kind = FindingKind::race;
  std::string message;
};

/// One lane's access to consecutive bytes; `offset` counts from the window's begin.
struct SharedAccess {
  const WarpClock& clock;
  int lane = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

class SharedMemory {
 public:
  /// @param granule bytes that are watched together: the smallest access of the kernel, a power of two of at
  /// most 4
  SharedMemory(std::uint32_t bytes, std::uint32_t granule, int warps);

  /// For the next block: NaN in every byte, nothing accessed.
  void reset();

  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  [[nodiscard]] std::byte* data(std::uint32_t offset) { return data_.data() + offset; }

  // Each notes the access, which lies inside, and returns what is wrong with it.
  std::optional<Fault> note_read(const SharedAccess& access);
  std::optional<Fault> note_write(const SharedAccess& access);
  /// A cp.async has been issued: until it lands, nobody may touch these bytes.
  std::optional<Fault> note_async_issue(const SharedAccess& access);
  /// Its lane has waited for it.
  void note_async_landing(const SharedAccess& access);

 private:
  struct Granules {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] Granules granules(const SharedAccess& access) const;
  std::optional<Fault> check_readers(const SharedAccess& access, Granules range);
  [[nodiscard]] Fault explain(const SharedAccess& access, AccessStamp earlier, const char* order) const;
  void stamp(const SharedAccess& access, Granules range, std::uint32_t extra_bits);

  std::uint32_t bytes_ = 0;
  std::uint32_t granule_shift_ = 2;
  int warps_ = 0;
  std::size_t granules_ = 0;
  std::vector<std::byte> data_;
  std::vector<std::uint32_t> writes_;  // [granule]: AccessStamp of the last write
  std::vector<std::uint32_t> reads_;   // [warp, granule]: AccessStamp of the warp's last read
};

}  // namespace hcp::ptx
