// The recursion over visit levels: which block meets this rank's queries when.
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
  return geometry_.mask->half_of_area(plan_.rows, positions);
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

}  // namespace hcp
