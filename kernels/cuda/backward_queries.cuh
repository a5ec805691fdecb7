/// dq on tensor cores: a block owns a tile of queries and a query head, and walks through tiles of keys.
///
/// dS goes from the products that make it into that with k without leaving the registers, rounded to the
/// storage type. All sums are fp32.
/// @source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/backward_pairs.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/mma_tile.cuh"
#include "kernels/cuda/seen_keys.cuh"
#include "kernels/cuda/tile_products.cuh"

namespace hcp::cuda {

/// Two groups of 16 queries per warp halve what is read of k and v from shared memory; with more than 128
/// columns of dq there are registers for one only. Of those blocks two fit on a multiprocessor, with stages
/// of 32 keys where head dims are 128.
template <int dim_qk, int dim_v>
struct BackwardQueriesTile {
  static constexpr bool large = dim_qk + dim_v > 320;
  static constexpr int groups = dim_qk > 128 ? 1 : 2;
  static constexpr int queries = large ? 64 : 128;
  static constexpr int keys = dim_qk + dim_v <= 128 || (groups == 1 && !large) ? 64 : 32;
  static constexpr int threads = queries / (16 * groups) * warp_lanes;
  static constexpr int blocks = groups;  ///< on a multiprocessor, at least
};

/// Shared memory of a block.
template <int dim_qk, int dim_v, bool dropping>
struct BackwardQueriesMemory {
  using Tile = BackwardQueriesTile<dim_qk, dim_v>;
  using Pairs = KeptPairs<Tile::queries, Tile::keys>;

  struct Stage {
    alignas(128) std::uint16_t k[Tile::keys * dim_qk];
    alignas(128) std::uint16_t v[Tile::keys * dim_v];
  };
  alignas(128) std::uint16_t q[Tile::queries * dim_qk];
  alignas(128) std::uint16_t dout[Tile::queries * dim_v];
  Stage stages[2];
  alignas(8) RowFacts facts[Tile::queries];
  std::uint32_t seen[Tile::queries][Tile::keys / 32];  ///< as seen_keys, of visits that are not full
  alignas(8) std::uint8_t kept[dropping ? Pairs::bytes : 1];
};

/// One block. While one stage is computed with, the other one is loaded.
template <typename Element, int dim_qk, int dim_v, bool dropping>
class BackwardQueries {
  using Tile = BackwardQueriesTile<dim_qk, dim_v>;
  using Memory = BackwardQueriesMemory<dim_qk, dim_v, dropping>;
  /// Scores and dP of so many at a time: half of seen_keys, and what the registers hold.
  static constexpr int part_keys = 32;
  using Scores = float[part_keys / 8][4];  // [16 queries, part_keys] of a group

 public:
  HCP_DEVICE BackwardQueries(const BackwardParameters& parameters, std::byte* memory)
      : p_{parameters}, memory_{*reinterpret_cast<Memory*>(memory)} {}

  HCP_DEVICE void run() {
    if (work().begin == work().end) {
      return;
    }
    load_queries();
    load_keys(0, work().begin);
    device::commit_copies();
    store_facts();
    int stage = 0;
#pragma unroll 1
    for (int visit = work().begin; visit < work().end; ++visit) {
      if (visit + 1 < work().end) {
        load_keys(1 - stage, visit + 1);
      }
      device::commit_copies();
      device::wait_for_copies<1>();
      const TileVisit tile = p_.schedule.visits[visit];
      store_masks(tile);
      device::barrier();
      add_visit(memory_.stages[stage], tile);
      device::barrier();
      stage = 1 - stage;
    }
    store_gradient();
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
  /// Of the queries of a group of the warp in the tile.
  HCP_DEVICE int group_row(int group) const {
    return (device::thread() / warp_lanes * Tile::groups + group) * 16;
  }

  HCP_DEVICE void load_queries() {
    const BlockShape& shape = p_.shape;
    const std::int64_t row = static_cast<std::int64_t>(first_row()) * shape.heads_q + head();
    SharedTile<Tile::queries, dim_qk>{memory_.q}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.q) + row * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - first_row(), shape.dim_qk);
    SharedTile<Tile::queries, dim_v>{memory_.dout}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.dout) + row * shape.dim_v,
        static_cast<std::int64_t>(shape.heads_q) * shape.dim_v, shape.rows - first_row(), shape.dim_v);
  }

  /// Belongs to the copies that the next commit closes.
  HCP_DEVICE void load_keys(int stage_index, int visit) {
    const BlockShape& shape = p_.shape;
    typename Memory::Stage& stage = memory_.stages[stage_index];
    const int key = p_.schedule.visits[visit].tile * Tile::keys;
    const std::int64_t row = static_cast<std::int64_t>(key) * shape.heads_kv + kv_head_of(shape, head());
    SharedTile<Tile::keys, dim_qk>{stage.k}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.k) + row * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - key, shape.dim_qk);
    SharedTile<Tile::keys, dim_v>{stage.v}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.v) + row * shape.dim_v,
        static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - key, shape.dim_v);
  }

  HCP_DEVICE void store_facts() {
    if (const int query = device::thread(); query < Tile::queries) {
      const int row = first_row() + query;
      const std::int64_t place = static_cast<std::int64_t>(row) * p_.shape.heads_q + head();
      memory_.facts[query] = row < p_.shape.rows ? row_facts(p_.lse[place], p_.delta[place]) : no_row();
    }
  }

  /// What the lanes of a row share: what it sees and what dropout keeps.
  HCP_DEVICE void store_masks(const TileVisit& visit) {
    const int first_key = visit.tile * Tile::keys;
    if (const int query = device::thread(); visit.full == 0 && query < Tile::queries) {
      const int row = first_row() + query;
      const RowKeys keys = row < p_.shape.rows ? p_.shape.row_keys[row] : RowKeys{};
#pragma unroll
      for (int word = 0; word < Tile::keys / 32; ++word) {
        memory_.seen[query][word] = static_cast<std::uint32_t>(seen_keys(keys, first_key + 32 * word));
      }
    }
    if constexpr (dropping) {
      typename Memory::Pairs{memory_.kept}.template draw<Tile::threads>(
          p_.dropout, head(), first_row(), p_.shape.rows, first_key, p_.shape.keys);
    }
  }

  HCP_DEVICE void add_visit(typename Memory::Stage& stage, const TileVisit& visit) {
#pragma unroll 1
    for (int first = 0; first < Tile::keys; first += part_keys) {
      add_part(stage, first, visit);
    }
  }

  HCP_DEVICE void add_part(typename Memory::Stage& stage, int first_key, const TileVisit& visit) {
    const SharedTile<Tile::keys, dim_qk> k{stage.k};
    Scores p[Tile::groups] = {};
    multiply_transposed<Element>(p, SharedTile<Tile::queries, dim_qk>{memory_.q}, group_row(0), k, first_key);
    Scores ds[Tile::groups] = {};
    multiply_transposed<Element>(ds, SharedTile<Tile::queries, dim_v>{memory_.dout}, group_row(0),
                                 SharedTile<Tile::keys, dim_v>{stage.v}, first_key);
    const float scale = p_.shape.softmax_scale * log2_e;
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
      make_probabilities(group, scale, p[group]);
      if (visit.full == 0) {
        hide_unseen(group, first_key, p[group]);
      }
      differentiate(group, first_key, p[group], ds[group]);
    }
#pragma unroll
    for (int step = 0; step < part_keys / 16; ++step) {
      std::uint32_t rounded[Tile::groups][4];
#pragma unroll
      for (int group = 0; group < Tile::groups; ++group) {
        pack_a<Element>(rounded[group], ds[group][2 * step], ds[group][2 * step + 1]);
      }
      multiply_rows<Element>(dq_, rounded, k, first_key / 16 + step);
    }
  }

  HCP_DEVICE void make_probabilities(int group, float scale, Scores& p) const {
    const int lane = device::fresh_lane();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const float lse = memory_.facts[group_row(group) + fragment_row(lane, which)].lse;
#pragma unroll
      for (int tile = 0; tile < part_keys / 8; ++tile) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
          float& value = p[tile][2 * which + column];
          value = device::exp2(value * scale - lse);
        }
      }
    }
  }

  HCP_DEVICE void hide_unseen(int group, int first_key, Scores& p) const {
    const int lane = device::fresh_lane();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const std::uint32_t seen =
          memory_.seen[group_row(group) + fragment_row(lane, which)][first_key / 32] >> fragment_column(lane);
#pragma unroll
      for (int tile = 0; tile < part_keys / 8; ++tile) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
          float& value = p[tile][2 * which + column];
          value = device::value_if(seen >> (8 * tile + column) & 1U, value);
        }
      }
    }
  }

  /// From dP to dS.
  HCP_DEVICE void differentiate(int group, int first_key, const Scores& p, Scores& ds) const {
    using Pairs = typename Memory::Pairs;
    const int lane = device::fresh_lane();
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const int query = group_row(group) + fragment_row(lane, which);
      const float delta = memory_.facts[query].delta;
      decltype(Pairs{}.row(query)) kept = 0;
      if constexpr (dropping) {
        kept = Pairs{memory_.kept}.row(query) >> Pairs::bit_of(first_key + fragment_column(lane));
      }
#pragma unroll
      for (int tile = 0; tile < part_keys / 8; ++tile) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
          float factor = 1.0F;
          if constexpr (dropping) {
            factor = device::value_if(
                static_cast<std::uint32_t>(kept >> Pairs::bit_of(8 * tile + column)) & 1U, p_.dropout.scale);
          }
          float& value = ds[tile][2 * which + column];
          value = p[tile][2 * which + column] * (value * factor - delta);
        }
      }
    }
  }

  HCP_DEVICE void store_gradient() {
    const BlockShape& shape = p_.shape;
#pragma unroll
    for (int group = 0; group < Tile::groups; ++group) {
      const int row = first_row() + group_row(group);
      const std::int64_t place = static_cast<std::int64_t>(row) * shape.heads_q + head();
      add_fragments<dim_qk>(dq_[group], shape.softmax_scale, p_.dq + place * shape.dim_qk,
                            static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - row,
                            shape.dim_qk);
    }
  }

  const BackwardParameters& p_;
  Memory& memory_;
  float dq_[Tile::groups][dim_qk / 8][4] = {};  // [16 queries of a group, dim_qk]
};

template <typename Element, int dim_qk, int dim_v, bool dropping>
HCP_KERNEL((BackwardQueriesTile<dim_qk, dim_v>::threads), (BackwardQueriesTile<dim_qk, dim_v>::blocks))
void backward_queries(const BackwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  BackwardQueries<Element, dim_qk, dim_v, dropping>{parameters, memory}.run();
}

}  // namespace hcp::cuda
