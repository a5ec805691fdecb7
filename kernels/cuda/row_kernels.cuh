/// Operations on rows: see row_parameters.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/mma_tile.cuh"
#include "kernels/cuda/row_elements.cuh"
#include "kernels/cuda/row_parameters.hpp"
#include "kernels/cuda/scalars.cuh"

namespace hcp::cuda {

inline constexpr int row_threads = 256;
inline constexpr int row_warps =
    row_threads / warp_lanes;  ///< rows of a block at a time, where a warp does one

/// The sum of a warp's values, the same in every lane.
HCP_DEVICE float warp_sum(float value) {
#pragma unroll
  for (int mask = warp_lanes / 2; mask > 0; mask /= 2) {
    value += device::exchange(value, mask);
  }
  return value;
}

/// Of a row that is finished: its lse, and by what out is multiplied.
struct RowEnd {
  float lse;
  float factor;
};

HCP_DEVICE RowEnd row_end(float max, float sum, float sink) {
  const float of_keys = (max + device::log2(sum)) * ln_2;  // -inf if the row saw nothing
  if (sink == -infinity) {
    return {of_keys, sum == 0.0F ? 0.0F : 1.0F / sum};
  }
  const float larger = of_keys > sink ? of_keys : sink;
  const float smaller = of_keys > sink ? sink : of_keys;
  const float other = device::exp2((smaller - larger) * log2_e);  // the weight of the larger one is 1
  const float share = (of_keys > sink ? 1.0F : other) / (1.0F + other);
  return {larger + device::log2(1.0F + other) * ln_2, sum == 0.0F ? 0.0F : share / sum};
}

HCP_KERNEL(row_threads, 1)
void finish_forward(const FinishForwardParameters p) {
  const int lane = device::thread() % warp_lanes;
  const std::int64_t stride = static_cast<std::int64_t>(device::blocks_x()) * row_warps;
  std::int64_t first = static_cast<std::int64_t>(device::block_x()) * row_warps;
#pragma unroll 1
  for (; first < p.rows; first += stride) {
    const std::int64_t row = first + device::thread() / warp_lanes;
    RowEnd end{};
    if (row < p.rows) {
      const float sink = p.sinks == nullptr ? -infinity : p.sinks[row % p.heads];
      end = row_end(p.max[row], p.sum[row], sink);
    }
    device::barrier();  // lse may be max
    if (row < p.rows) {
      if (lane == 0) {
        p.lse[row] = end.lse;
      }
      for (int column = lane; column < p.dim_v; column += warp_lanes) {
        p.out[row * p.dim_v + column] *= end.factor;
      }
    }
  }
}

/// A value of every thread, in shared memory.
struct BlockValues {
  float* values;

  /// All of them, folded in the order of a tree.
  template <typename Fold>
  HCP_DEVICE float fold(float value, const Fold& fold) const {
    device::barrier();  // of a fold before
    values[device::thread()] = value;
    device::barrier();
#pragma unroll 1
    for (int half = row_threads / 2; half > 0; half /= 2) {
      if (device::thread() < half) {
        values[device::thread()] = fold(values[device::thread()], values[device::thread() + half]);
      }
      device::barrier();
    }
    return values[0];
  }
};

HCP_KERNEL(row_threads, 1)
void max_logits(const MaxLogitsParameters p) {
  HCP_SHARED_MEMORY(memory);
  const BlockValues values{reinterpret_cast<float*>(memory)};
#pragma unroll 1
  for (int head = device::block_x(); head < p.heads; head += device::blocks_x()) {
    float largest = -infinity;
    for (std::int64_t row = device::thread(); row < p.rows; row += row_threads) {
      const float max = p.max[row * p.heads + head];
      largest = max > largest ? max : largest;
    }
    largest = values.fold(largest, [](float a, float b) { return a > b ? a : b; });
    if (device::thread() == 0) {
      p.logits[head] = largest * ln_2;
    }
  }
}

HCP_KERNEL(row_threads, 1)
void sink_gradients(const SinkGradientsParameters p) {
  HCP_SHARED_MEMORY(memory);
  const BlockValues values{reinterpret_cast<float*>(memory)};
#pragma unroll 1
  for (int head = device::block_x(); head < p.heads; head += device::blocks_x()) {
    float sum = 0.0F;
    for (std::int64_t row = device::thread(); row < p.rows; row += row_threads) {
      const float lse = p.lse[row * p.heads + head];
      if (lse != -infinity) {
        sum -= device::exp2((p.sinks[head] - lse) * log2_e) * p.delta[row * p.heads + head];
      }
    }
    sum = values.fold(sum, [](float a, float b) { return a + b; });
    if (device::thread() == 0) {
      p.dsinks[head] = sum;
    }
  }
}

template <typename Out, typename Dout>
HCP_KERNEL(row_threads, 1)
void row_dot(const RowDotParameters p) {
  const auto* outs = static_cast<const typename RowElement<Out>::Stored*>(p.out);
  const auto* douts = static_cast<const typename RowElement<Dout>::Stored*>(p.dout);
  const int lane = device::thread() % warp_lanes;
  const int runs = rows_are_aligned(outs, p.dim) && rows_are_aligned(douts, p.dim) ? p.dim / run_elements : 0;
  const std::int64_t stride = static_cast<std::int64_t>(device::blocks_x()) * row_warps;
  std::int64_t row = static_cast<std::int64_t>(device::block_x()) * row_warps + device::thread() / warp_lanes;
#pragma unroll 1
  for (; row < p.rows; row += stride) {
    const auto* out = outs + row * p.dim;
    const auto* dout = douts + row * p.dim;
    float sum = 0.0F;
    for (int run = lane; run < runs; run += warp_lanes) {
      float a[run_elements];
      float b[run_elements];
      RowElement<Out>::load_run(out + run * run_elements, a);
      RowElement<Dout>::load_run(dout + run * run_elements, b);
#pragma unroll
      for (int i = 0; i < run_elements; ++i) {
        sum += a[i] * b[i];
      }
    }
    for (int i = runs * run_elements + lane; i < p.dim; i += warp_lanes) {
      sum += RowElement<Out>::widen(out[i]) * RowElement<Dout>::widen(dout[i]);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      p.delta[row] = sum;
    }
  }
}

/// Goes through rows of two tables, a warp per row: `run(source, target)` for eight aligned elements,
/// `single(source, target)` for one.
template <typename From, typename To, typename Run, typename Single>
HCP_DEVICE void for_each_element(const RowTablesParameters& p, const Run& run, const Single& single) {
  const auto* sources = static_cast<const From*>(p.source);
  auto* targets = static_cast<To*>(p.target);
  const int lane = device::thread() % warp_lanes;
  const std::int64_t aligned =
      rows_are_aligned(sources, p.source_stride) && rows_are_aligned(targets, p.target_stride)
          ? p.elements / run_elements * run_elements
          : 0;
  const std::int64_t stride = static_cast<std::int64_t>(device::blocks_x()) * row_warps;
  std::int64_t row = static_cast<std::int64_t>(device::block_x()) * row_warps + device::thread() / warp_lanes;
#pragma unroll 1
  for (; row < p.rows; row += stride) {
    const From* source = sources + row * p.source_stride;
    To* target = targets + row * p.target_stride;
    for (std::int64_t i = lane * run_elements; i < aligned; i += warp_lanes * run_elements) {
      run(source + i, target + i);
    }
    for (std::int64_t i = aligned + lane; i < p.elements; i += warp_lanes) {
      single(source + i, target + i);
    }
  }
}

/// Bit by bit between equal types.
template <typename Source, typename Target>
HCP_KERNEL(row_threads, 1)
void copy_rows(const RowTablesParameters p) {
  using From = typename RowElement<Source>::Stored;
  using To = typename RowElement<Target>::Stored;
  for_each_element<From, To>(
      p,
      [](const From* source, To* target) {
        if constexpr (std::is_same_v<Source, Target>) {
#pragma unroll
          for (int half = 0; half < run_elements * static_cast<int>(sizeof(From)) / 16; ++half) {
            reinterpret_cast<Words*>(target)[half] = reinterpret_cast<const Words*>(source)[half];
          }
        } else {
          float values[run_elements];
          RowElement<Source>::load_run(source, values);
          RowElement<Target>::store_run(values, target);
        }
      },
      [](const From* source, To* target) {
        if constexpr (std::is_same_v<Source, Target>) {
          *target = *source;
        } else {
          *target = RowElement<Target>::round(RowElement<Source>::widen(*source));
        }
      });
}

template <typename Source>
HCP_KERNEL(row_threads, 1)
void add_rows(const RowTablesParameters p) {
  using From = typename RowElement<Source>::Stored;
  for_each_element<From, float>(
      p,
      [](const From* source, float* target) {
        float addends[run_elements];
        float sums[run_elements];
        RowElement<Source>::load_run(source, addends);
        RowElement<Fp32>::load_run(target, sums);
#pragma unroll
        for (int i = 0; i < run_elements; ++i) {
          sums[i] += addends[i];
        }
        RowElement<Fp32>::store_run(sums, target);
      },
      [](const From* source, float* target) { *target += RowElement<Source>::widen(*source); });
}

HCP_KERNEL(row_threads, 1)
void fill(const FillParameters p) {
  const std::int64_t stride = static_cast<std::int64_t>(device::blocks_x()) * row_threads;
  std::int64_t i = static_cast<std::int64_t>(device::block_x()) * row_threads + device::thread();
  for (; i < p.count; i += stride) {
    p.target[i] = p.value;
  }
}

}  // namespace hcp::cuda
