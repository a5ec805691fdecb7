// ld and st
#include <cstring>
#include <string>
#include <type_traits>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/memory_spaces.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

/// Where each lane's bytes lie on the host; for the lanes of `mask`.
struct LanePointers {
  std::array<std::byte*, warp_lanes> at{};
  LaneMask mask = 0;
};

void reach(Warp& warp, MemorySpace space, const WarpAccess& access, LanePointers& pointers) {
  LaneMask allowed = 0;
  const auto set = [&](auto&& place) {
    for_each_lane(allowed, [&](int lane) {
      pointers.at[static_cast<std::size_t>(lane)] =
          place(access.addresses[static_cast<std::size_t>(lane)], lane);
    });
  };
  switch (space) {
    case MemorySpace::global:
      allowed = warp.access_global(access);
      set([](std::uint64_t address, int) { return reinterpret_cast<std::byte*>(address); });
      break;
    case MemorySpace::shared:
      allowed = warp.access_shared(access);
      set([&](std::uint64_t address, int) { return warp.shared_data(address); });
      break;
    case MemorySpace::local:
      allowed = warp.access_local(access);
      set([&](std::uint64_t address, int lane) { return warp.local_data(address, lane); });
      break;
    case MemorySpace::param:  // only read
      allowed = access.kind == AccessKind::read ? warp.access_parameters(access) : 0;
      set([&](std::uint64_t address, int) { return const_cast<std::byte*>(warp.parameter_data(address)); });
      break;
    case MemorySpace::generic:
      for_each_space(access, [&](MemorySpace lanes_space, const WarpAccess& lanes) {
        reach(warp, lanes_space, lanes, pointers);
      });
      return;
  }
  pointers.mask |= allowed;
}

LanePointers reach(Warp& warp, const Instruction& instruction, LaneMask mask, AccessKind kind) {
  LanePointers pointers;
  const std::uint32_t bytes = static_cast<std::uint32_t>(instruction.element_bytes) * instruction.elements;
  const LaneAddresses addresses = warp.addresses(instruction.addresses[0]);
  reach(warp, static_cast<MemorySpace>(instruction.immediate), {instruction, mask, addresses, bytes, kind},
        pointers);
  return pointers;
}

// What may not be read becomes NaN.
template <typename Register, typename Memory>
void load(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LanePointers pointers = reach(warp, instruction, mask, AccessKind::read);
  for (std::size_t i = 0; i < instruction.elements; ++i) {
    auto* values = warp.destination<Register>(instruction.operands[i]);
    for_each_lane(mask, [&](int lane) {
      auto value = static_cast<Memory>(-1);
      if ((pointers.mask >> lane & 1) != 0) {
        std::memcpy(&value, pointers.at[static_cast<std::size_t>(lane)] + i * sizeof(Memory), sizeof(Memory));
      }
      values[lane] = static_cast<Register>(value);  // signed ones fill a wider register with their sign
    });
  }
}

template <typename Register, typename Memory>
void store(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LanePointers pointers = reach(warp, instruction, mask, AccessKind::write);
  for (std::size_t i = 0; i < instruction.elements; ++i) {
    const auto* values = warp.source<Register>(instruction.operands[i]);
    for_each_lane(pointers.mask, [&](int lane) {
      const auto value = static_cast<Memory>(values[lane]);
      std::memcpy(pointers.at[static_cast<std::size_t>(lane)] + i * sizeof(Memory), &value, sizeof(Memory));
    });
  }
}

// The parameter of a kernel at a place that is known: the same value for all lanes.
template <typename Register, typename Memory>
void load_parameter(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const std::byte* begin =
      warp.parameter_data(static_cast<std::uint64_t>(instruction.addresses[0].displacement));
  for (std::size_t i = 0; i < instruction.elements; ++i) {
    Memory value = 0;
    std::memcpy(&value, begin + i * sizeof(Memory), sizeof(Memory));
    set_lanes(warp.destination<Register>(instruction.operands[i]), mask,
              [=](int) { return static_cast<Register>(value); });
  }
}

template <typename Make>
Handler for_memory_type(ScalarType type, Make make) {
  switch (bytes_of(type)) {
    case 1:
      return type == ScalarType::s8 ? make(std::int8_t{}) : make(std::uint8_t{});
    case 2:
      return type == ScalarType::s16 ? make(std::int16_t{}) : make(std::uint16_t{});
    case 4:
      return type == ScalarType::s32 ? make(std::int32_t{}) : make(std::uint32_t{});
    default:
      return make(std::uint64_t{});
  }
}

template <typename Make>
Handler for_register(int bytes, Make make) {
  switch (bytes) {
    case 2:
      return make(std::uint16_t{});
    case 4:
      return make(std::uint32_t{});
    default:
      return make(std::uint64_t{});
  }
}

// Hints about caches change nothing here.
void skip_cache_hints(Decoding& decoding, bool loads) {
  if (loads) {
    decoding.take_one_of({"ca", "cg", "cs", "lu", "cv"});
  } else {
    decoding.take_one_of({"wb", "cg", "cs", "wt"});
  }
  while (!decoding
              .take_one_of({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                            "L1::no_allocate", "L2::evict_first", "L2::evict_last", "L2::evict_normal",
                            "L2::64B", "L2::128B", "L2::256B"})
              .empty()) {
  }
}

// A parameter at a known place, in bounds.
bool is_known_parameter(const Decoding& decoding, const Symbol* variable, const OperandSyntax& address,
                        int bytes) {
  if (variable == nullptr || variable->kind != Symbol::Kind::kernel_param) {
    return false;
  }
  const auto begin = static_cast<std::int64_t>(variable->value) + address.displacement;
  const auto& parameters = const_cast<Decoding&>(decoding).kernel().kernel();
  if (begin < 0 || begin + bytes > parameters.parameter_bytes || begin % bytes != 0) {
    decoding.refuse("an address outside of the parameters");
  }
  return true;
}

void note_access(Decoding& decoding, MemorySpace space, int element_bytes) {
  if (space == MemorySpace::shared || space == MemorySpace::generic) {
    decoding.kernel().note_shared_access(element_bytes);
  }
  if (space == MemorySpace::global || space == MemorySpace::generic) {
    decoding.kernel().note_global_access(element_bytes);
  }
}

// ld{.volatile}{.space}{.nc}{hints}{.v2|.v4}.type value, [address]; st with the operands swapped
template <bool loads>
void decode_access(Decoding& decoding) {
  if (!decoding.take("volatile")) {
    decoding.take("weak");
  }
  const std::string space_name = decoding.take_one_of(
      {"global", "shared::cta", "shared", "local", "const", "param::entry", "param::func", "param"});
  skip_cache_hints(decoding, loads);
  const bool read_only = loads && decoding.take("nc");
  skip_cache_hints(decoding, loads);
  const std::string vector = decoding.take_one_of({"v2", "v4"});
  const ScalarType type = decoding.type();
  const std::size_t count = vector.empty() ? 1 : vector == "v2" ? 2 : 4;
  const std::size_t address_at = loads ? 1 : 0;
  decoding.expect_operands(2);
  if (read_only && space_name != "global") {
    decoding.refuse("modifier .nc");
  }
  Instruction& result = decoding.result;
  result.element_bytes = static_cast<std::uint8_t>(bytes_of(type));
  result.elements = static_cast<std::uint8_t>(count);
  if (bytes_of(type) == 0 || static_cast<std::size_t>(bytes_of(type)) * count > 16) {
    decoding.refuse("type");
  }
  result.addresses[0] = decoding.address(address_at);
  const Symbol* variable = decoding.variable(decoding.operand(address_at));
  const MemorySpace space = space_of(space_name, variable);
  result.immediate = static_cast<std::uint32_t>(space);
  note_access(decoding, space, bytes_of(type));
  result.kind = kind_of(space, loads);

  const OperandSyntax& values = decoding.operand(loads ? 0 : 1);
  int register_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const OperandSyntax& value =
        values.kind == OperandSyntax::Kind::list ? decoding.list(loads ? 0 : 1, count)[i] : values;
    int bytes = 0;
    result.operands[i] =
        loads ? decoding.wide_register(value, type, bytes) : decoding.wide_source(value, type, bytes);
    if ((i > 0 && bytes != register_bytes) || (values.kind != OperandSyntax::Kind::list && count > 1)) {
      decoding.refuse("this list of registers");
    }
    register_bytes = bytes;
  }
  const bool known = loads && is_known_parameter(decoding, variable, decoding.operand(address_at),
                                                 bytes_of(type) * static_cast<int>(count));
  if (known) {
    result.addresses[0].displacement += static_cast<std::int64_t>(variable->value);
  } else if (!loads && space == MemorySpace::param) {
    decoding.refuse("a store to parameters");
  }
  result.execute = for_register(register_bytes, [&]<typename Register>(Register) -> Handler {
    return for_memory_type(type, [&]<typename Memory>(Memory) -> Handler {
      if constexpr (!loads) {
        return store<Register, Memory>;
      } else {
        return known ? load_parameter<Register, Memory> : load<Register, Memory>;
      }
    });
  });
}

}  // namespace

MemorySpace space_of(const std::string& name, const Symbol* variable) {
  if (variable != nullptr && variable->kind == Symbol::Kind::call_param) {
    return MemorySpace::local;  // parameters of calls lie in the frame of the thread
  }
  if (name.starts_with("shared")) {
    return MemorySpace::shared;
  }
  if (name.starts_with("param")) {
    return MemorySpace::param;
  }
  if (name == "local") {
    return MemorySpace::local;
  }
  return name.empty() ? MemorySpace::generic : MemorySpace::global;
}

InstructionKind kind_of(MemorySpace space, bool loads) {
  switch (space) {
    case MemorySpace::shared:
      return loads ? InstructionKind::shared_load : InstructionKind::shared_store;
    case MemorySpace::global:
    case MemorySpace::generic:
      return loads ? InstructionKind::global_load : InstructionKind::global_store;
    default:
      return InstructionKind::other;
  }
}

void for_each_space(const WarpAccess& access,
                    const std::function<void(MemorySpace, const WarpAccess&)>& body) {
  std::array<LaneMask, 4> lanes{};  // global, shared, local, param
  LaneAddresses inner = access.addresses;
  for_each_lane(access.mask, [&](int lane) {
    std::uint64_t& address = inner[static_cast<std::size_t>(lane)];
    const std::uint64_t window = address & ~generic_offset_mask;
    const std::size_t space = window == generic_shared  ? 1
                              : window == generic_local ? 2
                              : window == generic_param ? 3
                                                        : 0;
    address = space == 0 ? address : address & generic_offset_mask;
    lanes[space] |= 1U << lane;
  });
  constexpr std::array spaces{MemorySpace::global, MemorySpace::shared, MemorySpace::local,
                              MemorySpace::param};
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (lanes[i] != 0) {
      body(spaces[i], {access.instruction, lanes[i], inner, access.bytes, access.kind, access.alignment});
    }
  }
}

void add_memory_opcodes(OpcodeTable& table) {
  table.add("ld", decode_access<true>);
  table.add("st", decode_access<false>);
}

}  // namespace hcp::ptx
