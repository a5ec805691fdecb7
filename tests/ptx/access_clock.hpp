/// Who accessed a word when, and what is ordered before what: vector clocks of the warps of a block.
///
/// A warp's clock goes up whenever it synchronises. An access is stamped with warp, lane and the warp's
/// clock. It is ordered before a later access of warp w if w knows of that clock: through a barrier that both
/// took part in, or, in the same warp, because the clock has gone up since (the same lane is always in order
/// with itself).
///
/// @source Flanagan, Freund 2009, FastTrack (epochs instead of vectors per word)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace hcp::ptx {

constexpr int max_warps = 32;  ///< of a block

/// Stamp of an access: clock (20 bits), warp (5), lane (6; several_lanes: more than one). 0: no access.
class AccessStamp {
 public:
  static constexpr std::uint32_t several_lanes = 63;
  static constexpr std::uint32_t pending_bit = 1U << 31;  ///< the target of a cp.async that nobody waited for
  static constexpr int clock_shift = 11;

  AccessStamp() = default;
  explicit AccessStamp(std::uint32_t bits) : bits_{bits} {}
  AccessStamp(std::uint32_t clock, int warp, int lane)
      : bits_{clock << clock_shift | static_cast<std::uint32_t>(warp) << 6 |
              static_cast<std::uint32_t>(lane)} {}

  [[nodiscard]] std::uint32_t bits() const { return bits_; }
  [[nodiscard]] bool exists() const { return bits_ != 0; }
  [[nodiscard]] bool is_pending() const { return (bits_ & pending_bit) != 0; }
  [[nodiscard]] std::uint32_t clock() const { return (bits_ & ~pending_bit) >> clock_shift; }
  [[nodiscard]] int warp() const { return static_cast<int>(bits_ >> 6 & 31); }
  [[nodiscard]] std::uint32_t lane() const { return bits_ & 63; }

 private:
  std::uint32_t bits_ = 0;
};

/// What one warp knows.
class WarpClock {
 public:
  WarpClock() = default;
  explicit WarpClock(int warp) : warp_{warp} {
    known_[index(warp)] = 1;
    find_floor(1);
  }

  [[nodiscard]] int warp() const { return warp_; }
  /// The clock of this warp's next access.
  [[nodiscard]] std::uint32_t now() const { return known_[index(warp_)]; }
  [[nodiscard]] std::uint32_t known(int warp) const { return known_[index(warp)]; }
  /// Every access with a clock of at most this is ordered before this warp's next one, whoever made it.
  [[nodiscard]] std::uint32_t floor() const { return floor_; }

  /// Does the access `earlier` come before the next one of `lane` of this warp?
  [[nodiscard]] bool is_ordered(AccessStamp earlier, int lane) const {
    if (earlier.warp() == warp_) {
      return earlier.clock() < now() || earlier.lane() == static_cast<std::uint32_t>(lane);
    }
    return earlier.clock() <= known(earlier.warp());
  }

  /// Takes over what `other` knows; for the join of a barrier.
  void join(const WarpClock& other) {
    for (std::size_t warp = 0; warp < known_.size(); ++warp) {
      known_[warp] = std::max(known_[warp], other.known_[warp]);
    }
  }

  /// The warp has synchronised; there are `warps` of them.
  void tick(int warps) {
    if (++known_[index(warp_)] >= 1U << 20) {
      throw std::runtime_error{"a warp synchronises more often than the race check can count"};
    }
    find_floor(warps);
  }

 private:
  static std::size_t index(int warp) { return static_cast<std::size_t>(warp); }

  void find_floor(int warps) {
    floor_ = now() - 1;
    for (int other = 0; other < warps; ++other) {
      floor_ = other == warp_ ? floor_ : std::min(floor_, known(other));
    }
  }

  int warp_ = 0;
  std::uint32_t floor_ = 0;
  std::array<std::uint32_t, max_warps> known_{};
};

}  // namespace hcp::ptx
