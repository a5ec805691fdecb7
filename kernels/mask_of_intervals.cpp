// Any mask, from two key ranges of every query row.

#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/attention_mask.hpp"

namespace hcp {
namespace {

std::string text_of(PositionRange range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

/// The ranges of one row, ascending, the empty ones last and all alike, touching ones as one.
std::array<PositionRange, 2> checked_row(std::array<PositionRange, 2> ranges, std::int64_t row,
                                         std::int64_t keys) {
  for (PositionRange& range : ranges) {
    if (range.begin < 0 || range.end > keys || range.begin > range.end) {
      throw std::invalid_argument{"mask intervals of query row " + std::to_string(row) + ": " +
                                  text_of(range) + " must have 0 <= begin <= end <= " + std::to_string(keys) +
                                  ", the number of keys"};
    }
    if (range.empty()) {
      range = {};
    }
  }
  auto [first, second] = ranges;
  if (first.empty() || (!second.empty() && second.begin < first.begin)) {
    std::swap(first, second);
  }
  if (!second.empty() && second.begin < first.end) {
    throw std::invalid_argument{"mask intervals of query row " + std::to_string(row) + ": " + text_of(first) +
                                " and " + text_of(second) + " overlap; a key must be in one of them at most"};
  }
  if (!second.empty() && second.begin == first.end) {
    return {{{first.begin, second.end}, {}}};
  }
  return {first, second};
}

MovingInterval constant(PositionRange range) {
  return {.begin = range.begin, .end = range.end};
}

/// The interval that is `before` at query - 1 and `now` at query; false if there is none. An empty one does
/// not become another: it is [0, 0), and what is not empty behind a first interval begins at 2 or later.
bool moves_to(PositionRange before, PositionRange now, std::int64_t query, MovingInterval& moving) {
  const auto steps = [](std::int64_t from, std::int64_t to) { return to == from || to == from + 1; };
  if (!steps(before.begin, now.begin) || !steps(before.end, now.end)) {
    return false;
  }
  moving.slope_begin = now.begin - before.begin;
  moving.slope_end = now.end - before.end;
  moving.begin = now.begin - moving.slope_begin * query;
  moving.end = now.end - moving.slope_end * query;
  return true;
}

/// Makes the row part of the piece before it if that has a rule for both.
bool joins(MaskPiece& piece, const std::array<PositionRange, 2>& row, std::int64_t query) {
  if (piece.queries.end != query) {
    return false;
  }
  std::array<MovingInterval, 2> keys = piece.keys;
  for (std::size_t i = 0; i < 2; ++i) {
    if (piece.queries.size() == 1) {
      if (!moves_to(keys[i].at(query - 1), row[i], query, keys[i])) {
        return false;
      }
    } else if (keys[i].at(query) != row[i]) {
      return false;
    }
  }
  piece.keys = keys;
  ++piece.queries.end;
  return true;
}

}  // namespace

AttentionMask AttentionMask::intervals(std::span<const std::int64_t> bounds, std::int64_t keys) {
  if (bounds.size() % 4 != 0) {
    throw std::invalid_argument{
        std::to_string(bounds.size()) +
        " mask interval bounds; every query row must have four: begin, end, begin, end"};
  }
  std::vector<MaskPiece> pieces;
  for (std::int64_t query = 0; query < std::ssize(bounds) / 4; ++query) {
    const auto row_bounds = bounds.subspan(static_cast<std::size_t>(4 * query), 4);
    const auto row =
        checked_row({{{row_bounds[0], row_bounds[1]}, {row_bounds[2], row_bounds[3]}}}, query, keys);
    if (row[0].empty()) {
      continue;
    }
    if (pieces.empty() || !joins(pieces.back(), row, query)) {
      pieces.push_back({{query, query + 1}, {constant(row[0]), constant(row[1])}});
    }
  }
  return AttentionMask{std::move(pieces)};
}

}  // namespace hcp
