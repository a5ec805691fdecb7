// mov, with packing and unpacking of lists, and cvta
#include <string>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

struct Same {
  template <typename T>
  static T of(T a) {
    return a;
  }
};

// operands: whole, then the parts, the lowest first; element_bytes: of a part
template <typename Whole, typename Part>
void pack(Warp& warp, const Instruction& instruction, LaneMask mask) {
  auto* whole = warp.destination<Whole>(instruction.operands[0]);
  for_each_lane(mask, [&](int lane) {
    Whole bits = 0;
    for (std::size_t part = 0; part < sizeof(Whole) / sizeof(Part); ++part) {
      const Whole value = warp.source<Part>(instruction.operands[part + 1])[lane];
      bits = static_cast<Whole>(bits | static_cast<Whole>(value << (8 * sizeof(Part) * part)));
    }
    whole[lane] = bits;
  });
}

template <typename Whole, typename Part>
void unpack(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto* whole = warp.source<Whole>(instruction.operands[0]);
  for_each_lane(mask, [&](int lane) {
    const Whole bits = whole[lane];
    for (std::size_t part = 0; part < sizeof(Whole) / sizeof(Part); ++part) {
      warp.destination<Part>(instruction.operands[part + 1])[lane] =
          static_cast<Part>(bits >> (8 * sizeof(Part) * part));
    }
  });
}

void decode_list(Decoding& decoding, ScalarType type, bool packs) {
  const std::size_t count = decoding.operand(packs ? 1 : 0).elements.size();
  const auto& parts = decoding.list(packs ? 1 : 0, count);
  const int part_bytes = count == 0 ? 0 : bytes_of(type) / static_cast<int>(count);
  const bool by_four = bytes_of(type) == 8 && part_bytes == 2;
  if (!by_four && (count != 2 || part_bytes < 2)) {
    decoding.refuse("a list of " + std::to_string(count) + " parts");
  }
  const ScalarType part_type = part_bytes == 2 ? ScalarType::b16 : ScalarType::b32;
  auto& operands = decoding.result.operands;
  operands[0] = packs ? decoding.destination(0, type) : decoding.source(1, type);
  for (std::size_t i = 0; i < count; ++i) {
    operands[i + 1] =
        packs ? decoding.source(parts[i], part_type) : decoding.destination(parts[i], part_type);
  }
  if (bytes_of(type) == 4) {
    decoding.result.execute =
        packs ? pack<std::uint32_t, std::uint16_t> : unpack<std::uint32_t, std::uint16_t>;
  } else if (part_bytes == 4) {
    decoding.result.execute =
        packs ? pack<std::uint64_t, std::uint32_t> : unpack<std::uint64_t, std::uint32_t>;
  } else {
    decoding.result.execute =
        packs ? pack<std::uint64_t, std::uint16_t> : unpack<std::uint64_t, std::uint16_t>;
  }
}

void decode_mov(Decoding& decoding) {
  const ScalarType type = decoding.type();
  decoding.expect_operands(2);
  const bool packs = decoding.operand(1).kind == OperandSyntax::Kind::list;
  if (packs || decoding.operand(0).kind == OperandSyntax::Kind::list) {
    decode_list(decoding, type, packs);
    return;
  }
  take_operands(decoding, type, 1);
  decoding.result.execute =
      for_size(decoding, type, []<typename T>(T) -> Handler { return unary<T, T, Same>; });
}

template <std::uint64_t window>
struct IntoGeneric {
  static std::uint64_t of(std::uint64_t address) { return address + window; }
};
struct OutOfGeneric {
  static std::uint64_t of(std::uint64_t address) { return address & generic_offset_mask; }
};

// cvta{.to}.space.u64: generic addresses of global and constant memory are those of the host
void decode_cvta(Decoding& decoding) {
  const bool to = decoding.take("to");
  const std::string space =
      decoding.take_one_of({"global", "const", "shared::cta", "shared", "local", "param::entry", "param"});
  take_operands(decoding, decoding.type_of({ScalarType::u64}), 1);
  Handler& execute = decoding.result.execute;
  if (space == "global" || space == "const") {
    execute = unary<std::uint64_t, std::uint64_t, Same>;
  } else if (space.empty()) {
    decoding.refuse("state space");
  } else if (to) {
    execute = unary<std::uint64_t, std::uint64_t, OutOfGeneric>;
  } else if (space.starts_with("shared")) {
    execute = unary<std::uint64_t, std::uint64_t, IntoGeneric<generic_shared>>;
  } else if (space == "local") {
    execute = unary<std::uint64_t, std::uint64_t, IntoGeneric<generic_local>>;
  } else {
    execute = unary<std::uint64_t, std::uint64_t, IntoGeneric<generic_param>>;
  }
}

}  // namespace

void add_move_opcodes(OpcodeTable& table) {
  table.add("mov", {TypeClass::integer, TypeClass::half, TypeClass::single_or_double}, decode_mov);
  table.add("cvta", {TypeClass::integer}, decode_cvta);
}

}  // namespace hcp::ptx
