// atom and red on global memory, relaxed: they order nothing
#include <cstring>
#include <string>

#include "tests/ptx/integer_operations.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

struct AddReals {
  template <typename T>
  static T of(T old, T b) {
    return old + b;
  }
};
struct Exchange {
  template <typename T>
  static T of(T, T b) {
    return b;
  }
};
struct CompareAndSwap {
  template <typename T>
  static T of(T old, T expected, T wanted) {
    return old == expected ? wanted : old;
  }
};

// operands: old value (red: none), b, c (cas only)
template <typename T, typename Operation>
void change(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LaneAddresses addresses = warp.addresses(instruction.addresses[0]);
  const auto lock = warp.lock_global_memory();
  const LaneMask allowed = warp.access_global({instruction, mask, addresses, sizeof(T), AccessKind::atomic});
  const T* b = warp.source<T>(instruction.operands[1]);
  const T* c = instruction.operands[2].exists() ? warp.source<T>(instruction.operands[2]) : b;
  T* result = instruction.operands[0].exists() ? warp.destination<T>(instruction.operands[0]) : nullptr;
  for_each_lane(allowed, [&](int lane) {
    auto* place = reinterpret_cast<void*>(addresses[static_cast<std::size_t>(lane)]);
    T old;
    std::memcpy(&old, place, sizeof(T));
    T changed;
    if constexpr (requires { Operation::of(old, b[lane]); }) {
      changed = Operation::of(old, b[lane]);
    } else {
      changed = Operation::of(old, b[lane], c[lane]);
    }
    std::memcpy(place, &changed, sizeof(T));
    if (result != nullptr) {
      result[lane] = old;
    }
  });
}

template <typename Operation>
Handler on_integers(const Decoding& decoding, ScalarType type) {
  if (bytes_of(type) < 4) {
    decoding.refuse("type");
  }
  return for_integer(decoding, type, []<typename T>(T) -> Handler {
    if constexpr (sizeof(T) < 4) {
      return nullptr;  // refused above
    } else {
      return change<T, Operation>;
    }
  });
}

Handler handler_for(const Decoding& decoding, const std::string& operation, ScalarType type) {
  const bool bits = type == ScalarType::b32 || type == ScalarType::b64;
  if (operation == "add" && type == ScalarType::f32) {
    return change<float, AddReals>;
  }
  if (operation == "add" && type == ScalarType::f64) {
    return change<double, AddReals>;
  }
  if (operation == "add" && !bits) {
    return on_integers<Add>(decoding, type);
  }
  if (operation == "min" && !bits) {
    return on_integers<Minimum>(decoding, type);
  }
  if (operation == "max" && !bits) {
    return on_integers<Maximum>(decoding, type);
  }
  if (operation == "and" && bits) {
    return on_integers<And>(decoding, type);
  }
  if (operation == "or" && bits) {
    return on_integers<Or>(decoding, type);
  }
  if (operation == "xor" && bits) {
    return on_integers<ExclusiveOr>(decoding, type);
  }
  if (operation == "exch" && bits) {
    return on_integers<Exchange>(decoding, type);
  }
  if (operation == "cas" && bits) {
    return on_integers<CompareAndSwap>(decoding, type);
  }
  decoding.refuse("atomic operation");
}

template <bool returns>
void decode_atomic(Decoding& decoding) {
  decoding.take("relaxed");
  decoding.take_one_of({"cta", "gpu", "sys"});
  decoding.require("global");  // those on shared memory are not known
  const std::string operation =
      decoding.take_one_of({"add", "min", "max", "and", "or", "xor", "exch", "cas"});
  const ScalarType type = decoding.type();
  const std::size_t address_at = returns ? 1 : 0;
  const bool three = operation == "cas";
  decoding.expect_operands(address_at + (three ? 3 : 2));
  Instruction& result = decoding.result;
  if (returns) {
    result.operands[0] = decoding.destination(0, type);
  }
  result.addresses[0] = decoding.address(address_at);
  result.operands[1] = decoding.source(address_at + 1, type);
  if (three) {
    result.operands[2] = decoding.source(address_at + 2, type);
  }
  result.kind = InstructionKind::global_store;
  result.execute = handler_for(decoding, operation, type);
}

}  // namespace

void add_atomic_opcodes(OpcodeTable& table) {
  table.add("atom", {TypeClass::integer, TypeClass::single_or_double}, decode_atomic<true>);
  table.add("red", {TypeClass::integer, TypeClass::single_or_double}, decode_atomic<false>);
}

}  // namespace hcp::ptx
