/// Writes the program of one rank: the recursion over visit levels, with a head swap before and after it.
///
// clang-format off
///   ring, step s    post KV of step s+1 and (backward) dKV of step s-1, together | visit the block of step s,
///                   filling its dKV | wait, add what came
///   and at the end  (backward) post the last dKV | innermost: second half of the own block | wait, add
///   all_gather      post KV | wait | visit the gathered block | (backward) post dKV | wait, add in rank order
///   all_gather inside a ring: the ring turns in the middle of the visit: wait for KV of step s+1, post KV of step
///                   s+2, apart from dKV, and the gather of step s+1
// clang-format on
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/head_blocks.hpp"
#include "src/exchange/visit_geometry.hpp"

namespace hcp {

/// A table whose rows hold `positions` in ascending order: `elements` of each row of an array.
struct View {
  ArrayId array = 0;
  std::int64_t offset = 0;    ///< elements before the first row
  std::int64_t stride = 0;    ///< elements from row to row
  std::int64_t elements = 0;  ///< of a row
  PositionSet positions{};
};

/// Keys and values, or their gradients.
struct BlockView {
  View k{};
  View v{};
  [[nodiscard]] const PositionSet& positions() const { return k.positions; }
};

/// Rows [from, from + rows) of one table that go to rows [to, to + rows) of another.
struct RowRun {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t rows = 0;
};

class PlanBuilder {
 public:
  PlanBuilder(const LayerGeometry& geometry, int cp_rank);
  [[nodiscard]] ExchangePlan build();

 private:
  // Arrays and views (plan_tables.cpp). An array is made at the first call with its name; its capacity grows
  // to the largest number of rows that is asked for.
  ArrayId array(const std::string& name, MemoryCategory category, DataType type, std::int64_t rows,
                std::int64_t heads, std::int64_t dim);
  [[nodiscard]] View view_of(ArrayId array, PositionSet positions) const;
  [[nodiscard]] View heads_of(ArrayId array, PositionSet positions, HeadRange heads) const;
  /// Rows of `elements` elements packed one after the other from element `offset` on.
  [[nodiscard]] static View packed(ArrayId array, std::int64_t offset, std::int64_t elements,
                                   PositionSet positions);
  /// Arrays `name`k and `name`v with this rank's KV heads.
  BlockView kv_block(const std::string& name, MemoryCategory category, DataType type,
                     const PositionSet& positions);
  BlockView zeroed_block(const std::string& name, MemoryCategory category, const PositionSet& positions);
  /// Blocks one after the other in the same two arrays.
  std::vector<BlockView> packed_blocks(const std::string& name, MemoryCategory category, DataType type,
                                       const std::vector<PositionSet>& sets);
  /// `view`'s rows in `type`: itself if they are, else a rounded copy in an array of that name.
  View rounded(const View& view, DataType type, const std::string& name, MemoryCategory category);

  // Instructions (plan_tables.cpp)
  void emit(decltype(Instruction::action) action);
  void fill(ArrayId array, std::int64_t rows, float value);
  void move(Move::Kind kind, const View& from, const View& to, const PositionSet& subset);
  void move(Move::Kind kind, const BlockView& from, const BlockView& to, const PositionSet& subset);
  /// One for each run, as the host has it; for devices one for as many runs as make rows of one table.
  [[nodiscard]] std::vector<Move> moves_of(Move::Kind kind, const View& from, const View& to,
                                           const std::vector<RowRun>& runs) const;

  // Messages (plan_messages.cpp)
  /// Starts a transfer; -1 if there is nothing in it. wait(-1) waits for nothing. Where messages are
  /// contiguous, rows that lie apart are packed before the one and unpacked after the other.
  int post(Transfer transfer, std::vector<Move> after_wait = {});
  void wait(int transfer);
  enum class Direction : std::uint8_t { sent, received };
  /// Makes one part of each tensor of each message. @returns the moves into what is sent, or out of what is
  /// received
  [[nodiscard]] std::vector<Move> pack(std::vector<PlannedMessage>& messages, Direction direction);
  /// Rows of each packing array that the transfer at hand has taken.
  using PackedRows = std::map<ArrayId, std::int64_t>;
  /// `rows` rows, heads and channels as of `like`, side by side in an array for this level and payload. A
  /// level has one transfer with a payload under way at a time.
  [[nodiscard]] View room(const View& like, Payload payload, Direction direction, std::int64_t rows,
                          PackedRows& packed_rows);
  [[nodiscard]] std::int64_t row_bytes(ArrayId id) const;
  [[nodiscard]] Part part_of(const View& view, RowSpan rows) const;
  /// Appends the rows `subset` of a view without gaps in its rows to a message, in ascending order.
  void append_rows(std::vector<Part>& parts, const View& view, const PositionSet& subset) const;
  [[nodiscard]] std::vector<Part> rows_of_block(const BlockView& block, const PositionSet& subset) const;
  /// Adds a message to or from an attention rank of this rank's ring or gather, unless it is empty.
  void add_message(std::vector<PlannedMessage>& list, int visit_level, int attention_rank, Payload payload,
                   std::vector<Part> parts) const;
  int communicator(const std::vector<int>& levels);

  // The recursion over visit levels (plan_visits.cpp; plan_ring.cpp, plan_gather.cpp). `gradient` is what the
  // visit adds to; null in forward.
  /// Called once in about the middle of a visit, where there is one.
  using Interlude = std::function<void()>;
  void visit(int levels, const BlockView& block, const BlockView* gradient, const Interlude& at_middle = {});
  class Ring;
  void ring(int level, const BlockView& block, const BlockView* gradient, const Interlude& at_middle);
  /// A gathered block on its way.
  struct OpenGather {
    BlockView gathered;
    int transfer = -1;
  };
  OpenGather start_gather(int level, const BlockView& block, int buffer);
  /// Whether every rank of this rank's gather takes the whole block of every other, all of one size. The same
  /// answer on all of them.
  [[nodiscard]] bool is_all_gather(int level) const;
  int post_all_gather(int level, const BlockView& block, const BlockView& gathered);
  void visit_gathered(int level, const OpenGather& open, const BlockView* gradient,
                      const Interlude& at_middle);
  /// Rows of an owner's lent block that a rank of the same gather takes.
  [[nodiscard]] PositionSet taken_by(int level, int rank, int owner) const;
  void attend(RowSpan query, const BlockView& block, const BlockView* gradient);
  void add_kv_hop(Transfer& transfer, int level, int step, const BlockView& lent, const BlockView& holding,
                  const BlockView& next) const;
  /// The block of an attention rank at a step of a level, the outer levels standing where they are.
  [[nodiscard]] PositionSet block_at(int level, int attention_rank, int step) const;
  [[nodiscard]] int neighbour(int level, int distance) const;
  [[nodiscard]] int scheme_level(int visit_level) const;
  [[nodiscard]] bool gathers(int visit_level) const;
  void stand_at(int level, int step);
  /// The number of leading query rows that see half of the area visible in `positions`.
  [[nodiscard]] std::int64_t half_of(const PositionSet& positions) const;

  // The whole layer (plan_layer.cpp)
  void plan_forward();
  void plan_backward();

  // The head swap around the visits (plan_head_swap.cpp)
  /// A tensor of the caller on its way to the members of the head swap.
  struct Scattered {
    std::string name;
    ArrayId whole = 0;                       ///< [own rows, all heads, dim]
    const std::vector<PositionSet>& shards;  ///< whose rows: geometry_.shards or geometry_.kv_shards
    View local{};                            ///< after the swap: all rows of the group, this member's heads
    std::vector<HeadRange> heads{};          ///< of each member
  };

  /// A tensor on its way back: assigned, or added where several members hold a share of the same head.
  struct Collected {
    std::string name;
    Move::Kind kind = Move::Kind::assign;
    View local{};       ///< rows of the group, some of this member's heads, on the wire as it is
    View own{};         ///< the same before it is rounded for the wire; what stays here does not travel
    ArrayId whole = 0;  ///< [own rows, heads, dim]
    const std::vector<PositionSet>& shards;  ///< whose rows: geometry_.shards or geometry_.kv_shards
    PositionSet whole_positions{};
    std::vector<HeadRange> heads{};  ///< of each member, as heads of `whole`
  };
  [[nodiscard]] std::vector<int> other_members()
      const;  ///< the next one first, so that not all send to the same
  void add_swap_message(std::vector<PlannedMessage>& list, int member, Payload payload,
                        std::vector<Part> parts) const;
  void scatter(Payload payload, const std::vector<Scattered>& tensors);
  void collect(Payload payload, const std::vector<Collected>& tensors);
  Collected collected(const std::string& name, Move::Kind kind, const View& own, DataType wire, ArrayId whole,
                      const std::vector<PositionSet>& shards, PositionSet whole_positions,
                      const std::function<HeadRange(int member)>& heads);
  void collect_gradients(const View& dq, const BlockView& gradient);
  /// A member's entry of geometry_.shards or geometry_.kv_shards.
  [[nodiscard]] const PositionSet& shard_of(const std::vector<PositionSet>& shards, int member) const;
  [[nodiscard]] HeadRange query_heads(int member) const;
  [[nodiscard]] SharedHeads kv_heads(int member) const;
  [[nodiscard]] DataType storage() const { return geometry_.storage; }
  [[nodiscard]] bool swaps() const { return sets_.swap_members() > 1; }

  const LayerGeometry& geometry_;
  const VisitGeometry sets_;
  const int cp_rank_;
  const int attention_rank_;
  const int swap_member_;
  ExchangePlan plan_;
  std::map<std::string, ArrayId> by_name_;
  Program* program_ = nullptr;
  std::vector<int> steps_;  ///< of each visit level while the recursion runs
  int current_level_ = -1;  ///< scheme level and step of what is emitted
  int current_step_ = 0;
  std::map<int, std::vector<Move>> after_wait_;  ///< by transfer that is under way
};

}  // namespace hcp
