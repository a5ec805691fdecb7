// How a warp reaches memory: bounds, alignment, order and cost of every access.
#include <bit>
#include <optional>

#include "tests/ptx/access_costs.hpp"
#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_loop.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

LaneAddresses Warp::addresses(const Address& address) const {
  LaneAddresses result;
  const auto displacement = static_cast<std::uint64_t>(address.displacement);
  if (address.base_is_32_bit) {
    const auto* base = source<std::uint32_t>(address.base);
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      result[lane] = base[lane] + displacement;
    }
  } else {
    const auto* base = source<std::uint64_t>(address.base);
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      result[lane] = base[lane] + displacement;
    }
  }
  return result;
}

// The lanes whose bytes lie in [begin, begin + bytes), aligned to their size; the others are reported.
LaneMask Warp::inside(const WarpAccess& access, std::uint64_t begin, std::uint64_t bytes,
                      const char* memory) {
  const std::uint64_t room = bytes >= access.bytes ? bytes - access.bytes + 1 : 0;  // valid offsets
  LaneMask outside = 0;
  LaneMask misaligned = 0;
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    outside |= static_cast<LaneMask>(address - begin >= room) << lane;
    misaligned |= static_cast<LaneMask>((address & (access.bytes - 1)) != 0) << lane;
  }
  outside &= access.mask;
  misaligned &= access.mask & ~outside;
  const auto tell = [&](LaneMask lanes, FindingKind kind) {
    if (lanes != 0) {
      const int lane = std::countr_zero(lanes);
      report(access.instruction, kind, lane, access.addresses[static_cast<std::size_t>(lane)],
             std::to_string(access.bytes) + " bytes of " + memory + " memory, which has " +
                 std::to_string(bytes));
    }
  };
  tell(outside, FindingKind::out_of_bounds);
  tell(misaligned, FindingKind::misaligned);
  return access.mask & ~outside & ~misaligned;
}

LaneMask Warp::access_shared(const WarpAccess& access) {
  return note_shared(access, access.kind == AccessKind::read ? SharedNote::read : SharedNote::write);
}

LaneMask Warp::issue_async_copy(const WarpAccess& access) {
  return note_shared(access, SharedNote::async_issue);
}

LaneMask Warp::note_shared(const WarpAccess& access, SharedNote note) {
  const LaneMask allowed = inside(access, shared_window, launch_.shared_bytes(), "shared");
  Counters& counters = block_.counters();
  const std::uint64_t bytes = static_cast<std::uint64_t>(std::popcount(allowed)) * access.bytes;
  const bool reads = note == SharedNote::read;
  (reads ? counters.shared_load_bytes : counters.shared_store_bytes) += bytes;
  const BankPhases phases = bank_phases(access.addresses, allowed, access.bytes);
  counters.shared_phases += phases.taken;
  counters.shared_extra_phases += phases.taken - phases.needed;
  if (!launch_.options.races) {
    return allowed;
  }
  for_each_lane(allowed, [&](int lane) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    const SharedAccess one{clock_, lane, static_cast<std::uint32_t>(address - shared_window), access.bytes};
    SharedMemory& shared = block_.shared();
    const auto fault = reads                       ? shared.note_read(one)
                       : note == SharedNote::write ? shared.note_write(one)
                                                   : shared.note_async_issue(one);
    if (fault) {
      report(access.instruction, fault->kind, lane, address, fault->message);
    }
  });
  return allowed;
}

LaneMask Warp::access_global(const WarpAccess& access) {
  LaneMask allowed = access.mask;
  std::uint64_t bytes = 0;
  {
    const auto lock =
        access.kind == AccessKind::atomic ? std::unique_lock<std::mutex>{} : lock_global_memory();
    for_each_lane(access.mask, [&](int lane) {
      const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
      const auto fault =
          launch_.global.note({access.kind, clock_, block_.linear_index() + 1, block_.barriers_of_all(), lane,
                               address, access.bytes, access.alignment});
      if (fault) {
        report(access.instruction, fault->kind, lane, address, fault->message);
        const bool has_place =
            fault->kind == FindingKind::race || fault->kind == FindingKind::uninitialised_read;
        allowed &= ~(static_cast<LaneMask>(!has_place) << lane);
      }
      bytes += access.bytes;
    });
  }
  Counters& counters = block_.counters();
  const bool reads = access.kind == AccessKind::read;
  const std::uint32_t sectors = global_sectors(access.addresses, allowed);
  (reads ? counters.global_load_bytes : counters.global_store_bytes) += bytes;
  (reads ? counters.global_load_sectors : counters.global_store_sectors) += sectors;
  return allowed;
}

LaneMask Warp::access_local(const WarpAccess& access) {
  return inside(access, 0, launch_.kernel.local_bytes, "local");
}

LaneMask Warp::access_parameters(const WarpAccess& access) {
  return inside(access, 0, launch_.kernel.parameter_bytes, "parameter");
}

std::byte* Warp::shared_data(std::uint64_t address) {
  return block_.shared().data(static_cast<std::uint32_t>(address - shared_window));
}

std::byte* Warp::local_data(std::uint64_t address, int lane) {
  return local_.data() + static_cast<std::size_t>(lane) * launch_.kernel.local_bytes + address;
}

const std::byte* Warp::parameter_data(std::uint64_t address) const {
  return launch_.parameters.data() + address;
}

std::unique_lock<std::mutex> Warp::lock_global_memory() {
  std::unique_lock<std::mutex> lock{launch_.global.mutex(), std::defer_lock};
  if (launch_.options.threads > 1) {
    lock.lock();
  }
  return lock;
}

}  // namespace hcp::ptx
