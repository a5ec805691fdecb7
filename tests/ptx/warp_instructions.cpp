// shfl.sync, vote.sync, match.any.sync, redux.sync, activemask
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "tests/ptx/integer_operations.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

enum class ShuffleMode : std::uint32_t { up, down, bfly, idx };

struct ShuffleSource {
  int lane = 0;
  bool in_range = false;
};

// @source PTX ISA 9.0, shfl.sync: c holds the clamp (bits 0 to 4) and the mask that parts the warp (bits 8 to
// 12)
ShuffleSource shuffle_source(ShuffleMode mode, int lane, std::uint32_t b, std::uint32_t c) {
  const int by = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int first = lane & segment;
  const int last = first | (clamp & ~segment);
  int from = lane;
  bool in_range = false;
  switch (mode) {
    case ShuffleMode::up:
      from = lane - by;
      in_range = from >= last;
      break;
    case ShuffleMode::down:
      from = lane + by;
      in_range = from <= last;
      break;
    case ShuffleMode::bfly:
      from = lane ^ by;
      in_range = from <= last;
      break;
    case ShuffleMode::idx:
      from = first | (by & ~segment);
      in_range = from <= last;
      break;
  }
  return {in_range ? from : lane, in_range};
}

// operands: d, p (may not exist), a, b, c
void shuffle(Warp& warp, const Instruction& instruction, LaneMask mask) {
  std::array<std::uint32_t, warp_lanes> values;
  std::memcpy(values.data(), warp.source<std::uint32_t>(instruction.operands[2]), sizeof(values));
  const auto* b = warp.source<std::uint32_t>(instruction.operands[3]);
  const auto* c = warp.source<std::uint32_t>(instruction.operands[4]);
  auto* result = warp.destination<std::uint32_t>(instruction.operands[0]);
  const auto mode = static_cast<ShuffleMode>(instruction.immediate);
  LaneMask in_range = 0;
  std::array<std::uint32_t, warp_lanes> received{};
  for_each_lane(mask, [&](int lane) {
    const ShuffleSource source = shuffle_source(mode, lane, b[lane], c[lane]);
    in_range |= static_cast<LaneMask>(source.in_range) << lane;
    if ((mask >> source.lane & 1) == 0) {
      warp.report(instruction, FindingKind::divergence, lane, 0,
                  "reads lane " + std::to_string(source.lane) + ", which does not take part");
    }
    received[static_cast<std::size_t>(lane)] = values[static_cast<std::size_t>(source.lane)];
  });
  set_lanes(result, mask, [&](int l) { return received[static_cast<std::size_t>(l)]; });
  if (instruction.operands[1].exists()) {
    warp.set_predicate(instruction.operands[1], in_range, mask);
  }
}

void take_member_mask(Decoding& decoding, std::size_t index) {
  decoding.result.flow = Flow::warp_sync;
  decoding.result.member_mask = decoding.source(index, ScalarType::b32);
}

void decode_shfl(Decoding& decoding) {
  decoding.require("sync");
  const std::string mode = decoding.take_one_of({"up", "down", "bfly", "idx"});
  (void)decoding.type_of({ScalarType::b32});
  decoding.expect_operands(5);
  if (mode.empty()) {
    decoding.refuse("mode");
  }
  Instruction& result = decoding.result;
  OperandSyntax destination = decoding.operand(0);
  if (!destination.second.empty()) {
    result.operands[1] = decoding.predicate(destination.second);
  }
  destination.second.clear();
  result.operands[0] = decoding.destination(destination, ScalarType::b32);
  for (std::size_t i = 2; i < 5; ++i) {
    result.operands[i] = decoding.source(i - 1, ScalarType::b32);
  }
  result.immediate = static_cast<std::uint32_t>(mode == "up"     ? ShuffleMode::up
                                                : mode == "down" ? ShuffleMode::down
                                                : mode == "bfly" ? ShuffleMode::bfly
                                                                 : ShuffleMode::idx);
  result.execute = shuffle;
  take_member_mask(decoding, 4);
}

// operands: d, predicate
void ballot(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LaneMask votes = warp.predicate(instruction.operands[1]) & mask;
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask, [=](int) { return votes; });
}

enum class Vote { all, any, uni };

template <Vote kind>
void vote(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LaneMask votes = warp.predicate(instruction.operands[1]) & mask;
  const bool result = kind == Vote::any   ? votes != 0
                      : kind == Vote::all ? votes == mask
                                          : votes == mask || votes == 0;
  warp.set_predicate(instruction.operands[0], result ? all_lanes : 0, mask);
}

void decode_vote(Decoding& decoding) {
  decoding.require("sync");
  const std::string mode = decoding.take_one_of({"all", "any", "uni", "ballot"});
  const bool is_ballot = mode == "ballot";
  (void)decoding.type_of({is_ballot ? ScalarType::b32 : ScalarType::pred});
  decoding.expect_operands(3);
  if (mode.empty()) {
    decoding.refuse("mode");
  }
  Instruction& result = decoding.result;
  result.operands[0] =
      is_ballot ? decoding.destination(0, ScalarType::b32) : decoding.predicate(std::size_t{0});
  result.operands[1] = decoding.predicate(std::size_t{1});
  result.execute = is_ballot       ? ballot
                   : mode == "all" ? vote<Vote::all>
                   : mode == "any" ? vote<Vote::any>
                                   : vote<Vote::uni>;
  take_member_mask(decoding, 2);
}

template <typename T>
void match_any(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const T* a = warp.source<T>(instruction.operands[1]);
  std::array<std::uint32_t, warp_lanes> equal{};
  for_each_lane(mask, [&](int lane) {
    for_each_lane(mask, [&](int other) {
      equal[static_cast<std::size_t>(lane)] |= static_cast<std::uint32_t>(a[lane] == a[other]) << other;
    });
  });
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask,
            [&](int l) { return equal[static_cast<std::size_t>(l)]; });
}

void decode_match(Decoding& decoding) {
  decoding.require("any");
  decoding.require("sync");
  const ScalarType type = decoding.type_of({ScalarType::b32, ScalarType::b64});
  decoding.expect_operands(3);
  decoding.result.operands[0] = decoding.destination(0, ScalarType::b32);
  decoding.result.operands[1] = decoding.source(1, type);
  decoding.result.execute = type == ScalarType::b32 ? match_any<std::uint32_t> : match_any<std::uint64_t>;
  take_member_mask(decoding, 2);
}

template <typename T, typename Operation>
void reduce(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const T* a = warp.source<T>(instruction.operands[1]);
  T total = a[std::countr_zero(mask)];
  for_each_lane(mask & (mask - 1), [&](int lane) { total = Operation::of(total, a[lane]); });
  set_lanes(warp.destination<T>(instruction.operands[0]), mask, [=](int) { return total; });
}

Handler reduction(const Decoding& decoding, const std::string& operation, ScalarType type) {
  const bool is_signed = type == ScalarType::s32;
  const bool bits = type == ScalarType::b32;
  if (operation == "add" && !bits) {
    return is_signed ? reduce<std::int32_t, Add> : reduce<std::uint32_t, Add>;
  }
  if (operation == "min" && !bits) {
    return is_signed ? reduce<std::int32_t, Minimum> : reduce<std::uint32_t, Minimum>;
  }
  if (operation == "max" && !bits) {
    return is_signed ? reduce<std::int32_t, Maximum> : reduce<std::uint32_t, Maximum>;
  }
  if (operation == "and" && bits) {
    return reduce<std::uint32_t, And>;
  }
  if (operation == "or" && bits) {
    return reduce<std::uint32_t, Or>;
  }
  if (operation == "xor" && bits) {
    return reduce<std::uint32_t, ExclusiveOr>;
  }
  decoding.refuse("reduction");
}

void decode_redux(Decoding& decoding) {
  decoding.require("sync");
  const std::string operation = decoding.take_one_of({"add", "min", "max", "and", "or", "xor"});
  const ScalarType type = decoding.type_of({ScalarType::u32, ScalarType::s32, ScalarType::b32});
  decoding.expect_operands(3);
  decoding.result.operands[0] = decoding.destination(0, type);
  decoding.result.operands[1] = decoding.source(1, type);
  decoding.result.execute = reduction(decoding, operation, type);
  take_member_mask(decoding, 2);
}

void active_lanes(Warp& warp, const Instruction& instruction, LaneMask mask) {
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask, [=](int) { return mask; });
}

void decode_activemask(Decoding& decoding) {
  (void)decoding.type_of({ScalarType::b32});
  decoding.expect_operands(1);
  decoding.result.operands[0] = decoding.destination(0, ScalarType::b32);
  decoding.result.execute = active_lanes;
}

}  // namespace

void add_warp_opcodes(OpcodeTable& table) {
  table.add("shfl", {TypeClass::integer}, decode_shfl);
  table.add("vote", {TypeClass::integer, TypeClass::predicate}, decode_vote);
  table.add("match", {TypeClass::integer}, decode_match);
  table.add("redux", {TypeClass::integer}, decode_redux);
  table.add("activemask", {TypeClass::integer}, decode_activemask);
}

}  // namespace hcp::ptx
