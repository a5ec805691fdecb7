#include "kernels/attention_mask.hpp"

#include <algorithm>
#include <utility>

namespace hcp {
namespace {

/// The union of `keys` over `queries`, of which there is one at least: one range. A bound moves by at most
/// one position per query, and never back, so what one query sees touches what the next one sees.
PositionRange swept(const MovingInterval& keys, PositionRange queries) {
  return {keys.at(queries.begin).begin, keys.at(queries.end - 1).end};
}

/// Sum of first, first + 1, ..., first + count - 1.
std::int64_t arithmetic_sum(std::int64_t first, std::int64_t count) {
  return first * count + count * (count - 1) / 2;
}

/// Sum of the positions bound + slope * query over `queries`.
std::int64_t sum_of_bounds(std::int64_t bound, std::int64_t slope, PositionRange queries) {
  return slope == 0 ? bound * queries.size() : arithmetic_sum(bound + queries.begin, queries.size());
}

/// How many positions of a set lie below a position, and the sum of that over a run of positions.
class CountsBelow {
 public:
  explicit CountsBelow(const PositionSet& set) {
    steps_.reserve(set.size());
    for (const PositionRange range : set) {
      steps_.push_back({range, below(range.begin), sum_below(range.begin)});
    }
  }

  /// Number of positions of the set below `position`.
  [[nodiscard]] std::int64_t below(std::int64_t position) const {
    const Step* step = step_at(position);
    return step == nullptr ? 0
                           : step->count_before + std::min(position - step->range.begin, step->range.size());
  }

  /// Sum of below(bound + slope * query) over `queries`.
  [[nodiscard]] std::int64_t sum_of_bounds(std::int64_t bound, std::int64_t slope,
                                           PositionRange queries) const {
    return slope == 0 ? below(bound) * queries.size()
                      : sum_below(bound + queries.end) - sum_below(bound + queries.begin);
  }

 private:
  struct Step {
    PositionRange range;
    std::int64_t count_before = 0;  ///< below(range.begin)
    std::int64_t sum_before = 0;    ///< sum_below(range.begin)
  };

  /// The last range that begins at or before `position`; nullptr if there is none.
  [[nodiscard]] const Step* step_at(std::int64_t position) const {
    const auto after =
        std::ranges::upper_bound(steps_, position, {}, [](const Step& step) { return step.range.begin; });
    return after == steps_.begin() ? nullptr : &*std::prev(after);
  }

  /// Sum of below(each) over all positions each < position.
  [[nodiscard]] std::int64_t sum_below(std::int64_t position) const {
    const Step* step = step_at(position);
    if (step == nullptr) {
      return 0;
    }
    const std::int64_t inside = std::min(position - step->range.begin, step->range.size());
    const std::int64_t behind = position - step->range.begin - inside;
    return step->sum_before + arithmetic_sum(step->count_before, inside) +
           behind * (step->count_before + step->range.size());
  }

  std::vector<Step> steps_;
};

/// Calls `with` with every piece that meets the range, cut to it, until that returns false.
template <typename With>
void for_pieces_within(std::span<const MaskPiece> pieces, PositionRange queries, const With& with) {
  auto piece = std::ranges::upper_bound(pieces, queries.begin, {},
                                        [](const MaskPiece& each) { return each.queries.end; });
  for (; piece != pieces.end() && piece->queries.begin < queries.end; ++piece) {
    const PositionRange common{std::max(piece->queries.begin, queries.begin),
                               std::min(piece->queries.end, queries.end)};
    if (!common.empty() && !with(MaskPiece{common, piece->keys})) {
      return;
    }
  }
}

/// Visible pairs with a query of the piece.
/// @param sum_of_bounds sum over queries of the keys below bound + slope * query, of those that are counted
template <typename SumOfBounds>
std::int64_t pairs_of(const MaskPiece& piece, const SumOfBounds& sum_of_bounds) {
  std::int64_t pairs = 0;
  for (const MovingInterval& keys : piece.keys) {
    pairs += sum_of_bounds(keys.end, keys.slope_end, piece.queries) -
             sum_of_bounds(keys.begin, keys.slope_begin, piece.queries);
  }
  return pairs;
}

/// Visible pairs with the query in `queries`.
template <typename SumOfBounds>
std::int64_t visible_pairs(std::span<const MaskPiece> pieces, const PositionSet& queries,
                           const SumOfBounds& sum_of_bounds) {
  std::int64_t pairs = 0;
  for (const PositionRange range : queries) {
    for_pieces_within(pieces, range, [&](const MaskPiece& piece) {
      pairs += pairs_of(piece, sum_of_bounds);
      return true;
    });
  }
  return pairs;
}

}  // namespace

std::array<PositionRange, 2> AttentionMask::visible(std::int64_t query) const {
  const auto after = std::ranges::upper_bound(pieces_, query, {},
                                              [](const MaskPiece& piece) { return piece.queries.begin; });
  if (after == pieces_.begin()) {
    return {};
  }
  const MaskPiece& piece = *std::prev(after);
  if (query >= piece.queries.end) {
    return {};
  }
  std::array<PositionRange, 2> intervals;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const PositionRange keys = piece.keys[i].at(query);
    intervals[i] = keys.empty() ? PositionRange{} : keys;
  }
  return intervals;
}

std::vector<MaskPiece> AttentionMask::pieces_within(PositionRange queries) const {
  std::vector<MaskPiece> within;
  for_pieces_within(pieces_, queries, [&](const MaskPiece& piece) {
    within.push_back(piece);
    return true;
  });
  return within;
}

PositionSet AttentionMask::looked_at(const PositionSet& queries) const {
  std::vector<PositionRange> ranges;
  for (const PositionRange range : queries) {
    for (const MaskPiece& piece : pieces_within(range)) {
      for (const MovingInterval& keys : piece.keys) {
        ranges.push_back(swept(keys, piece.queries));
      }
    }
  }
  return normalised(std::move(ranges));
}

std::int64_t AttentionMask::area(const PositionSet& queries) const {
  return visible_pairs(pieces_, queries, sum_of_bounds);
}

std::int64_t AttentionMask::area(const PositionSet& queries, const PositionSet& keys) const {
  const CountsBelow counts{keys};
  return visible_pairs(pieces_, queries, [&](std::int64_t bound, std::int64_t slope, PositionRange range) {
    return counts.sum_of_bounds(bound, slope, range);
  });
}

std::int64_t AttentionMask::half_of_area(const PositionSet& queries, const PositionSet& keys) const {
  const CountsBelow counts{keys};
  const auto sum_of_bounds = [&](std::int64_t bound, std::int64_t slope, PositionRange range) {
    return counts.sum_of_bounds(bound, slope, range);
  };
  const std::int64_t whole = visible_pairs(pieces_, queries, sum_of_bounds);
  if (whole == 0) {
    return 0;
  }
  std::int64_t pairs = 0;         // of the pieces before
  std::int64_t range_before = 0;  // queries before this range
  std::int64_t half = -1;
  for (const PositionRange range : queries) {
    for_pieces_within(pieces_, range, [&](const MaskPiece& piece) {
      const std::int64_t of_piece = pairs_of(piece, sum_of_bounds);
      if (2 * (pairs + of_piece) < whole) {
        pairs += of_piece;
        return true;
      }
      PositionRange ends = piece.queries;  // the last query that is needed lies in it
      while (ends.size() > 1) {
        const std::int64_t middle = ends.begin + ends.size() / 2;
        const MaskPiece leading{{piece.queries.begin, middle}, piece.keys};
        if (2 * (pairs + pairs_of(leading, sum_of_bounds)) < whole) {
          ends.begin = middle;
        } else {
          ends.end = middle;
        }
      }
      half = range_before + ends.end - range.begin;
      return false;
    });
    if (half >= 0) {
      break;
    }
    range_before += range.size();
  }
  return half;
}

}  // namespace hcp
