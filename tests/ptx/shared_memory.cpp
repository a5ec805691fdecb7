#include "tests/ptx/shared_memory.hpp"

#include <algorithm>
#include <bit>

namespace hcp::ptx {

SharedMemory::SharedMemory(std::uint32_t bytes, std::uint32_t granule, int warps)
    : bytes_{bytes},
      granule_shift_{static_cast<std::uint32_t>(std::countr_zero(granule))},
      warps_{warps},
      granules_{(bytes + granule - 1) / granule},
      data_(bytes),
      writes_(granules_),
      reads_(granules_ * static_cast<std::size_t>(warps)) {}

void SharedMemory::reset() {
  std::ranges::fill(data_, std::byte{0xff});
  std::ranges::fill(writes_, 0);
  std::ranges::fill(reads_, 0);
}

SharedMemory::Granules SharedMemory::granules(const SharedAccess& access) const {
  const std::size_t begin = access.offset >> granule_shift_;
  const std::size_t end = ((access.offset + access.bytes - 1) >> granule_shift_) + 1;
  return {begin, end - begin};
}

Fault SharedMemory::explain(const SharedAccess& access, AccessStamp earlier, const char* order) const {
  if (earlier.is_pending()) {
    return {FindingKind::async_copy, "shared memory is touched that a cp.async of warp " +
                                         std::to_string(earlier.warp()) + ", lane " +
                                         std::to_string(earlier.lane()) + " still fills"};
  }
  return {FindingKind::race,
          std::string{order} + " on shared memory, after an access of warp " +
              std::to_string(earlier.warp()) +
              (earlier.lane() == AccessStamp::several_lanes ? ", several lanes"
                                                            : ", lane " + std::to_string(earlier.lane())) +
              (earlier.warp() == access.clock.warp() ? " without __syncwarp between" : "")};
}

std::optional<Fault> SharedMemory::note_read(const SharedAccess& access) {
  const Granules range = granules(access);
  const std::uint32_t* writes = writes_.data() + range.begin;
  // One comparison finds what needs a closer look: never written (0 - 1 is large), pending (the highest bit),
  // and everything above the clock up to which all is in order.
  const std::uint32_t limit = ((access.clock.floor() + 1) << AccessStamp::clock_shift) - 1;
  std::uint32_t suspicious = 0;
  for (std::size_t i = 0; i < range.count; ++i) {
    suspicious |= static_cast<std::uint32_t>(writes[i] - 1 >= limit);
  }
  std::optional<Fault> fault;
  for (std::size_t i = 0; suspicious != 0 && i < range.count && !fault; ++i) {
    const AccessStamp earlier{writes[i]};
    if (!earlier.exists()) {
      fault = Fault{FindingKind::uninitialised_read, "shared memory is read that nobody has written"};
    } else if (earlier.is_pending() || !access.clock.is_ordered(earlier, access.lane)) {
      fault = explain(access, earlier, "read after write");
    }
  }
  const std::uint32_t mine = AccessStamp{access.clock.now(), access.clock.warp(), access.lane}.bits();
  std::uint32_t* reads =
      reads_.data() + static_cast<std::size_t>(access.clock.warp()) * granules_ + range.begin;
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::uint32_t difference = reads[i] ^ mine;
    const bool other_lane = difference != 0 && difference < 64;  // same clock, same warp
    reads[i] = other_lane ? mine | AccessStamp::several_lanes : mine;
  }
  return fault;
}

std::optional<Fault> SharedMemory::check_readers(const SharedAccess& access, Granules range) {
  for (int warp = 0; warp < warps_; ++warp) {
    const std::uint32_t* reads = reads_.data() + static_cast<std::size_t>(warp) * granules_ + range.begin;
    const std::uint32_t in_order =
        warp == access.clock.warp() ? access.clock.now() - 1 : access.clock.known(warp);
    const std::uint32_t limit = (in_order + 1) << AccessStamp::clock_shift;
    for (std::size_t i = 0; i < range.count; ++i) {
      if (reads[i] >= limit && !access.clock.is_ordered(AccessStamp{reads[i]}, access.lane)) {
        return explain(access, AccessStamp{reads[i]}, "write after read");
      }
    }
  }
  return std::nullopt;
}

void SharedMemory::stamp(const SharedAccess& access, Granules range, std::uint32_t extra_bits) {
  const AccessStamp mine{access.clock.now(), access.clock.warp(), access.lane};
  std::fill_n(writes_.begin() + static_cast<std::ptrdiff_t>(range.begin), range.count,
              mine.bits() | extra_bits);
}

std::optional<Fault> SharedMemory::note_write(const SharedAccess& access) {
  const Granules range = granules(access);
  const std::uint32_t* writes = writes_.data() + range.begin;
  const std::uint32_t limit = (access.clock.floor() + 1) << AccessStamp::clock_shift;
  std::optional<Fault> fault = check_readers(access, range);
  for (std::size_t i = 0; i < range.count && !fault; ++i) {
    const AccessStamp earlier{writes[i]};
    if (writes[i] >= limit && (earlier.is_pending() || !access.clock.is_ordered(earlier, access.lane))) {
      fault = explain(access, earlier, "write after write");
    }
  }
  stamp(access, range, 0);
  return fault;
}

std::optional<Fault> SharedMemory::note_async_issue(const SharedAccess& access) {
  std::optional<Fault> fault = note_write(access);
  stamp(access, granules(access), AccessStamp::pending_bit);
  return fault;
}

void SharedMemory::note_async_landing(const SharedAccess& access) {
  stamp(access, granules(access), 0);
}

}  // namespace hcp::ptx
