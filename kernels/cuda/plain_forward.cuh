/// Forward attention in fp32 without tensor cores, with the tiles and sums of plain_tile.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/plain_tile.cuh"
#include "kernels/cuda/running_softmax.cuh"
#include "kernels/cuda/seen_keys.cuh"

namespace hcp::cuda {

/// Shared memory of a block.
template <int dim>
struct PlainForwardMemory {
  float q[PlainTile<dim>::elements];
  float k[PlainTile<dim>::elements];
  float v[PlainTile<dim>::elements];
  float p[PlainTile<plain_rows>::elements];  // [queries, keys]
  std::uint8_t kept[KeptPairs<plain_rows, plain_rows>::bytes];
};

/// One block: a tile of queries and a query head.
template <int dim, bool dropping>
class PlainForward {
 public:
  HCP_DEVICE PlainForward(const ForwardParameters& parameters, std::byte* memory)
      : p_{parameters},
        memory_{*reinterpret_cast<PlainForwardMemory<dim>*>(memory)},
        work_{parameters.schedule.work[device::block_x()]},
        head_{device::block_y()} {}

  HCP_DEVICE void run() {
    load(PlainTile<dim>{memory_.q}, p_.q, p_.shape.dim_qk, {first_row(), p_.shape.rows},
         {head_, p_.shape.heads_q});
#pragma unroll 1
    for (int visit = work_.begin; visit < work_.end; ++visit) {
      const int key = p_.schedule.visits[visit].tile * plain_rows;
      const Heads kv_head{kv_head_of(p_.shape, head_), p_.shape.heads_kv};
      load(PlainTile<dim>{memory_.k}, p_.k, p_.shape.dim_qk, {key, p_.shape.keys}, kv_head);
      load(PlainTile<dim>{memory_.v}, p_.v, p_.shape.dim_v, {key, p_.shape.keys}, kv_head);
      if constexpr (dropping) {
        KeptPairs<plain_rows, plain_rows>{memory_.kept}.template draw<plain_threads>(
            p_.dropout, head_, first_row(), p_.shape.rows, key, p_.shape.keys);
      }
      device::barrier();
      store_exponentials(key);
      device::barrier();
      add_plain_products(out_, PlainTile<plain_rows>{memory_.p}, PlainTile<dim>{memory_.v});
      device::barrier();
    }
    merge_rows();
  }

 private:
  struct Rows {
    int first;
    int end;
  };
  struct Heads {
    int head;
    int heads;
  };

  HCP_DEVICE int first_row() const {
    return work_.tile * plain_rows;
  }
  HCP_DEVICE int row_of(int which) const {
    return first_row() + 2 * plain_y() + which;
  }
  /// None of rows behind the last one.
  HCP_DEVICE RowKeys keys_of(int row) const {
    return row < p_.shape.rows ? p_.shape.row_keys[row] : RowKeys{};
  }

  HCP_DEVICE void load(const PlainTile<dim>& tile, const void* source, int used_columns, const Rows& rows,
                       const Heads& heads) const {
    const std::int64_t stride = static_cast<std::int64_t>(heads.heads) * used_columns;
    tile.load(static_cast<const float*>(source) + rows.first * stride + heads.head * used_columns, stride,
              rows.end - rows.first, used_columns);
  }

  HCP_DEVICE void store_exponentials(int first_key) {
    float scores[2][2];
    plain_products(scores, PlainTile<dim>{memory_.q}, PlainTile<dim>{memory_.k}, p_.shape.dim_qk);
    const float scale = score_scale(p_.shape);
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const std::uint64_t seen = seen_keys(keys_of(row_of(which)), first_key);
      const bool sees[2]{(seen >> plain_x() & 1) != 0, (seen >> (plain_x() + plain_edge) & 1) != 0};
      const float low = sees[0] ? scores[which][0] : -infinity;
      const float high = sees[1] ? scores[which][1] : -infinity;
      store_row(which, low * scale, high * scale);
    }
  }
  /// @param low, high  scores of keys x and x + 16
  HCP_DEVICE void store_row(int which, float low, float high) {
    float largest = fmaxf(low, high);
#pragma unroll
    for (int mask = 1; mask < plain_edge; mask *= 2) {
      largest = fmaxf(largest, device::exchange(largest, mask));
    }
    const float factor = softmax_[which].raise(fmaxf(softmax_[which].max, largest));
#pragma unroll
    for (float& element : out_[which]) {
      element *= factor;
    }
    const float reference = reference_of(softmax_[which].max);
    const int row = 2 * plain_y() + which;
    store_element(which, row, plain_x(), device::exp2(low - reference));
    store_element(which, row, plain_x() + plain_edge, device::exp2(high - reference));
  }
  HCP_DEVICE void store_element(int which, int row, int key, float element) {
    softmax_[which].sum += element;
    if constexpr (dropping) {
      if (KeptPairs<plain_rows, plain_rows>{memory_.kept}.kept(row, key) == 0) {
        element = 0.0F;
      }
    }
    PlainTile<plain_rows>{memory_.p}.at(row, key) = element;
  }

  /// Rows that saw nothing keep what they have.
  HCP_DEVICE void merge_rows() {
    RowState states[2];
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      if (row_of(which) < p_.shape.rows) {
        const std::int64_t place = state_place(p_.shape, row_of(which), head_);
        states[which] = {p_.max[place], p_.sum[place]};
      }
#pragma unroll
      for (int mask = 1; mask < plain_edge; mask *= 2) {
        softmax_[which].sum += device::exchange(softmax_[which].sum, mask);
      }
    }
    device::barrier();  // one of the lanes of a row writes what all have read
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      if (!sees_nothing(keys_of(row_of(which)))) {
        merge_row(states[which], which);
      }
    }
  }
  HCP_DEVICE void merge_row(RowState& state, int which) {
    const std::int64_t place = state_place(p_.shape, row_of(which), head_);
    MergeFactors factors = merge(state, softmax_[which]);
    if (plain_x() == 0) {
      p_.max[place] = state.max;
      p_.sum[place] = state.sum;
    }
    if constexpr (dropping) {
      factors.added *= p_.dropout.scale;
    }
    float* const out = p_.out + place * p_.shape.dim_v;
#pragma unroll
    for (int j = 0; j < dim / plain_edge; ++j) {
      const int column = plain_x() + plain_edge * j;
      if (column < p_.shape.dim_v) {
        out[column] = out[column] * factors.before + out_[which][j] * factors.added;
      }
    }
  }

  const ForwardParameters& p_;
  PlainForwardMemory<dim>& memory_;
  TileWork work_;
  int head_;
  RunningSoftmax softmax_[2];            // of the thread's rows
  float out_[2][dim / plain_edge] = {};  // as add_plain_products
};

template <int dim, bool dropping>
HCP_KERNEL(plain_threads, 1)
void plain_forward(const ForwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  PlainForward<dim, dropping>{parameters, memory}.run();
}

}  // namespace hcp::cuda
