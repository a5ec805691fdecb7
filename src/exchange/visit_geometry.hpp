/// Which rows of keys every rank holds, needs and is lent: the sets behind an exchange plan. Queries and keys
/// are numbered apart, and may be different tokens. No messages, no buffers.
///
/// The a2a levels of a scheme join into one head swap; the others nest. An "attention rank" is a rank seen
/// through the digits of those other levels only: members of one head swap share it, they hold the same rows
/// and different heads.
#pragma once

#include <vector>

#include "src/exchange/exchange_plan.hpp"

namespace hcp {

class VisitGeometry {
 public:
  explicit VisitGeometry(const LayerGeometry& geometry);

  /// Levels (indices into geometry.levels) that swap heads and that visit blocks, inner first.
  [[nodiscard]] const std::vector<int>& swap_levels() const { return swap_levels_; }
  [[nodiscard]] const std::vector<int>& visit_levels() const { return visit_levels_; }
  [[nodiscard]] int swap_members() const { return swap_members_; }
  [[nodiscard]] int visit_size(int visit_level) const;

  [[nodiscard]] int attention_rank_of(int cp_rank) const;
  [[nodiscard]] int swap_member_of(int cp_rank) const;
  [[nodiscard]] int cp_rank_of(int attention_rank, int swap_member) const;
  [[nodiscard]] int digit(int attention_rank, int visit_level) const;
  [[nodiscard]] int with_digit(int attention_rank, int visit_level, int digit) const;

  /// Query rows of an attention rank: the union of its members' shards of queries.
  [[nodiscard]] const PositionSet& rows(int attention_rank) const { return rows_[index(attention_rank)]; }
  /// Key rows of an attention rank: the union of its members' shards of keys. After a head swap, only those
  /// that somebody in the CP group looks at.
  [[nodiscard]] const PositionSet& kv_rows(int attention_rank) const {
    return kv_rows_[index(attention_rank)];
  }
  /// Keys that somebody in the group entered through `attention_rank` at a visit level looks at: the rank
  /// itself at level 0, everybody who shares its digits from that level on otherwise.
  [[nodiscard]] const PositionSet& needed(int visit_level, int attention_rank) const;

  /// The rows of the block that an attention rank lends to the levels below `visit_level`, when the levels
  /// from there outwards stand at `steps` (one entry per visit level; entries of gathering levels do not
  /// matter). visit_level = visit_levels().size() gives the rank's own key rows.
  [[nodiscard]] PositionSet lent(int visit_level, int attention_rank, const std::vector<int>& steps) const;

 private:
  [[nodiscard]] static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const LayerGeometry& geometry_;
  std::vector<int> sizes_;
  std::vector<int> swap_levels_;
  std::vector<int> visit_levels_;
  std::vector<int> visit_stride_;  ///< of each visit level's digit in an attention rank
  int swap_members_ = 1;
  int attention_ranks_ = 1;
  std::vector<PositionSet> rows_;
  std::vector<PositionSet> kv_rows_;
  std::vector<std::vector<PositionSet>> needed_;  ///< [visit level][attention rank / stride]
};

}  // namespace hcp
