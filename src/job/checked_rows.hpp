/// Which rows of a shard are checked, and numbers per row that ranks tell each other for it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/position_ranges.hpp"
#include "src/job/verification.hpp"

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

/// One number per token and head of a group, gathered from all ranks; NaN where no rank gave one.
class GatheredRows {
 public:
  GatheredRows(HeadSpan heads, std::int64_t tokens)
      : heads_{heads},
        tokens_{tokens},
        values_(static_cast<std::size_t>(heads.count * tokens), std::numeric_limits<double>::quiet_NaN()) {}

  /// Adds this rank's values for one of the heads to what it will send.
  /// @param value_at value of the i-th position of `rows`
  template <typename ValueAt>
  void contribute(std::int64_t head, const PositionSet& rows, const ValueAt& value_at) {
    std::int64_t row = 0;
    for (const PositionRange range : rows) {
      for (const std::int64_t header : {head, range.begin, range.end}) {
        sent_.push_back(static_cast<double>(header));
      }
      for (std::int64_t i = 0; i < range.size(); ++i) {
        sent_.push_back(value_at(row++));
      }
    }
  }

  /// Collective. Puts what all ranks contributed in its place.
  void gather(const GatherDoubles& gather);

  /// [tokens] of one head
  [[nodiscard]] const double* of_head(std::int64_t head) const {
    return values_.data() + (head - heads_.first) * tokens_;
  }

 private:
  HeadSpan heads_;
  std::int64_t tokens_;
  std::vector<double> values_;
  std::vector<double> sent_;
};

}  // namespace hcp
