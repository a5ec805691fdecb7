/// Which keys the rows of a tile see: what of a visit a panel has to compute, and the mask where that is not
/// a rectangle.
#pragma once

#include <cstdint>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

template <typename T>
[[gnu::always_inline]] constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
[[gnu::always_inline]] constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

/// Keys [begin, end), counted from the first key of the visit, outside of which no row of the panel sees any.
template <typename Isa>
struct PanelRun {
  int begin;
  int end;
  bool full;  ///< every row sees all of them

  [[nodiscard]] bool empty() const { return end <= begin; }
};

template <typename Isa>
class TileKeys {
 public:
  void load(const TileShape& shape) {
    for (int row = 0; row < tile_rows; ++row) {
      for (int i = 0; i < 2; ++i) {
        begin_[i][row] = row < shape.rows ? shape.row_keys[row].begin[i] : 0;
        length_[i][row] =
            row < shape.rows
                ? static_cast<std::uint32_t>(shape.row_keys[row].end[i] - shape.row_keys[row].begin[i])
                : 0;
      }
    }
    for (int panel = 0; panel * panel_rows<Isa> < shape.rows; ++panel) {
      const int first = panel * panel_rows<Isa>;
      const int last = smaller(shape.rows, first + panel_rows<Isa>);
      for (int i = 0; i < 2; ++i) {
        bounds_[panel][i] = bounds_of(shape.row_keys, first, last, i);
      }
    }
  }

  [[nodiscard]] PanelRun<Isa> run_of(int panel, const KeyRun& keys) const {
    const auto count = keys.end - keys.begin;
    PanelRun<Isa> run{count, 0, false};
    for (int i = 0; i < 2; ++i) {
      const Bounds& bounds = bounds_[panel][i];
      const std::int32_t begin = larger(bounds.hull_begin - keys.begin, 0);
      const std::int32_t end = smaller(bounds.hull_end - keys.begin, count);
      if (begin < end) {
        run.begin = smaller(run.begin, begin);
        run.end = larger(run.end, end);
      }
    }
    for (int i = 0; i < 2; ++i) {
      const Bounds& bounds = bounds_[panel][i];
      run.full = run.full ||
                 (bounds.core_begin <= keys.begin + run.begin && keys.begin + run.end <= bounds.core_end);
    }
    return run;
  }

  /// All bits set in the lanes of rows [row, row + lanes) that see key row `key` of the block.
  [[nodiscard, gnu::always_inline]] Ints<Isa> visible(int row, std::int32_t key) const {
    return seen_in(0, row, key) | seen_in(1, row, key);
  }

 private:
  /// Of the i-th intervals of a panel's rows: what they cover together, and what each of them covers.
  struct Bounds {
    std::int32_t hull_begin, hull_end;
    std::int32_t core_begin, core_end;
  };

  static Bounds bounds_of(const RowKeys* rows, int first, int last, int i) {
    Bounds bounds{INT32_MAX, 0, 0, INT32_MAX};
    for (int row = first; row < last; ++row) {
      const std::int32_t begin = rows[row].begin[i];
      const std::int32_t end = rows[row].end[i];
      if (begin < end) {
        bounds.hull_begin = smaller(bounds.hull_begin, begin);
        bounds.hull_end = larger(bounds.hull_end, end);
      }
      bounds.core_begin = larger(bounds.core_begin, begin);
      bounds.core_end = smaller(bounds.core_end, end);
    }
    return bounds;
  }

  [[gnu::always_inline]] Ints<Isa> seen_in(int i, int row, std::int32_t key) const {
    Words<Isa> begin;
    Words<Isa> length;
    __builtin_memcpy(&begin, &begin_[i][row], sizeof(begin));
    __builtin_memcpy(&length, &length_[i][row], sizeof(length));
    return (Ints<Isa>)(static_cast<std::uint32_t>(key) - begin < length);
  }

  std::int32_t begin_[2][tile_rows];
  std::uint32_t length_[2][tile_rows];
  Bounds bounds_[tile_rows / panel_rows<Isa>][2];
};

}  // namespace hcp::tile
