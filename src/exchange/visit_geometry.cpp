#include "src/exchange/visit_geometry.hpp"

#include "topology/level_digits.hpp"

namespace hcp {
namespace {

PositionSet union_of(std::vector<PositionRange> ranges) {
  return normalised(std::move(ranges));
}

void append(std::vector<PositionRange>& to, const PositionSet& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

VisitGeometry::VisitGeometry(const LayerGeometry& geometry) : geometry_{geometry} {
  for (int level = 0; level < static_cast<int>(geometry.levels.size()); ++level) {
    const Level& l = geometry.levels[index(level)];
    sizes_.push_back(l.size);
    if (l.algorithm == Algorithm::a2a) {
      swap_levels_.push_back(level);
      swap_members_ *= l.size;
    } else {
      visit_levels_.push_back(level);
      visit_stride_.push_back(attention_ranks_);
      attention_ranks_ *= l.size;
    }
  }

  std::vector<std::vector<PositionRange>> rows(index(attention_ranks_));
  std::vector<std::vector<PositionRange>> kv_rows(index(attention_ranks_));
  for (int rank = 0; rank < static_cast<int>(geometry.shards.size()); ++rank) {
    append(rows[index(attention_rank_of(rank))], geometry.shards[index(rank)]);
    append(kv_rows[index(attention_rank_of(rank))], geometry.kv_shards[index(rank)]);
  }
  std::vector<PositionRange> everything;
  std::vector<PositionSet> looked_at;
  for (auto& ranges : rows) {
    rows_.push_back(union_of(std::move(ranges)));
    looked_at.push_back(geometry.mask->looked_at(rows_.back()));
    append(everything, looked_at.back());
  }
  const PositionSet looked_at_by_anyone = union_of(std::move(everything));
  for (auto& ranges : kv_rows) {
    PositionSet own = union_of(std::move(ranges));
    kv_rows_.push_back(swap_members_ > 1 ? set_intersection(own, looked_at_by_anyone) : std::move(own));
  }

  for (int level = 0; level < static_cast<int>(visit_levels_.size()); ++level) {
    const int stride = visit_stride_[index(level)];
    std::vector<PositionSet> groups;
    for (int first = 0; first < attention_ranks_; first += stride) {
      std::vector<PositionRange> ranges;
      for (int rank = first; rank < first + stride; ++rank) {
        append(ranges, looked_at[index(rank)]);
      }
      groups.push_back(union_of(std::move(ranges)));
    }
    needed_.push_back(std::move(groups));
  }
}

int VisitGeometry::visit_size(int visit_level) const {
  return geometry_.levels[index(visit_levels_[index(visit_level)])].size;
}

int VisitGeometry::attention_rank_of(int cp_rank) const {
  return level_place(cp_rank, sizes_, visit_levels_).rank;
}

int VisitGeometry::swap_member_of(int cp_rank) const {
  return level_place(cp_rank, sizes_, swap_levels_).rank;
}

int VisitGeometry::cp_rank_of(int attention_rank, int swap_member) const {
  std::vector<int> digits;
  for (const Level& level : geometry_.levels) {
    int& rest = level.algorithm == Algorithm::a2a ? swap_member : attention_rank;
    digits.push_back(rest % level.size);
    rest /= level.size;
  }
  return hcp::cp_rank_of(digits, sizes_);
}

int VisitGeometry::digit(int attention_rank, int visit_level) const {
  return attention_rank / visit_stride_[index(visit_level)] % visit_size(visit_level);
}

int VisitGeometry::with_digit(int attention_rank, int visit_level, int digit_wanted) const {
  const int size = visit_size(visit_level);
  const int wrapped = (digit_wanted % size + size) % size;
  return attention_rank + (wrapped - digit(attention_rank, visit_level)) * visit_stride_[index(visit_level)];
}

const PositionSet& VisitGeometry::needed(int visit_level, int attention_rank) const {
  return needed_[index(visit_level)][index(attention_rank / visit_stride_[index(visit_level)])];
}

PositionSet VisitGeometry::lent(int visit_level, int attention_rank, const std::vector<int>& steps) const {
  if (visit_level == static_cast<int>(visit_levels_.size())) {
    return kv_rows(attention_rank);
  }
  const int outer = visit_level + 1;
  if (geometry_.levels[index(visit_levels_[index(visit_level)])].algorithm == Algorithm::p2p) {
    const int step = steps[index(visit_level)];
    if (step == 0) {
      return lent(outer, attention_rank, steps);
    }
    const int owner = with_digit(attention_rank, visit_level, digit(attention_rank, visit_level) - step);
    return set_intersection(lent(outer, owner, steps), needed(visit_level, attention_rank));
  }
  std::vector<PositionRange> gathered;
  for (int other = 0; other < visit_size(visit_level); ++other) {
    append(gathered, lent(outer, with_digit(attention_rank, visit_level, other), steps));
  }
  return set_intersection(union_of(std::move(gathered)), needed(visit_level, attention_rank));
}

}  // namespace hcp
