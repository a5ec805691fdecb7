/// What the softmax does with one row of scores.
#pragma once

#include "kernels/cpu/dropout_rows.hpp"
#include "kernels/cpu/scores.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// The largest score of a row among the keys that it sees.
template <typename Isa>
[[gnu::always_inline]] inline float largest_score(const GroupRun& run, const RowMask<Isa>& mask,
                                                  const float* scores) {
  constexpr int width = panel_width<Isa>;
  const Floats<Isa> nothing = Floats<Isa>{} - infinity;
  Floats<Isa> largest[2] = {nothing, nothing};
  for (int key = run.begin / width * width; key < run.end; key += width) {
    const bool whole = mask.sees_panel(key);
    for (int i = 0; i < 2; ++i) {
      const int at = key + i * Isa::lanes;
      auto score = load<Floats<Isa>>(scores + at);
      if (!whole) {
        score = mask.lanes_from(at) ? score : nothing;
      }
      largest[i] = Isa::larger(largest[i], score);
    }
  }
  return maximum_of_lanes<Isa>(Isa::larger(largest[0], largest[1]))[0];
}

/// Replaces the scores of one row by exp2(score - reference), 0 where the row does not see the key, and what
/// dropout makes of that.
/// @return the sum before dropout
template <typename Isa, typename Operands, typename Dropping>
[[gnu::always_inline]] inline float exponentiate(const GroupRun& run, const RowMask<Isa>& mask,
                                                 const Dropping& dropout, float reference, float* scores) {
  constexpr int width = panel_width<Isa>;
  Floats<Isa> sum[2] = {};
  for (int key = run.begin / width * width; key < run.end; key += width) {
    const bool whole = mask.sees_panel(key);
    Floats<Isa> p[2];
    for (int i = 0; i < 2; ++i) {
      const int at = key + i * Isa::lanes;
      p[i] = exp2_of<Isa>(load<Floats<Isa>>(scores + at) - reference);
      if (!whole) {
        p[i] = mask.lanes_from(at) ? p[i] : Floats<Isa>{};
      }
      sum[i] += p[i];
      dropout.apply(at, p[i]);
    }
    store_in_order<Isa, Operands>(scores, key, p);
  }
  return sum_of_lanes<Isa>(sum[0] + sum[1])[0];
}

}  // namespace hcp::tile
