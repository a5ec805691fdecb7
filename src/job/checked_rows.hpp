/// Which rows of a shard are checked, and numbers per row that ranks tell each other for it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/position_ranges.hpp"
#include "src/job/lockstep.hpp"

namespace hcp {

/// Some rows of this rank.
struct SelectedRows {
  std::vector<std::int64_t> rows;       ///< of the rank's tensors
  std::vector<std::int64_t> positions;  ///< their global positions
  std::vector<std::size_t> chunks;      ///< the range of the shard in which each one lies
  PositionSet set;                      ///< the positions again

  [[nodiscard]] std::int64_t count() const { return std::ssize(rows); }
};

/// At most `count` of the rows of `shard`, spread evenly with the first and the last among them.
[[nodiscard]] SelectedRows spread_rows(const PositionSet& shard, std::int64_t count);

/// The rows of `shard` at the positions of `part`, not empty and a subset.
[[nodiscard]] SelectedRows rows_within(const PositionSet& shard, const PositionSet& part);

/// Tokens of which ranks need a number that other ranks hold. Nothing larger than the own need is kept, and
/// no message grows with the length of the sequence.
class AskedTokens {
 public:
  /// Collective.
  /// @param needed  by this rank
  /// @param group   must outlive this
  AskedTokens(PositionSet needed, const Lockstep& group);

  [[nodiscard]] const PositionSet& needed() const { return needed_; }
  /// By any rank.
  [[nodiscard]] const PositionSet& asked() const { return asked_; }

  /// Collective. One number per token from the rank that holds it.
  /// @param held      tokens of which this rank has the number
  /// @param value_of  the number of the i-th of them
  /// @return [needed], NaN where no rank holds a token
  [[nodiscard]] std::vector<double> fetch(const PositionSet& held,
                                          const std::function<double(std::int64_t)>& value_of) const;
  /// @param values  [held]
  [[nodiscard]] std::vector<double> fetch(const PositionSet& held, const std::vector<double>& values) const;

 private:
  void fetch_part(const PositionSet& held, const std::function<double(std::int64_t)>& value_of, RowSpan part,
                  std::vector<double>& values) const;

  PositionSet needed_;
  PositionSet asked_;  ///< the same on all ranks: what travels is numbered by it
  const Lockstep& group_;
};

}  // namespace hcp
