// Rings and gathers: which block meets this rank's queries when, and how its gradient finds home.
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

void PlanBuilder::stand_at(int level, int step) {
  steps_.at(static_cast<std::size_t>(level)) = step;
  current_level_ = sets_.visit_levels().at(static_cast<std::size_t>(level));
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

void PlanBuilder::visit(int levels, const BlockView& block, const BlockView* gradient) {
  if (levels == 0) {
    attend({0, count_of(plan_.rows)}, block, gradient);
    return;
  }
  const int level = levels - 1;
  const int scheme_level = sets_.visit_levels().at(static_cast<std::size_t>(level));
  if (geometry_.levels.at(static_cast<std::size_t>(scheme_level)).algorithm == Algorithm::p2p) {
    ring(level, block, gradient);
  } else {
    gather(level, block, gradient);
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

void PlanBuilder::ring(int level, const BlockView& block, const BlockView* gradient) {
  const int size = sets_.visit_size(level);
  const bool backward = gradient != nullptr;
  const bool halves = backward && level == 0;
  const RowSpan all{0, count_of(plan_.rows)};
  const RowSpan first{0, halves ? half_of(block.positions()) : all.count};
  const RowSpan second{first.count, all.count - first.count};
  const DataType storage = plan_.arrays.at(array_k).type;
  const bool wire_is_fp32 = geometry_.gradient_wire == DataType::fp32;

  BlockView holding = block;  // the KV block of this step
  BlockView outgoing;         // the dKV block of the step before
  for (int step = 0; step < (backward ? size + 1 : size); ++step) {
    stand_at(level, step);
    const std::string name = "level " + std::to_string(current_level_);
    Transfer transfer{.communicator = communicator({current_level_})};
    BlockView next;
    if (step + 1 < size) {
      next = kv_block(name + " kv " + std::to_string(step % 2), MemoryCategory::kv_ring, storage,
                      block_at(level, attention_rank_, step + 1));
      add_kv_hop(transfer, level, step + 1, block, holding, next);
    }
    Arrivals arrivals;
    const bool gradients_travel = backward && step >= 2;
    if (gradients_travel) {
      arrivals = add_gradient_hop(transfer, level, step - 1, outgoing);
    }

    BlockView filling;
    emit_transfer(std::move(transfer), [&] {
      if (step == 0) {
        halves ? attend(first, block, gradient) : visit(level, block, gradient);
      } else if (step == size) {
        if (halves) {
          attend(second, block, gradient);
        }
      } else if (backward) {
        filling = kv_block(name + " dkv " + std::to_string(wire_is_fp32 ? (step - 1) % 2 : 0),
                           MemoryCategory::dkv_ring, DataType::fp32, holding.positions());
        fill(filling.k.array, count_of(filling.positions()), 0.0F);
        fill(filling.v.array, count_of(filling.positions()), 0.0F);
        visit(level, holding, &filling);
      } else {
        visit(level, holding, nullptr);
      }
    });
    if (gradients_travel) {
      if (step < size) {
        move(Move::Kind::add, arrivals.passing, filling, arrivals.passing.positions());
      }
      move(Move::Kind::add, arrivals.home, *gradient, arrivals.home.positions());
    }
    if (backward && step > 0 && step < size) {
      const std::string wire = name + " dkv wire " + std::to_string((step - 1) % 2);
      outgoing = {rounded(filling.k, geometry_.gradient_wire, wire + " k", MemoryCategory::dkv_ring),
                  rounded(filling.v, geometry_.gradient_wire, wire + " v", MemoryCategory::dkv_ring)};
    }
    holding = next;
  }
}

void PlanBuilder::gather(int level, const BlockView& block, const BlockView* gradient) {
  const int size = sets_.visit_size(level);
  stand_at(level, 0);
  const std::string name = "level " + std::to_string(current_level_);
  const auto taken_by = [&](int rank, int owner) {
    return set_intersection(sets_.lent(level + 1, owner, steps_), sets_.needed(level, rank));
  };
  const BlockView gathered = kv_block(name + " gathered", MemoryCategory::gathered,
                                      plan_.arrays.at(array_k).type, block_at(level, attention_rank_, 0));

  Transfer out{.communicator = communicator({current_level_})};
  for (int distance = 1; distance < size; ++distance) {
    const int to = neighbour(level, distance);
    const int from = neighbour(level, -distance);
    add_message(out.sends, level, to, Payload::kv, rows_of_block(block, taken_by(to, attention_rank_)));
    add_message(out.receives, level, from, Payload::kv,
                rows_of_block(gathered, taken_by(attention_rank_, from)));
  }
  const PositionSet own = taken_by(attention_rank_, attention_rank_);
  emit_transfer(std::move(out), [&] { move(Move::Kind::assign, block, gathered, own); });
  if (gradient == nullptr) {
    visit(level, gathered, nullptr);
    return;
  }

  const BlockView filling =
      kv_block(name + " gathered dkv", MemoryCategory::gathered, DataType::fp32, gathered.positions());
  fill(filling.k.array, count_of(filling.positions()), 0.0F);
  fill(filling.v.array, count_of(filling.positions()), 0.0F);
  visit(level, gathered, &filling);
  stand_at(level, 1);

  const BlockView outgoing{
      rounded(filling.k, geometry_.gradient_wire, name + " gathered dkv wire k", MemoryCategory::gathered),
      rounded(filling.v, geometry_.gradient_wire, name + " gathered dkv wire v", MemoryCategory::gathered)};
  Transfer back{.communicator = communicator({current_level_})};
  std::vector<BlockView> arriving(
      static_cast<std::size_t>(size));  // by rank in the level; the own contribution in its place
  for (int distance = 1; distance < size; ++distance) {
    const int to = neighbour(level, distance);
    const int from = neighbour(level, -distance);
    add_message(back.sends, level, to, Payload::dkv, rows_of_block(outgoing, taken_by(attention_rank_, to)));
    const PositionSet rows = taken_by(from, attention_rank_);
    BlockView& view = arriving.at(static_cast<std::size_t>(sets_.digit(from, level)));
    view = kv_block(name + " dkv arriving from " + std::to_string(sets_.digit(from, level)),
                    MemoryCategory::gathered, geometry_.gradient_wire, rows);
    add_message(back.receives, level, from, Payload::dkv, rows_of_block(view, rows));
  }
  arriving.at(static_cast<std::size_t>(sets_.digit(attention_rank_, level))) = filling;
  emit_transfer(std::move(back));
  for (int rank = 0; rank < size; ++rank) {
    const BlockView& contribution = arriving.at(static_cast<std::size_t>(rank));
    const bool is_own = rank == sets_.digit(attention_rank_, level);
    move(Move::Kind::add, contribution, *gradient, is_own ? own : contribution.positions());
  }
}

}  // namespace hcp
