// A gather: the blocks of a level in one, and their gradients back in rank order.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

PositionSet PlanBuilder::taken_by(int level, int rank, int owner) const {
  return set_intersection(sets_.lent(level + 1, owner, steps_), sets_.needed(level, rank));
}

bool PlanBuilder::is_all_gather(int level) const {
  if (geometry_.message_form != MessageForm::collectives) {
    return false;
  }
  PositionSet taken_by_all = sets_.needed(level, attention_rank_);
  std::vector<PositionSet> lent;
  for (int distance = 0; distance < sets_.visit_size(level); ++distance) {
    const int rank = neighbour(level, distance);
    taken_by_all = set_intersection(taken_by_all, sets_.needed(level, rank));
    lent.push_back(sets_.lent(level + 1, rank, steps_));
  }
  return !lent.front().empty() && std::ranges::all_of(lent, [&](const PositionSet& block) {
    return count_of(block) == count_of(lent.front()) && set_difference(block, taken_by_all).empty();
  });
}

int PlanBuilder::post_all_gather(int level, const BlockView& block, const BlockView& gathered) {
  const int size = sets_.visit_size(level);
  const std::int64_t rows = count_of(block.positions());
  const auto rank_at = [&](int digit) { return sets_.with_digit(attention_rank_, level, digit); };
  std::vector<RowRun> runs;  // from where the ranks' blocks follow each other to the gathered block
  for (int digit = 0; digit < size; ++digit) {
    std::int64_t from = digit * rows;
    for (const RowSpan span : rows_of(sets_.lent(level + 1, rank_at(digit), steps_), gathered.positions())) {
      runs.push_back({from, span.first, span.count});
      from += span.count;
    }
  }
  const bool in_place = std::ranges::all_of(runs, [](const RowRun& run) { return run.from == run.to; });
  PackedRows packed_rows;
  std::vector<Move> unpack;
  const auto landing_of = [&](const View& tensor) {
    if (in_place) {
      return tensor;
    }
    View landing = room(tensor, Payload::kv, Direction::received, size * rows, packed_rows);
    std::ranges::move(moves_of(Move::Kind::assign, landing, tensor, runs), std::back_inserter(unpack));
    return landing;
  };
  const View landing_k = landing_of(gathered.k);
  const View landing_v = landing_of(gathered.v);

  Transfer transfer{.communicator = communicator({scheme_level(level)}),
                    .collective = Collective::all_gather};
  for (int digit = 0; digit < size; ++digit) {
    const int rank = rank_at(digit);
    if (rank != attention_rank_) {
      add_message(transfer.sends, level, rank, Payload::kv, rows_of_block(block, block.positions()));
      const RowSpan span{digit * rows, rows};
      add_message(transfer.receives, level, rank, Payload::kv,
                  {part_of(landing_k, span), part_of(landing_v, span)});
    }
  }
  return post(std::move(transfer), std::move(unpack));
}

PlanBuilder::OpenGather PlanBuilder::start_gather(int level, const BlockView& block, int buffer) {
  stand_at(level, 0);
  const std::string name =
      "level " + std::to_string(scheme_level(level)) + " gathered " + std::to_string(buffer) + " ";
  OpenGather open{
      .gathered = kv_block(name, MemoryCategory::gathered, storage(), block_at(level, attention_rank_, 0)),
      .transfer = -1};
  if (is_all_gather(level)) {
    open.transfer = post_all_gather(level, block, open.gathered);  // the own block, too
    return open;
  }
  Transfer transfer{.communicator = communicator({scheme_level(level)})};
  for (int distance = 1; distance < sets_.visit_size(level); ++distance) {
    const int to = neighbour(level, distance);
    const int from = neighbour(level, -distance);
    add_message(transfer.sends, level, to, Payload::kv,
                rows_of_block(block, taken_by(level, to, attention_rank_)));
    add_message(transfer.receives, level, from, Payload::kv,
                rows_of_block(open.gathered, taken_by(level, attention_rank_, from)));
  }
  open.transfer = post(std::move(transfer));
  move(Move::Kind::assign, block, open.gathered, taken_by(level, attention_rank_, attention_rank_));
  return open;
}

void PlanBuilder::visit_gathered(int level, const OpenGather& open, const BlockView* gradient,
                                 const Interlude& at_middle) {
  const int size = sets_.visit_size(level);
  stand_at(level, 0);
  wait(open.transfer);
  if (gradient == nullptr) {
    visit(level, open.gathered, nullptr, at_middle);
    return;
  }
  const std::string name = "level " + std::to_string(scheme_level(level)) + " gathered dkv";
  const BlockView filling = zeroed_block(name + " ", MemoryCategory::gathered, open.gathered.positions());
  visit(level, open.gathered, &filling, at_middle);

  stand_at(level, 1);
  const BlockView outgoing{
      rounded(filling.k, geometry_.gradient_wire, name + " wire k", MemoryCategory::gathered),
      rounded(filling.v, geometry_.gradient_wire, name + " wire v", MemoryCategory::gathered)};
  Transfer back{.communicator = communicator({scheme_level(level)})};
  // By rank in the level; the own contribution in its place.
  std::vector<BlockView> arriving(static_cast<std::size_t>(size));
  for (int distance = 1; distance < size; ++distance) {
    const int to = neighbour(level, distance);
    const int from = neighbour(level, -distance);
    add_message(back.sends, level, to, Payload::dkv,
                rows_of_block(outgoing, taken_by(level, attention_rank_, to)));
    const PositionSet rows = taken_by(level, from, attention_rank_);
    const int rank = sets_.digit(from, level);
    BlockView& view = arriving.at(static_cast<std::size_t>(rank));
    view = kv_block(name + " from " + std::to_string(rank) + " ", MemoryCategory::gathered,
                    geometry_.gradient_wire, rows);
    add_message(back.receives, level, from, Payload::dkv, rows_of_block(view, rows));
  }
  const int own_rank = sets_.digit(attention_rank_, level);
  arriving.at(static_cast<std::size_t>(own_rank)) = filling;
  wait(post(std::move(back)));
  for (int rank = 0; rank < size; ++rank) {
    const BlockView& contribution = arriving.at(static_cast<std::size_t>(rank));
    // Whatever the transport: a reduce-scatter of a library would sum in an order of its own.
    move(Move::Kind::add, contribution, *gradient,
         rank == own_rank ? taken_by(level, attention_rank_, attention_rank_) : contribution.positions());
  }
}

}  // namespace hcp
