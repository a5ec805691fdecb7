/// Which keys the rows of a tile see: what of a visit a group of rows has to compute, and the mask where that
/// is not a rectangle.
#pragma once

#include <cstdint>

#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Keys [begin, end), counted from an origin, outside of which no row of the group sees any.
struct GroupRun {
  int begin = 0;
  int end = 0;

  [[nodiscard, gnu::always_inline]] bool empty() const { return end <= begin; }
};

/// Groups [first, last) of a tile.
struct GroupSpan {
  int first = 0;
  int last = 0;
};

/// What the rows [first, last) of a tile have to compute of keys [from, to) of the block.
/// @param origin key of the block from which the run is counted
static inline GroupRun run_of(const RowsShape& shape, int first, int last, int from, int to, int origin) {
  int begin = to;
  int end = from;
  for (int row = first; row < last; ++row) {
    for (int i = 0; i < 2; ++i) {
      const int row_begin = larger(shape.row_keys[row].begin[i], from);
      const int row_end = smaller(shape.row_keys[row].end[i], to);
      if (row_begin < row_end) {
        begin = smaller(begin, row_begin);
        end = larger(end, row_end);
      }
    }
  }
  return {begin - origin, end - origin};
}

/// One visit as the groups of a tile see it.
template <typename Isa>
struct VisitRuns {
  static constexpr int most_groups = tile_rows / group_rows;
  static_assert(tile_rows % group_rows == 0);

  int groups = 0;
  int tile_begin = 0;  ///< first key of the key tile, counted from the first of the block
  int begin = 0;       ///< keys [begin, end) of the key tile are those of the visit
  int end = 0;
  GroupRun runs[most_groups];

  VisitRuns(const RowsShape& shape, const KeyVisit& visit)
      : groups{(shape.rows + group_rows - 1) / group_rows},
        tile_begin{visit.begin / tile_keys * tile_keys},
        begin{visit.begin - tile_begin},
        end{visit.end - tile_begin} {
    for (int group = 0; group < groups; ++group) {
      const int first = group * group_rows;
      runs[group] =
          run_of(shape, first, smaller(shape.rows, first + group_rows), visit.begin, visit.end, tile_begin);
    }
  }

  /// The groups whose runs meet keys [first, last), with those in between.
  [[nodiscard]] GroupSpan groups_that_meet(int first, int last) const {
    GroupSpan span{groups, 0};
    for (int group = 0; group < groups; ++group) {
      const GroupRun& run = runs[group];
      if (larger(run.begin, first) < smaller(run.end, last)) {
        span.first = smaller(span.first, group);
        span.last = group + 1;
      }
    }
    return span;
  }
};

/// The keys that one row sees, counted from an origin.
template <typename Isa>
class RowMask {
 public:
  RowMask() = default;
  RowMask(const RowKeys& keys, int origin) {
    for (int i = 0; i < 2; ++i) {
      begin_[i] = keys.begin[i] - origin;
      end_[i] = keys.end[i] - origin;
    }
  }

  /// Whether the row sees all of the panel that begins at `key`.
  [[nodiscard]] bool sees_panel(int key) const {
    return (begin_[0] <= key && key + panel_width<Isa> <= end_[0]) ||
           (begin_[1] <= key && key + panel_width<Isa> <= end_[1]);
  }

  /// All bits set in the lanes of keys [key, key + lanes) that the row sees.
  [[nodiscard, gnu::always_inline]] Ints<Isa> lanes_from(int key) const {
    const Ints<Isa> keys = lane_numbers<Isa>() + key;
    return ((begin_[0] <= keys) & (keys < end_[0])) | ((begin_[1] <= keys) & (keys < end_[1]));
  }

 private:
  int begin_[2];
  int end_[2];
};

}  // namespace hcp::tile
