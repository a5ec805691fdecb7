// Rings and gathers: which block meets this rank's queries when, and how its gradient finds home.
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

int PlanBuilder::scheme_level(int visit_level) const {
  return sets_.visit_levels().at(static_cast<std::size_t>(visit_level));
}

void PlanBuilder::stand_at(int level, int step) {
  steps_.at(static_cast<std::size_t>(level)) = step;
  current_level_ = scheme_level(level);
  current_step_ = step;
}

PositionSet PlanBuilder::block_at(int level, int attention_rank, int step) const {
  std::vector<int> steps = steps_;
  steps.at(static_cast<std::size_t>(level)) = step;
  return sets_.lent(level, attention_rank, steps);
}

int PlanBuilder::neighbour(int level, int distance) const {
  return sets_.with_digit(attention_rank_, level, sets_.digit(attention_rank_, level) + distance);
}

std::int64_t PlanBuilder::half_of(const PositionSet& positions) const {
  const std::int64_t whole = geometry_.mask->area(plan_.rows, positions);
  std::int64_t low = 0;
  std::int64_t high = count_of(plan_.rows);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const PositionSet leading = positions_of({0, middle}, plan_.rows);
    if (2 * geometry_.mask->area(leading, positions) < whole) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void PlanBuilder::attend(RowSpan query, const BlockView& block, const BlockView* gradient) {
  const std::int64_t area = geometry_.mask->area(positions_of(query, plan_.rows), block.positions());
  if (area == 0) {
    return;
  }
  Attend action{
      .query = query, .k = block.k.array, .v = block.v.array, .positions = block.positions(), .area = area};
  if (gradient != nullptr) {
    action.dk = gradient->k.array;
    action.dv = gradient->v.array;
  }
  emit(std::move(action));
}

bool PlanBuilder::gathers(int level) const {
  return level >= 0 && geometry_.levels.at(static_cast<std::size_t>(scheme_level(level))).algorithm ==
                           Algorithm::all_gather;
}

void PlanBuilder::visit(int levels, const BlockView& block, const BlockView* gradient,
                        const Interlude& at_middle) {
  const RowSpan all{0, count_of(plan_.rows)};
  if (levels == 0) {
    const std::int64_t half = at_middle ? half_of(block.positions()) : all.count;
    attend({0, half}, block, gradient);
    if (at_middle) {
      const int level = current_level_;
      const int step = current_step_;
      at_middle();
      current_level_ = level;
      current_step_ = step;
      attend({half, all.count - half}, block, gradient);
    }
  } else if (gathers(levels - 1)) {
    visit_gathered(levels - 1, start_gather(levels - 1, block, 0), gradient, at_middle);
  } else {
    ring(levels - 1, block, gradient, at_middle);
  }
}

void PlanBuilder::add_kv_hop(Transfer& transfer, int level, int step, const BlockView& lent,
                             const BlockView& holding, const BlockView& next) const {
  // A rank gets a row from its predecessor if that one holds it, else from the owner; in the first hop they
  // are the same.
  const int before = neighbour(level, -1);
  const int after = neighbour(level, 1);
  const int owner = neighbour(level, -step);
  const int borrower = neighbour(level, step);
  const PositionSet from_before = block_at(level, before, step - 1);
  add_message(transfer.receives, level, before, Payload::kv,
              rows_of_block(next, set_intersection(next.positions(), from_before)));
  add_message(transfer.receives, level, owner, Payload::kv,
              rows_of_block(next, set_difference(next.positions(), from_before)));
  add_message(transfer.sends, level, after, Payload::kv,
              rows_of_block(holding, set_intersection(block_at(level, after, step), holding.positions())));
  const int before_borrower = sets_.with_digit(borrower, level, sets_.digit(borrower, level) - 1);
  add_message(transfer.sends, level, borrower, Payload::kv,
              rows_of_block(lent, set_difference(block_at(level, borrower, step),
                                                 block_at(level, before_borrower, step - 1))));
}

PlanBuilder::Arrivals PlanBuilder::add_gradient_hop(Transfer& transfer, int level, int step,
                                                    const BlockView& outgoing) {
  // The gradient of a row goes on to the successor if that one looks at the row too, else home.
  const bool last = step + 1 == sets_.visit_size(level);
  const int before = neighbour(level, -1);
  const int after = neighbour(level, 1);
  const int owner = neighbour(level, -step);
  const int borrower = neighbour(level, step);
  const PositionSet after_looks = last ? PositionSet{} : block_at(level, after, step + 1);
  add_message(transfer.sends, level, after, Payload::dkv,
              rows_of_block(outgoing, set_intersection(outgoing.positions(), after_looks)));
  add_message(transfer.sends, level, owner, Payload::dkv,
              rows_of_block(outgoing, set_difference(outgoing.positions(), after_looks)));

  const int after_borrower = sets_.with_digit(borrower, level, sets_.digit(borrower, level) + 1);
  const PositionSet passing =
      last ? PositionSet{}
           : set_intersection(block_at(level, before, step), block_at(level, attention_rank_, step + 1));
  const PositionSet home = set_difference(block_at(level, borrower, step),
                                          last ? PositionSet{} : block_at(level, after_borrower, step + 1));
  const ArrayPlan& k = plan_.arrays.at(static_cast<std::size_t>(outgoing.k.array));
  const ArrayPlan& v = plan_.arrays.at(static_cast<std::size_t>(outgoing.v.array));
  const std::string name = "level " + std::to_string(current_level_) + " dkv arriving";
  const std::int64_t rows = count_of(passing) + count_of(home);
  const ArrayId dk =
      array(name + " k", MemoryCategory::dkv_ring, geometry_.gradient_wire, rows, k.heads, k.dim);
  const ArrayId dv =
      array(name + " v", MemoryCategory::dkv_ring, geometry_.gradient_wire, rows, v.heads, v.dim);
  const auto view_from = [&](std::int64_t row, const PositionSet& positions) -> BlockView {
    return {packed(dk, row * k.row_elements(), k.row_elements(), positions),
            packed(dv, row * v.row_elements(), v.row_elements(), positions)};
  };
  Arrivals arrivals{.passing = view_from(0, passing), .home = view_from(count_of(passing), home)};
  add_message(transfer.receives, level, before, Payload::dkv, rows_of_block(arrivals.passing, passing));
  add_message(transfer.receives, level, borrower, Payload::dkv, rows_of_block(arrivals.home, home));
  return arrivals;
}

void PlanBuilder::ring(int level, const BlockView& block, const BlockView* gradient,
                       const Interlude& at_middle) {
  const int size = sets_.visit_size(level);
  const bool backward = gradient != nullptr;
  const bool halves =
      backward && level == 0;  // the own block in two parts, the second under the last homeward hop
  const bool ahead = gathers(level - 1);  // the level below gathers what is lent to it one step ahead
  const std::string name = "level " + std::to_string(scheme_level(level));
  const std::int64_t half = halves ? half_of(block.positions()) : count_of(plan_.rows);

  BlockView holding = block;  // the KV block of this step
  BlockView next;             // and of the one after, on its way
  int kv_hop = -1;
  const auto start_hop = [&](int step) {
    if (step >= size) {
      return;
    }
    next = kv_block(name + " kv " + std::to_string((step - 1) % 2), MemoryCategory::kv_ring, storage(),
                    block_at(level, attention_rank_, step));
    Transfer transfer{.communicator = communicator({scheme_level(level)})};
    add_kv_hop(transfer, level, step, block, holding, next);
    kv_hop = post(std::move(transfer));
  };
  OpenGather gathered;
  // From one step to the next: its block is here, and the one after starts to travel.
  const auto turn = [&](int step) {
    stand_at(level, step);
    wait(std::exchange(kv_hop, -1));
    if (step + 1 >= size) {
      return;
    }
    stand_at(level, step + 1);
    holding = next;
    start_hop(step + 2);
    if (ahead) {
      gathered = start_gather(level - 1, holding, (step + 1) % 2);
    }
    stand_at(level, step);
  };

  stand_at(level, 0);
  start_hop(1);
  if (ahead) {
    gathered = start_gather(level - 1, block, 0);
  }
  BlockView outgoing;  // the dKV block of the step before
  for (int step = 0; step < (backward ? size + 1 : size); ++step) {
    stand_at(level, step);
    Arrivals arrivals;
    int gradient_hop = -1;
    if (backward && step >= 2) {
      Transfer transfer{.communicator = communicator({scheme_level(level)})};
      arrivals = add_gradient_hop(transfer, level, step - 1, outgoing);
      gradient_hop = post(std::move(transfer));
    }
    const BlockView* filling = gradient;
    BlockView contribution;
    if (backward && step > 0 && step < size) {
      contribution = new_contribution(name + " dkv ", step, holding.positions());
      filling = &contribution;
    }
    if (step == size) {
      if (halves) {
        attend({half, count_of(plan_.rows) - half}, block, gradient);
      }
    } else if (ahead) {
      const OpenGather open = gathered;
      visit_gathered(level - 1, open, filling, [&] { turn(step); });
    } else {
      step == 0 && halves ? attend({0, half}, block, gradient) : visit(level, holding, filling);
      turn(step);
    }
    stand_at(level, step);
    if (at_middle && step == (size - 1) / 2) {
      at_middle();
    }
    stand_at(level, step);
    wait(gradient_hop);
    if (backward && step >= 2) {
      move(Move::Kind::add, arrivals.passing, contribution, arrivals.passing.positions());
      move(Move::Kind::add, arrivals.home, *gradient, arrivals.home.positions());
    }
    if (filling == &contribution) {
      const std::string wire = name + " dkv wire " + std::to_string((step - 1) % 2);
      outgoing = {rounded(contribution.k, geometry_.gradient_wire, wire + " k", MemoryCategory::dkv_ring),
                  rounded(contribution.v, geometry_.gradient_wire, wire + " v", MemoryCategory::dkv_ring)};
    }
  }
}

BlockView PlanBuilder::new_contribution(const std::string& name, int step, const PositionSet& positions) {
  // Two, filled and sent in turn; one where what is sent is a rounded copy.
  const int buffer = geometry_.gradient_wire == DataType::fp32 ? (step - 1) % 2 : 0;
  const BlockView filling =
      kv_block(name + std::to_string(buffer), MemoryCategory::dkv_ring, DataType::fp32, positions);
  fill(filling.k.array, count_of(positions), 0.0F);
  fill(filling.v.array, count_of(positions), 0.0F);
  return filling;
}

PositionSet PlanBuilder::taken_by(int level, int rank, int owner) const {
  return set_intersection(sets_.lent(level + 1, owner, steps_), sets_.needed(level, rank));
}

PlanBuilder::OpenGather PlanBuilder::start_gather(int level, const BlockView& block, int buffer) {
  stand_at(level, 0);
  const std::string name =
      "level " + std::to_string(scheme_level(level)) + " gathered " + std::to_string(buffer);
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
  const BlockView filling =
      kv_block(name, MemoryCategory::gathered, DataType::fp32, open.gathered.positions());
  fill(filling.k.array, count_of(filling.positions()), 0.0F);
  fill(filling.v.array, count_of(filling.positions()), 0.0F);
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
    view = kv_block(name + " from " + std::to_string(rank), MemoryCategory::gathered, geometry_.gradient_wire,
                    rows);
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
