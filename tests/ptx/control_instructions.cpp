// bra, ret, exit, trap, barriers and fences
#include "tests/ptx/control_instructions.hpp"

#include <bit>
#include <string>

#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

enum class BarrierReduction : std::uint32_t { none, popc, and_, or_ };

void no_operation(Warp&, const Instruction&, LaneMask) {}

void decode_bra(Decoding& decoding) {
  decoding.take("uni");
  decoding.expect_operands(1);
  decoding.result.execute = no_operation;
  decoding.result.flow = Flow::branch;
}

void decode_exit(Decoding& decoding) {
  decoding.take("uni");
  decoding.expect_operands(0);
  decoding.result.execute = no_operation;
  decoding.result.flow = Flow::exit;
}

void trap(Warp& warp, const Instruction& instruction, LaneMask mask) {
  warp.report(instruction, FindingKind::trap, std::countr_zero(mask), 0, "the kernel gives up");
  warp.block().fail();
}

void decode_trap(Decoding& decoding) {
  decoding.expect_operands(0);
  decoding.result.execute = trap;
}

// Whether memory is in order is asked of barriers alone.
void decode_fence(Decoding& decoding) {
  decoding.take_one_of({"sc", "acq_rel"});
  if (decoding.take_one_of({"cta", "gl", "gpu", "sys"}).empty()) {
    decoding.refuse("scope");
  }
  decoding.expect_operands(0);
  decoding.result.execute = no_operation;
}

void decode_nanosleep(Decoding& decoding) {
  (void)decoding.source(0, decoding.type_of({ScalarType::u32}));
  decoding.expect_operands(1);
  decoding.result.execute = no_operation;
}

void synchronise_warp(Warp& warp, const Instruction&, LaneMask mask) {
  warp.synchronise_lanes(mask);
}

// operands: predicate or 32-bit result (bar.red), barrier, threads, predicate (bar.red)
template <bool waits>
void arrive(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const int lane = std::countr_zero(mask);
  Arrival arrival;
  arrival.barrier = warp.source<std::uint32_t>(instruction.operands[1])[lane];
  arrival.waits = waits;
  if (instruction.operands[2].exists()) {
    arrival.threads = warp.source<std::uint32_t>(instruction.operands[2])[lane];
  }
  if (instruction.immediate != 0) {
    arrival.predicate = warp.predicate(instruction.operands[3]);
    arrival.reduction = &instruction;
  }
  const bool counted = instruction.operands[2].exists();
  if (arrival.barrier > 15 || (counted && (arrival.threads == 0 || arrival.threads % warp_lanes != 0))) {
    warp.report(instruction, FindingKind::bad_barrier, lane, 0,
                "barrier " + std::to_string(arrival.barrier) + " for " + std::to_string(arrival.threads) +
                    " threads: there are 16, for multiples of 32");
    warp.block().fail();
    return;
  }
  warp.block().arrive(warp, instruction, arrival);
}

void decode_warp_barrier(Decoding& decoding) {
  decoding.require("sync");
  decoding.expect_operands(1);
  decoding.result.execute = synchronise_warp;
  decoding.result.flow = Flow::warp_sync;
  decoding.result.member_mask = decoding.source(0, ScalarType::b32);
}

void take_barrier(Decoding& decoding, std::size_t index, bool has_threads) {
  Instruction& result = decoding.result;
  result.operands[1] = decoding.source(index, ScalarType::u32);
  if (has_threads) {
    result.operands[2] = decoding.source(index + 1, ScalarType::u32);
  }
  result.kind = InstructionKind::barrier;
  result.flow = Flow::block_sync;
  result.member_mask = decoding.kernel().always();
}

// bar.red.popc.u32 d, barrier{, threads}, {!}p; .and and .or give a predicate
void decode_reducing_barrier(Decoding& decoding) {
  const std::string operation = decoding.take_one_of({"popc", "and", "or"});
  decoding.take("aligned");
  const ScalarType type = decoding.type_of({operation == "popc" ? ScalarType::u32 : ScalarType::pred});
  const std::size_t count = decoding.operand_count();
  if (operation.empty() || count < 3 || count > 4) {
    decoding.refuse("reduction");
  }
  take_barrier(decoding, 1, count == 4);
  Instruction& result = decoding.result;
  const bool counts = type == ScalarType::u32;
  result.operands[0] = counts ? decoding.destination(0, type) : decoding.predicate(std::size_t{0});
  result.operands[3] = decoding.predicate(count - 1);
  result.immediate = static_cast<std::uint32_t>(counts               ? BarrierReduction::popc
                                                : operation == "and" ? BarrierReduction::and_
                                                                     : BarrierReduction::or_);
  result.execute = arrive<true>;
}

// bar{.cta} and barrier{.cta}; the latter is asked for whole warps too
void decode_barrier(Decoding& decoding) {
  decoding.take("cta");
  if (decoding.take("warp")) {
    decode_warp_barrier(decoding);
  } else if (decoding.take("red")) {
    decode_reducing_barrier(decoding);
  } else {
    const bool waits = decoding.take_one_of({"sync", "arrive"}) == "sync";
    decoding.take("aligned");
    const std::size_t count = decoding.operand_count();
    if (count < (waits ? 1U : 2U) || count > 2) {
      decoding.expect_operands(2);
    }
    take_barrier(decoding, 0, count == 2);
    decoding.result.execute = waits ? arrive<true> : arrive<false>;
  }
}

}  // namespace

void write_barrier_reduction(Warp& warp, const Instruction& instruction, std::uint32_t true_threads,
                             std::uint32_t threads) {
  const auto reduction = static_cast<BarrierReduction>(instruction.immediate);
  if (reduction == BarrierReduction::popc) {
    set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), warp.live(),
              [=](int) { return true_threads; });
    return;
  }
  const bool result = reduction == BarrierReduction::and_ ? true_threads == threads : true_threads > 0;
  warp.set_predicate(instruction.operands[0], result ? all_lanes : 0, warp.live());
}

void add_control_opcodes(OpcodeTable& table) {
  table.add("bra", {TypeClass::none}, decode_bra);
  table.add("ret", {TypeClass::none}, decode_exit);
  table.add("exit", {TypeClass::none}, decode_exit);
  table.add("trap", {TypeClass::none}, decode_trap);
  table.add("membar", {TypeClass::none}, decode_fence);
  table.add("fence", {TypeClass::none}, decode_fence);
  table.add("nanosleep", {TypeClass::integer}, decode_nanosleep);
  table.add("bar", {TypeClass::none, TypeClass::integer, TypeClass::predicate}, decode_barrier);
  table.add("barrier", {TypeClass::none, TypeClass::integer, TypeClass::predicate}, decode_barrier);
}

}  // namespace hcp::ptx
