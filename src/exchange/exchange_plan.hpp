/// The whole movement of one attention layer on one rank as plain data: a straight-line program per pass.
///
///   make_exchange_plan (pure) ──► ExchangePlan ──► src/attention executes it     ──► bytes counted
///                                              └─► src/plan and tests walk it    ──► bytes planned
///
/// Every index, peer, range and size is decided here; who executes it does no arithmetic. All ranks of a
/// group post their transfers at corresponding places of their programs, so no order of execution can
/// deadlock.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/attention_mask.hpp"
#include "kernels/buffer.hpp"
#include "kernels/position_ranges.hpp"
#include "src/comm/transport.hpp"
#include "src/exchange/scheme.hpp"

namespace hcp {

enum class Pass : std::uint8_t { forward, backward };
[[nodiscard]] std::string_view name_of(Pass pass);

/// What the transports of a layer need of its messages.
enum class MessageForm : std::uint8_t {
  scattered,    ///< any number of parts
  contiguous,   ///< one part for each tensor, of the same size at both ends; rows that lie apart are packed
  collectives,  ///< and where every rank of a gather takes whole blocks of one size, it is one collective.
                ///< What comes back is messages all the same: this rank sums them in rank order, so that
                ///< every transport gives the same bits
};
inline constexpr std::array all_message_forms{MessageForm::scattered, MessageForm::contiguous,
                                              MessageForm::collectives};
[[nodiscard]] std::string_view name_of(MessageForm form);

/// What the plan of one layer is computed from; the same on every rank of the CP group.
struct LayerGeometry {
  std::vector<Level> levels;           ///< inner first, sizes > 1; their product is the number of shards
  std::vector<PositionSet> shards;     ///< queries of each CP rank
  std::vector<PositionSet> kv_shards;  ///< keys of each CP rank, in the numbering of keys; equal to `shards`
                                       ///< where queries and keys are the same tokens
  const AttentionMask* mask = nullptr;
  std::int64_t heads_q = 1;  ///< per tensor-parallel rank
  std::int64_t heads_kv = 1;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  DataType storage = DataType::fp32;
  DataType gradient_wire = DataType::fp32;  ///< of gradients that the receiver still sums
  MessageForm message_form = MessageForm::scattered;
};

/// Index into ExchangePlan::arrays; the first ones are the tensors that the caller owns.
using ArrayId = int;
enum KnownArray : ArrayId {
  array_q,
  array_k,
  array_v,
  array_dout,
  array_out,
  array_dq,
  array_dk,
  array_dv,
  array_lse
};
inline constexpr int known_arrays = 9;

/// One array of [rows, heads, dim]: rows of queries (q, out, dout, dq, lse) or of keys (k, v, dk, dv). `rows`
/// is the capacity, the largest number that any step needs.
struct ArrayPlan {
  std::string name;
  MemoryCategory category = MemoryCategory::qkv;
  DataType type = DataType::fp32;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;

  [[nodiscard]] std::int64_t row_elements() const { return heads * dim; }
  [[nodiscard]] std::int64_t bytes() const {
    return rows * row_elements() * static_cast<std::int64_t>(size_of(type));
  }
};

/// What a message carries.
enum class Payload : std::uint8_t { qkv, out, dout, dqkv, kv, dkv };
inline constexpr int payloads = 6;
[[nodiscard]] std::string_view name_of(Payload payload);

/// The tag of a message tells its pass and payload, so that the counts of a transport do.
[[nodiscard]] constexpr int message_tag(Pass pass, Payload payload) {
  return static_cast<int>(pass) * payloads + static_cast<int>(payload);
}
[[nodiscard]] constexpr Pass pass_of_tag(int tag) {
  return static_cast<Pass>(tag / payloads);
}
[[nodiscard]] constexpr Payload payload_of_tag(int tag) {
  return static_cast<Payload>(tag % payloads);
}

/// Bytes [offset, offset + bytes) of an array.
struct Part {
  ArrayId array = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

struct PlannedMessage {
  int peer = 0;          ///< rank in the transfer's communicator
  int peer_cp_rank = 0;  ///< the same rank in the CP group
  int level = 0;         ///< the outermost level in which the two ranks differ: where it is booked
  Payload payload = Payload::kv;
  std::vector<Part> parts{};  ///< at most 8, where messages are contiguous
  [[nodiscard]] std::int64_t bytes() const;
};

/// Messages started together and waited for together. Both directions list only messages with bytes in them.
struct Transfer {
  int communicator = 0;  ///< index into ExchangePlan::communicators
  int level = 0;
  int step = 0;
  Collective collective = Collective::none;
  std::vector<PlannedMessage> sends{};
  std::vector<PlannedMessage> receives{};
};

/// A strided table inside an array; offset and stride in elements of the array.
struct Table {
  ArrayId array = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 0;
};

/// Starts / ends transfer `transfer` of the pass.
struct Post {
  int transfer = 0;
};
struct Wait {
  int transfer = 0;
};

/// to[r, e] = or += from[r, e], converting types; sums are fp32.
struct Move {
  enum class Kind : std::uint8_t { assign, add };
  Kind kind = Kind::assign;
  Table from;
  Table to;
  std::int64_t rows = 0;
  std::int64_t elements = 0;
};

/// The first `rows` rows of an array to one value.
struct Fill {
  ArrayId array = 0;
  std::int64_t rows = 0;
  float value = 0.0F;
};

/// Normalises the running output of this rank's rows and sets lse.
struct FinishForward {};

/// delta = rowsum(out * dout) of this rank's rows.
struct RowDot {
  ArrayId out = 0;
  ArrayId dout = 0;
  ArrayId delta = 0;
};

/// Attention of query rows [query.first, + count) with the KV block in arrays k, v, whose rows hold
/// `positions`. Backward adds to dk, dv (and dq).
struct Attend {
  RowSpan query;
  ArrayId k = 0;
  ArrayId v = 0;
  ArrayId dk = -1;
  ArrayId dv = -1;
  PositionSet positions{};
  std::int64_t area = 0;  ///< visible (query, key) pairs
};

struct Instruction {
  std::variant<Post, Wait, Move, Fill, FinishForward, RowDot, Attend> action;
  int level = 0;  ///< of the scheme, for the record; -1 outside any level
  int step = 0;
};

/// One pass on one rank.
struct Program {
  std::vector<Transfer> transfers;
  std::vector<Instruction> instructions;
};

/// The arrays of the attention itself (after a head swap), for who executes the program.
struct AttentionArrays {
  ArrayId q = array_q;
  ArrayId dout = array_dout;
  ArrayId running_out = 0;
  ArrayId running_max = 0;
  ArrayId running_sum = 0;
  ArrayId delta = 0;
  ArrayId dq = 0;
};

struct ExchangePlan {
  std::vector<ArrayPlan> arrays;
  std::vector<std::vector<int>> communicators;  ///< the levels whose digits vary in each communicator used
  HeadMap head_map;
  PositionSet rows;          ///< query rows of the attention on this rank, in array order
  std::int64_t heads_q = 0;  ///< query heads of the attention on this rank
  std::int64_t first_head_q = 0;
  AttentionArrays attention;
  Program forward;
  Program backward;

  [[nodiscard]] const Program& program(Pass pass) const { return pass == Pass::forward ? forward : backward; }
};

/// The outermost level in which two different CP ranks differ, where a message between them is booked.
[[nodiscard]] int outermost_difference(int cp_rank_a, int cp_rank_b, const std::vector<Level>& levels);

/// @throws std::invalid_argument if the sizes do not give as many ranks as there are shards of queries and of
/// keys, or if there are more head swap members than query heads
[[nodiscard]] ExchangePlan make_exchange_plan(const LayerGeometry& geometry, int cp_rank);

/// Arrays that an instruction reads or writes.
[[nodiscard]] std::vector<ArrayId> arrays_of(const Instruction& instruction, const Program& program,
                                             const AttentionArrays& attention);

}  // namespace hcp
