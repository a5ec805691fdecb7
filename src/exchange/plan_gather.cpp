// A gather: the blocks of a level in one, and their gradients back in rank order.
#include <string>
#include <utility>
#include <vector>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

PositionSet PlanBuilder::taken_by(int level, int rank, int owner) const {
  return set_intersection(sets_.lent(level + 1, owner, steps_), sets_.needed(level, rank));
}

PlanBuilder::OpenGather PlanBuilder::start_gather(int level, const BlockView& block, int buffer) {
  stand_at(level, 0);
  const std::string name =
      "level " + std::to_string(scheme_level(level)) + " gathered " + std::to_string(buffer) + " ";
  OpenGather open{
      .gathered = kv_block(name, MemoryCategory::gathered, storage(), block_at(level, attention_rank_, 0)),
      .transfer = -1};
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
    move(Move::Kind::add, contribution, *gradient,
         rank == own_rank ? taken_by(level, attention_rank_, attention_rank_) : contribution.positions());
  }
}

}  // namespace hcp
