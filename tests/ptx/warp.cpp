#include "tests/ptx/warp.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_loop.hpp"

namespace hcp::ptx {

namespace {

constexpr std::size_t vector_bytes = 64;  // rows of registers begin at a multiple

}  // namespace

Warp::Warp(Block& block, int id)
    : block_{block},
      launch_{block.launch()},
      id_{id},
      register_storage_((launch_.kernel.register_bytes + vector_bytes) / sizeof(std::uint64_t) + 1),
      constants_{reinterpret_cast<const std::byte*>(launch_.kernel.constants.data())},
      local_(static_cast<std::size_t>(launch_.kernel.local_bytes) * warp_lanes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(register_storage_.data());
  registers_ = reinterpret_cast<std::byte*>((begin + vector_bytes - 1) / vector_bytes * vector_bytes);
}

void Warp::reset() {
  std::ranges::fill(register_storage_, ~std::uint64_t{0});  // NaN
  std::ranges::fill(local_, std::byte{0xff});
  const std::uint32_t first = static_cast<std::uint32_t>(id_ * warp_lanes);
  const std::uint32_t threads = std::min<std::uint32_t>(launch_.threads() - first, warp_lanes);
  live_ = threads == warp_lanes ? all_lanes : (1U << threads) - 1;
  current_ = {0, live_, false};
  others_.clear();
  at_barrier_ = false;
  clock_ = WarpClock{id_};
  async_copies_.reset();
  set_special_registers();
}

void Warp::set_special_registers() {
  for (const Kernel::Special& special : launch_.kernel.specials) {
    auto* values = destination<std::uint32_t>(special.place);
    for (int lane = 0; lane < warp_lanes; ++lane) {
      values[lane] = special_value(special.which, lane);
    }
  }
}

std::uint32_t Warp::special_value(SpecialRegister which, int lane) const {
  const std::uint32_t thread = static_cast<std::uint32_t>(id_ * warp_lanes + lane);
  const Extent& ntid = launch_.block;
  const std::uint32_t bit = 1U << lane;
  switch (which) {
    case SpecialRegister::tid_x:
      return thread % ntid[0];
    case SpecialRegister::tid_y:
      return thread / ntid[0] % ntid[1];
    case SpecialRegister::tid_z:
      return thread / (ntid[0] * ntid[1]);
    case SpecialRegister::ntid_x:
      return ntid[0];
    case SpecialRegister::ntid_y:
      return ntid[1];
    case SpecialRegister::ntid_z:
      return ntid[2];
    case SpecialRegister::ctaid_x:
      return block_.index()[0];
    case SpecialRegister::ctaid_y:
      return block_.index()[1];
    case SpecialRegister::ctaid_z:
      return block_.index()[2];
    case SpecialRegister::nctaid_x:
      return launch_.grid[0];
    case SpecialRegister::nctaid_y:
      return launch_.grid[1];
    case SpecialRegister::nctaid_z:
      return launch_.grid[2];
    case SpecialRegister::laneid:
      return static_cast<std::uint32_t>(lane);
    case SpecialRegister::warpid:
      return static_cast<std::uint32_t>(id_);
    case SpecialRegister::nwarpid:
      return static_cast<std::uint32_t>(launch_.warps());
    case SpecialRegister::lanemask_eq:
      return bit;
    case SpecialRegister::lanemask_le:
      return bit | (bit - 1);
    case SpecialRegister::lanemask_lt:
      return bit - 1;
    case SpecialRegister::lanemask_ge:
      return ~(bit - 1);
    case SpecialRegister::lanemask_gt:
      return ~(bit | (bit - 1));
    case SpecialRegister::dynamic_smem_size:
      return launch_.dynamic_shared_bytes;
    case SpecialRegister::total_smem_size:
      return launch_.shared_bytes();
  }
  return 0;
}

Warp::Stop Warp::run() {
  const std::vector<Instruction>& code = launch_.kernel.code;
  Counters& counters = block_.counters();
  while (live_ != 0 && !block_.has_failed()) {
    if (current_.mask == 0 || (!others_.empty() && must_regroup())) {
      if (!regroup()) {
        report_divergence();
        block_.fail();
        break;
      }
    }
    const Instruction& instruction = code[static_cast<std::size_t>(current_.pc)];
    if (++counters.warp_instructions > launch_.options.max_warp_instructions) {
      report(instruction, FindingKind::deadlock, std::countr_zero(current_.mask), 0,
             "the block executes more instructions than allowed: an endless loop");
      block_.fail();
      break;
    }
    if (step(instruction)) {
      return Stop::at_barrier;
    }
  }
  return Stop::ended;
}

// Returns whether the warp must wait for others.
bool Warp::step(const Instruction& instruction) {
  const LaneMask active = current_.mask & (*source<LaneMask>(instruction.guard) ^ instruction.guard_flip);
  if (active != 0) {
    switch (instruction.flow) {
      case Flow::step:
        ++block_.counters().by_kind[static_cast<std::size_t>(instruction.kind)];
        instruction.execute(*this, instruction, active);
        break;
      case Flow::branch:
        branch(instruction, active);
        return false;
      case Flow::exit:
        exit(instruction, active);
        return false;
      case Flow::warp_sync:
      case Flow::block_sync:
        return synchronise(instruction, active);
    }
  }
  ++current_.pc;
  return false;
}

void Warp::branch(const Instruction& instruction, LaneMask taken) {
  if (taken != current_.mask) {
    leave(current_.pc + 1, current_.mask & ~taken, false);
    current_.mask = taken;
  }
  current_.pc = instruction.target;
}

void Warp::exit(const Instruction& instruction, LaneMask ends) {
  if (const LaneMask pending = async_copies_.pending(ends); pending != 0) {
    report(instruction, FindingKind::async_copy, std::countr_zero(pending), 0,
           "a thread ends with a cp.async that it has not waited for");
  }
  live_ &= ~ends;
  current_.mask &= ~ends;
  ++current_.pc;
  for (LaneGroup& group : others_) {  // which may have waited for these lanes only
    group.waits = false;
  }
}

bool Warp::must_regroup() const {
  return std::ranges::any_of(others_, [&](const LaneGroup& group) {
    return group.pc == current_.pc || (!group.waits && group.pc < current_.pc);
  });
}

void Warp::leave(std::int32_t pc, LaneMask mask, bool waits) {
  const auto same = std::ranges::find(others_, pc, &LaneGroup::pc);
  if (same == others_.end()) {
    others_.push_back({pc, mask, waits});
  } else {
    same->mask |= mask;
    same->waits = same->waits && waits;
  }
}

// The lanes with the smallest position in the code go on; false if all wait.
bool Warp::regroup() {
  if (current_.mask != 0) {
    const LaneGroup stopped = std::exchange(current_, {});
    leave(stopped.pc, stopped.mask, false);
  }
  auto next = others_.end();
  for (auto group = others_.begin(); group != others_.end(); ++group) {
    if (!group->waits && (next == others_.end() || group->pc < next->pc)) {
      next = group;
    }
  }
  if (next == others_.end()) {
    return false;
  }
  current_ = *next;
  others_.erase(next);
  return true;
}

bool Warp::synchronise(const Instruction& instruction, LaneMask arrived) {
  const std::int32_t pc = current_.pc;
  const LaneMask together = complete_members(instruction, arrived);
  if (together == 0) {  // wait for others
    if (const LaneMask skips = current_.mask & ~arrived; skips != 0) {
      leave(pc + 1, skips, false);
    }
    leave(pc, arrived, true);
    current_.mask = 0;
    return false;
  }
  ++block_.counters().by_kind[static_cast<std::size_t>(instruction.kind)];
  instruction.execute(*this, instruction, together);
  if (together != arrived) {
    leave(pc, arrived & ~together, false);
    current_.mask &= ~(arrived & ~together);
  }
  ++current_.pc;
  return instruction.flow == Flow::block_sync && at_barrier_;
}

// Lanes that name the same members, all of which are there or have ended; 0 if there are none.
LaneMask Warp::complete_members(const Instruction& instruction, LaneMask arrived) {
  const auto* member_masks = source<std::uint32_t>(instruction.member_mask);
  if (member_masks[0] == all_lanes && instruction.member_mask.is_constant()) {
    return (live_ & ~arrived) == 0 ? arrived : 0;
  }
  for (LaneMask rest = arrived; rest != 0;) {
    const std::uint32_t members = member_masks[std::countr_zero(rest)];
    LaneMask together = 0;
    for_each_lane(
        rest, [&](int lane) { together |= static_cast<LaneMask>(member_masks[lane] == members) << lane; });
    if ((together & ~members) != 0) {
      report(instruction, FindingKind::divergence, std::countr_zero(together & ~members), 0,
             "the lane is not in its own member mask");
    }
    if ((members & live_ & ~together) == 0) {
      return together;
    }
    rest &= ~together;
  }
  return 0;
}

void Warp::report_divergence() {
  for (const LaneGroup& group : others_) {
    report(launch_.kernel.code[static_cast<std::size_t>(group.pc)], FindingKind::divergence,
           std::countr_zero(group.mask), 0,
           "lanes wait here for lanes that wait at another synchronising instruction");
  }
}

void Warp::synchronise_lanes(LaneMask mask) {
  if ((live_ & ~mask) == 0) {
    clock_.tick(launch_.warps());
  }
}

const Instruction& Warp::instruction_before() const {
  return launch_.kernel.code[static_cast<std::size_t>(current_.pc - 1)];
}

void Warp::report(const Instruction& instruction, FindingKind kind, int lane, std::uint64_t address,
                  const std::string& message) {
  const auto index = static_cast<std::size_t>(&instruction - launch_.kernel.code.data());
  Finding finding;
  finding.kind = kind;
  finding.message = message;
  finding.warp = id_;
  finding.lane = lane;
  finding.address = address;
  finding.line = instruction.line;
  finding.instruction = launch_.kernel.texts[index];
  finding.place = launch_.kernel.places[index];
  block_.report(std::move(finding));
}

}  // namespace hcp::ptx
