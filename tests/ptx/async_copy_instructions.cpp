// cp.async, its groups and waits
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

// addresses: target in shared, source in global memory; operands: bytes of the source (may not exist)
void issue(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const std::uint32_t bytes = instruction.element_bytes;
  const LaneAddresses targets = warp.addresses(instruction.addresses[0]);
  const LaneAddresses sources = warp.addresses(instruction.addresses[1]);
  AsyncCopies::Batch batch;
  batch.bytes = bytes;
  batch.source_bytes.fill(bytes);
  LaneMask whole = mask;  // lanes that read all of the bytes
  LaneMask readable = 0;
  if (instruction.operands[0].exists()) {
    const auto* counts = warp.source<std::uint32_t>(instruction.operands[0]);
    for_each_lane(mask, [&](int lane) {
      std::uint32_t& count = batch.source_bytes[static_cast<std::size_t>(lane)];
      count = std::min(counts[lane], bytes);
      const LaneMask bit = 1U << lane;
      whole &= count == bytes ? all_lanes : ~bit;
      if (count > 0 && count < bytes) {
        readable |= warp.access_global({instruction, bit, sources, count, AccessKind::read, bytes});
      }
    });
  }
  if (whole != 0) {
    readable |= warp.access_global({instruction, whole, sources, bytes, AccessKind::read});
  }
  batch.lanes = warp.issue_async_copy({instruction, mask, targets, bytes, AccessKind::write});
  for_each_lane(batch.lanes, [&](int lane) {
    const auto l = static_cast<std::size_t>(lane);
    batch.target[l] = static_cast<std::uint32_t>(targets[l]);
    batch.source[l] = sources[l];
    std::memset(warp.shared_data(targets[l]), 0xff, bytes);  // NaN until it lands
    if ((readable >> lane & 1) == 0) {
      batch.source_bytes[l] = 0;
    }
  });
  warp.async_copies().add(batch);
}

void commit(Warp& warp, const Instruction&, LaneMask mask) {
  warp.async_copies().commit(mask);
}

void wait(Warp& warp, const Instruction& instruction, LaneMask mask) {
  warp.async_copies().wait(warp, mask, instruction.immediate);
}

void wait_all(Warp& warp, const Instruction&, LaneMask mask) {
  warp.async_copies().wait_all(warp, mask);
}

void decode_issue(Decoding& decoding) {
  const bool global_only = decoding.take_one_of({"ca", "cg"}) == "cg";
  if (decoding.take_one_of({"shared::cta", "shared"}).empty()) {
    decoding.refuse("state space");
  }
  decoding.require("global");
  decoding.take_one_of({"L2::64B", "L2::128B", "L2::256B"});
  const std::size_t count = decoding.operand_count();
  if (count != 3 && count != 4) {
    decoding.expect_operands(4);
  }
  Instruction& result = decoding.result;
  result.addresses[0] = decoding.address(0);
  result.addresses[1] = decoding.address(1);
  const std::uint64_t bytes = decoding.immediate(2);
  if (bytes != 16 && (global_only || (bytes != 4 && bytes != 8))) {
    decoding.refuse("a copy of " + std::to_string(bytes) + " bytes");
  }
  result.element_bytes = static_cast<std::uint8_t>(bytes);
  if (count == 4) {
    result.operands[0] = decoding.source(3, ScalarType::u32);
  }
  result.kind = InstructionKind::async_copy;
  result.execute = issue;
}

void decode_cp(Decoding& decoding) {
  decoding.require("async");
  Instruction& result = decoding.result;
  if (decoding.take("commit_group")) {
    decoding.expect_operands(0);
    result.execute = commit;
  } else if (decoding.take("wait_group")) {
    decoding.expect_operands(1);
    result.immediate = static_cast<std::uint32_t>(decoding.immediate(0));
    result.execute = wait;
  } else if (decoding.take("wait_all")) {
    decoding.expect_operands(0);
    result.execute = wait_all;
  } else {
    decode_issue(decoding);
  }
}

}  // namespace

void add_async_copy_opcodes(OpcodeTable& table) {
  table.add("cp", {TypeClass::none}, decode_cp);
}

}  // namespace hcp::ptx
