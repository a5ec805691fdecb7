/// Forward attention on tensor cores: a block owns a tile of queries and a query head, and walks through
/// tiles of keys.
///
/// Scores stay in registers and go from there, as exponentials rounded to the storage type, into the product
/// with v. While scores are made v is on its way, while that product is made the next k is. All sums are
/// fp32.
/// @source Dao 2023, arXiv:2307.08691, section 3.3
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/mma_tile.cuh"
#include "kernels/cuda/running_softmax.cuh"
#include "kernels/cuda/seen_keys.cuh"
#include "kernels/cuda/tile_products.cuh"

namespace hcp::cuda {

/// Two groups of 16 queries per warp halve what is read of k and v from shared memory; with more than 128
/// columns of out there are registers for one only.
template <int dim_qk, int dim_v>
struct ForwardTile {
  static constexpr bool large = dim_v > 128;
  static constexpr int groups = large ? 1 : 2;
  static constexpr int queries = 128;
  static constexpr int keys = 64;
  static constexpr int threads = queries / (16 * groups) * warp_lanes;
  static constexpr int blocks = large ? 1 : 2;  ///< on a multiprocessor, at least
};

/// Shared memory of a block.
template <int dim_qk, int dim_v, bool dropping>
struct ForwardMemory {
  using Tile = ForwardTile<dim_qk, dim_v>;
  using Pairs = KeptPairs<Tile::queries, Tile::keys>;

  alignas(128) std::uint16_t q[Tile::queries * dim_qk];
  alignas(128) std::uint16_t k[Tile::keys * dim_qk];
  alignas(128) std::uint16_t v[Tile::keys * dim_v];
  std::uint32_t seen[Tile::queries][2];  // keys of the tile, a bit each; not of full visits
  alignas(8) std::uint8_t kept[dropping ? Pairs::bytes : 1];
};

/// One block.
template <typename Element, int dim_qk, int dim_v, bool dropping>
class Forward {
  using Tile = ForwardTile<dim_qk, dim_v>;
  using Memory = ForwardMemory<dim_qk, dim_v, dropping>;
  using Scores = float[Tile::keys / 8][4];  // [16 queries, keys] of a group

 public:
  HCP_DEVICE Forward(const ForwardParameters& parameters, std::byte* memory)
      : p_{parameters}, memory_{*reinterpret_cast<Memory*>(memory)}, visit_{work().begin} {}

  HCP_DEVICE void run() {
    if (visit_ == work().end) {
      return;
    }
    load_queries();
    load_keys(visit_);
    device::commit_copies();
#pragma unroll 1
    for (; visit_ < work().end; ++visit_) {
      device::wait_for_copies<0>();
      device::barrier();
      load_values();
      device::commit_copies();
      store_masks();
      Scores scores[Tile::groups] = {};
      multiply_keys(scores);
      device::wait_for_copies<0>();
      device::barrier();
      if (!is_full()) {
        hide_unseen(scores);
      }
      exponentiate(scores);
      if (visit_ + 1 < work().end) {
        load_keys(visit_ + 1);
      }
      device::commit_copies();
      multiply_values(scores);
    }
    merge_rows();
  }

 private:
  // Read again where they are needed: registers are short.
  HCP_DEVICE const TileWork& work() const {
    return p_.schedule.work[device::block_x()];
  }
  HCP_DEVICE int head() const {
    return device::block_y();
  }
  HCP_DEVICE int first_row() const {
    return work().tile * Tile::queries;
  }
  HCP_DEVICE int first_key(int visit) const {
    return p_.schedule.visits[visit].tile * Tile::keys;
  }
  HCP_DEVICE bool is_full() const {
    return p_.schedule.visits[visit_].full != 0;
  }

  /// Of the queries of a group of the warp in the tile.
  HCP_DEVICE int group_row(int group) const {
    return (device::thread() / warp_lanes * Tile::groups + group) * 16;
  }
  /// The lane's rows in the block of attention.
  HCP_DEVICE int row_of(int group, int which) const {
    return first_row() + group_row(group) + fragment_row(device::thread() % warp_lanes, which);
  }

  HCP_DEVICE void load_queries() {
    const BlockShape& shape = p_.shape;
    const std::int64_t place = state_place(shape, first_row(), head());
    SharedTile<Tile::queries, dim_qk>{memory_.q}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.q) + place * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - first_row(), shape.dim_qk);
  }
  HCP_DEVICE void load_keys(int visit) {
    load_rows(SharedTile<Tile::keys, dim_qk>{memory_.k}, p_.k, p_.shape.dim_qk, first_key(visit));
  }
  HCP_DEVICE void load_values() {
    load_rows(SharedTile<Tile::keys, dim_v>{memory_.v}, p_.v, p_.shape.dim_v, first_key(visit_));
  }
  /// Of k or v. Belongs to the copies that the next commit closes.
  template <typename KeyTile>
  HCP_DEVICE void load_rows(const KeyTile& tile, const void* source, int dim, int key) const {
    const std::int64_t stride = static_cast<std::int64_t>(p_.shape.heads_kv) * dim;
    tile.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(source) + key * stride + kv_head_of(p_.shape, head()) * dim, stride,
        p_.shape.keys - key, dim);
  }

  HCP_DEVICE void multiply_keys(Scores (&scores)[Tile::groups]) const {
    const SharedTile<Tile::queries, dim_qk> q{memory_.q};
    const SharedTile<Tile::keys, dim_qk> k{memory_.k};
    const int lane = device::fresh_lane();
#pragma unroll
    for (int step = 0; step < dim_qk / 16; ++step) {
      std::uint32_t left[Tile::groups][4];
#pragma unroll
      for (int group = 0; group < Tile::groups; ++group) {
        q.load_a(left[group], group_row(group), step, lane);
      }
#pragma unroll
      for (int pair = 0; pair < Tile::keys / 16; ++pair) {
        std::uint32_t right[4];
        k.load_b_of_rows(right, 16 * pair, step, lane);
#pragma unroll
        for (int group = 0; group < Tile::groups; ++group) {
          Element::multiply(scores[group][2 * pair], left[group], right[0], right[1]);
          Element::multiply(scores[group][2 * pair + 1], left[group], right[2], right[3]);
        }
      }
    }
  }

  /// What the lanes of a row share: what it sees and what dropout keeps.
  HCP_DEVICE void store_masks() {
    const int row = device::thread();
    if (!is_full() && row < Tile::queries) {
      const std::uint64_t seen = seen_keys(keys_of(first_row() + row), first_key(visit_));
      memory_.seen[row][0] = static_cast<std::uint32_t>(seen);
      memory_.seen[row][1] = static_cast<std::uint32_t>(seen >> 32);
    }
    if constexpr (dropping) {
      typename Memory::Pairs{memory_.kept}.template draw<Tile::threads>(
          p_.dropout, head(), first_row(), p_.shape.rows, first_key(visit_), p_.shape.keys);
    }
  }

  HCP_DEVICE void hide_unseen(Scores (&scores)[Tile::groups]) const {
    const int lane = device::fresh_lane();
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const std::uint32_t(&words)[2] = memory_.seen[group_row(group) + fragment_row(lane, which)];
#pragma unroll
        for (int tile = 0; tile < Tile::keys / 8; ++tile) {
          const std::uint32_t seen = words[tile / 4] >> fragment_column(lane) >> (tile % 4 * 8);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if ((seen >> i & 1) == 0) {
              scores[group][tile][2 * which + i] = -infinity;
            }
          }
        }
      }
    }
  }

  /// None of rows behind the last one.
  HCP_DEVICE RowKeys keys_of(int row) const {
    return row < p_.shape.rows ? p_.shape.row_keys[row] : RowKeys{};
  }

  /// From scores to exponentials, with what dropout keeps of them.
  HCP_DEVICE void exponentiate(Scores (&scores)[Tile::groups]) {
    const float scale = score_scale(p_.shape);
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        exponentiate_row(scores[group], group, which, scale);
      }
    }
  }
  HCP_DEVICE void exponentiate_row(Scores& scores, int group, int which, float scale) {
    float largest = -infinity;
#pragma unroll
    for (int tile = 0; tile < Tile::keys / 8; ++tile) {
      largest = fmaxf(largest, fmaxf(scores[tile][2 * which], scores[tile][2 * which + 1]));
    }
    largest = fmaxf(largest, device::exchange(largest, 1));
    largest = fmaxf(largest, device::exchange(largest, 2));
    RunningSoftmax& softmax = softmax_[group][which];
    const float factor = softmax.raise(fmaxf(softmax.max, largest * scale));
#pragma unroll
    for (int tile = 0; tile < dim_v / 8; ++tile) {
      out_[group][tile][2 * which] *= factor;
      out_[group][tile][2 * which + 1] *= factor;
    }
    const float reference = reference_of(softmax.max);
    std::uint64_t kept = 0;
    if constexpr (dropping) {
      const int lane = device::fresh_lane();
      kept = typename Memory::Pairs{memory_.kept}.row(group_row(group) + fragment_row(lane, which)) >>
             Memory::Pairs::bit_of(fragment_column(lane));
    }
#pragma unroll
    for (int tile = 0; tile < Tile::keys / 8; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& element = scores[tile][2 * which + i];
        element = device::exp2(element * scale - reference);
        softmax.sum += element;
        if constexpr (dropping) {
          if ((kept >> Memory::Pairs::bit_of(8 * tile + i) & 1) == 0) {
            element = 0.0F;
          }
        }
      }
    }
  }

  HCP_DEVICE void multiply_values(const Scores (&scores)[Tile::groups]) {
    const SharedTile<Tile::keys, dim_v> v{memory_.v};
    const int lane = device::fresh_lane();
#pragma unroll
    for (int step = 0; step < Tile::keys / 16; ++step) {
      std::uint32_t left[Tile::groups][4];
#pragma unroll
      for (int group = 0; group < Tile::groups; ++group) {
        pack_a<Element>(left[group], scores[group][2 * step], scores[group][2 * step + 1]);
      }
#pragma unroll
      for (int pair = 0; pair < dim_v / 16; ++pair) {
        std::uint32_t right[4];
        v.load_b_of_columns(right, step, 16 * pair, lane);
#pragma unroll
        for (int group = 0; group < Tile::groups; ++group) {
          Element::multiply(out_[group][2 * pair], left[group], right[0], right[1]);
          Element::multiply(out_[group][2 * pair + 1], left[group], right[2], right[3]);
        }
      }
    }
  }

  /// Rows that saw nothing keep what they have.
  HCP_DEVICE void merge_rows() {
    RowState states[Tile::groups][2];
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const int row = row_of(group, which);
        if (row < p_.shape.rows) {
          const std::int64_t place = state_place(p_.shape, row, head());
          states[group][which] = {p_.max[place], p_.sum[place]};
        }
        float& sum = softmax_[group][which].sum;
        sum += device::exchange(sum, 1);
        sum += device::exchange(sum, 2);
      }
    }
    device::barrier();  // one of the four lanes of a row writes what all have read
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        if (!sees_nothing(keys_of(row_of(group, which)))) {
          merge_row(states[group][which], group, which);
        }
      }
    }
  }
  HCP_DEVICE void merge_row(RowState& state, int group, int which) {
    struct alignas(2 * sizeof(float)) Pair {
      float low;
      float high;
    };
    const std::int64_t place = state_place(p_.shape, row_of(group, which), head());
    MergeFactors factors = merge(state, softmax_[group][which]);
    const int column = fragment_column(device::thread() % warp_lanes);
    if (column == 0) {
      p_.max[place] = state.max;
      p_.sum[place] = state.sum;
    }
    if constexpr (dropping) {
      factors.added *= p_.dropout.scale;
    }
    float* const out = p_.out + place * p_.shape.dim_v + column;
#pragma unroll
    for (int tile = 0; tile < dim_v / 8; ++tile) {
      if (8 * tile < p_.shape.dim_v) {
        auto* const pair = reinterpret_cast<Pair*>(out + 8 * tile);
        const Pair before = *pair;
        *pair = {before.low * factors.before + out_[group][tile][2 * which] * factors.added,
                 before.high * factors.before + out_[group][tile][2 * which + 1] * factors.added};
      }
    }
  }

  const ForwardParameters& p_;
  Memory& memory_;
  int visit_;
  RunningSoftmax softmax_[Tile::groups][2];     // of the lane's rows
  float out_[Tile::groups][dim_v / 8][4] = {};  // [16 queries of a group, dim_v], not normalised
};

template <typename Element, int dim_qk, int dim_v, bool dropping>
HCP_KERNEL((ForwardTile<dim_qk, dim_v>::threads), (ForwardTile<dim_qk, dim_v>::blocks))
void forward(const ForwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  Forward<Element, dim_qk, dim_v, dropping>{parameters, memory}.run();
}

}  // namespace hcp::cuda
