#include "kernels/attention_mask.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

void check_offsets(std::span<const std::int64_t> offsets) {
  if (offsets.empty() || offsets.front() != 0) {
    throw std::invalid_argument{"document offsets must begin with 0"};
  }
  const auto descent = std::ranges::adjacent_find(offsets, std::ranges::greater{});
  if (descent != offsets.end()) {
    throw std::invalid_argument{"document offsets must ascend: " + std::to_string(*descent) +
                                " stands before " + std::to_string(*std::next(descent))};
  }
}

/// The queries of `queries` for which `keys` is not empty: end - begin is monotone in the query, so they are
/// one range.
PositionRange seeing(const MovingInterval& keys, PositionRange queries) {
  const std::int64_t size_at_zero = keys.end - keys.begin;
  switch (keys.slope_end - keys.slope_begin) {
    case 1:
      return {std::max(queries.begin, 1 - size_at_zero), queries.end};
    case -1:
      return {queries.begin, std::min(queries.end, size_at_zero)};
    default:
      return size_at_zero > 0 ? queries : PositionRange{queries.begin, queries.begin};
  }
}

/// The union of `keys` over `queries`: one range, as a bound moves by at most one position per query.
PositionRange swept(const MovingInterval& keys, PositionRange queries) {
  const PositionRange active = seeing(keys, queries);
  if (active.empty()) {
    return {};
  }
  return {keys.at(active.begin).begin, keys.at(active.end - 1).end};
}

/// Sum of first, first + 1, ..., first + count - 1.
std::int64_t arithmetic_sum(std::int64_t first, std::int64_t count) {
  return first * count + count * (count - 1) / 2;
}

/// Sum of clamp(bound + slope * query, limits) over `queries`.
std::int64_t clamped_sum(std::int64_t bound, std::int64_t slope, PositionRange queries,
                         PositionRange limits) {
  if (slope == 0) {
    return std::clamp(bound, limits.begin, limits.end) * queries.size();
  }
  const std::int64_t reaches_begin = std::clamp(limits.begin - bound, queries.begin, queries.end);
  const std::int64_t reaches_end = std::clamp(limits.end - bound, reaches_begin, queries.end);
  return (reaches_begin - queries.begin) * limits.begin +
         arithmetic_sum(bound + reaches_begin, reaches_end - reaches_begin) +
         (queries.end - reaches_end) * limits.end;
}

/// Visible pairs with the key in `limits`.
std::int64_t clamped_area(const MovingInterval& keys, PositionRange queries, PositionRange limits) {
  const PositionRange active = seeing(keys, queries);
  return active.empty() ? 0
                        : clamped_sum(keys.end, keys.slope_end, active, limits) -
                              clamped_sum(keys.begin, keys.slope_begin, active, limits);
}

}  // namespace

AttentionMask AttentionMask::no_mask(std::span<const std::int64_t> offsets) {
  check_offsets(offsets);
  AttentionMask mask;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const PositionRange document{offsets[i], offsets[i + 1]};
    if (!document.empty()) {
      mask.pieces_.push_back({document, {MovingInterval{.begin = document.begin, .end = document.end}}});
    }
  }
  return mask;
}

AttentionMask AttentionMask::causal(std::span<const std::int64_t> offsets) {
  check_offsets(offsets);
  AttentionMask mask;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const PositionRange document{offsets[i], offsets[i + 1]};
    if (!document.empty()) {
      mask.pieces_.push_back({document, {MovingInterval{.begin = document.begin, .end = 1, .slope_end = 1}}});
    }
  }
  return mask;
}

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
  auto piece = std::ranges::upper_bound(pieces_, queries.begin, {},
                                        [](const MaskPiece& each) { return each.queries.end; });
  for (; piece != pieces_.end() && piece->queries.begin < queries.end; ++piece) {
    const PositionRange common{std::max(piece->queries.begin, queries.begin),
                               std::min(piece->queries.end, queries.end)};
    if (!common.empty()) {
      within.push_back({common, piece->keys});
    }
  }
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
  std::int64_t pairs = 0;
  for (const PositionRange range : queries) {
    for (const MaskPiece& piece : pieces_within(range)) {
      for (const MovingInterval& keys : piece.keys) {
        pairs += clamped_area(keys, piece.queries, swept(keys, piece.queries));
      }
    }
  }
  return pairs;
}

std::int64_t AttentionMask::area(const PositionSet& queries, const PositionSet& keys) const {
  std::int64_t pairs = 0;
  for (const PositionRange range : queries) {
    for (const MaskPiece& piece : pieces_within(range)) {
      for (const MovingInterval& interval : piece.keys) {
        const PositionRange reach = swept(interval, piece.queries);
        auto held = std::ranges::upper_bound(keys, reach.begin, {}, &PositionRange::end);
        for (; held != keys.end() && held->begin < reach.end; ++held) {
          pairs += clamped_area(interval, piece.queries, *held);
        }
      }
    }
  }
  return pairs;
}

}  // namespace hcp
