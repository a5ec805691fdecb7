/// dq on tensor cores: a block owns a tile of queries and a query head, and walks through tiles of keys.
///
/// 16 queries per warp; dS goes from the products that make it into that with k without leaving the
/// registers, rounded to the storage type. All sums are fp32.
/// @source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/backward_pairs.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/mma_tile.cuh"
#include "kernels/cuda/seen_keys.cuh"
#include "kernels/cuda/tile_products.cuh"

namespace hcp::cuda {

template <int dim_qk, int dim_v>
struct BackwardQueriesTile {
  static constexpr bool small = dim_qk + dim_v <= 128;
  static constexpr bool large = dim_qk + dim_v > 320;
  static constexpr int queries = small || large ? 64 : 128;
  static constexpr int keys = large ? 32 : 64;
  static constexpr int threads = queries / 16 * warp_lanes;
  static constexpr int blocks = small ? 3 : 1;  ///< on a multiprocessor, at least
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
  std::uint8_t kept[dropping ? Pairs::bytes : 1];
};

/// One block. While one stage is computed with, the other one is loaded.
template <typename Element, int dim_qk, int dim_v, bool dropping>
class BackwardQueries {
  using Tile = BackwardQueriesTile<dim_qk, dim_v>;
  using Memory = BackwardQueriesMemory<dim_qk, dim_v, dropping>;
  /// Scores and dP of so many at a time: half of seen_keys, and what the registers hold.
  static constexpr int part_keys = 32;

 public:
  HCP_DEVICE BackwardQueries(const BackwardParameters& parameters, std::byte* memory)
      : p_{parameters},
        memory_{*reinterpret_cast<Memory*>(memory)},
        work_{parameters.schedule.work[device::block_x()]},
        head_{device::block_y()},
        kv_head_{(parameters.shape.first_query_head + head_) / parameters.shape.queries_per_kv -
                 parameters.shape.first_kv_head} {}

  HCP_DEVICE void run() {
    if (work_.begin == work_.end) {
      return;
    }
    load_queries();
    load_keys(0, work_.begin);
    device::commit_copies();
    read_facts();
    int stage = 0;
#pragma unroll 1
    for (int visit = work_.begin; visit < work_.end; ++visit) {
      if (visit + 1 < work_.end) {
        load_keys(1 - stage, visit + 1);
      }
      device::commit_copies();
      device::wait_for_copies<1>();
      const TileVisit tile = p_.schedule.visits[visit];
      if constexpr (dropping) {
        typename Memory::Pairs{memory_.kept}.template draw<Tile::threads>(
            p_.dropout, head_, first_row(), p_.shape.rows, tile.tile * Tile::keys, p_.shape.keys);
      }
      device::barrier();
      add_visit(memory_.stages[stage], tile);
      device::barrier();
      stage = 1 - stage;
    }
    device::wait_for_copies<0>();
    store_gradient();
  }

 private:
  HCP_DEVICE int first_row() const {
    return work_.tile * Tile::queries;
  }
  /// Of the queries of the warp in the tile.
  HCP_DEVICE int warp_row() const {
    return device::thread() / warp_lanes * 16;
  }
  /// The lane's rows in the block of attention.
  HCP_DEVICE int row_of(int which) const {
    return first_row() + warp_row() + fragment_row(device::thread() % warp_lanes, which);
  }

  HCP_DEVICE void load_queries() {
    const BlockShape& shape = p_.shape;
    const std::int64_t row = static_cast<std::int64_t>(first_row()) * shape.heads_q + head_;
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
    const std::int64_t row = static_cast<std::int64_t>(key) * shape.heads_kv + kv_head_;
    SharedTile<Tile::keys, dim_qk>{stage.k}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.k) + row * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - key, shape.dim_qk);
    SharedTile<Tile::keys, dim_v>{stage.v}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.v) + row * shape.dim_v,
        static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - key, shape.dim_v);
  }

  HCP_DEVICE void read_facts() {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const std::int64_t place = static_cast<std::int64_t>(row_of(which)) * p_.shape.heads_q + head_;
      facts_[which] = row_of(which) < p_.shape.rows ? row_facts(p_.lse[place], p_.delta[place]) : no_row();
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
    float p[part_keys / 8][4] = {};
    multiply_transposed<Element>(p, SharedTile<Tile::queries, dim_qk>{memory_.q}, warp_row(), k, first_key);
    float ds[part_keys / 8][4] = {};
    multiply_transposed<Element>(ds, SharedTile<Tile::queries, dim_v>{memory_.dout}, warp_row(),
                                 SharedTile<Tile::keys, dim_v>{stage.v}, first_key);
    make_probabilities(p);
    if (visit.full == 0) {
      hide_unseen(visit.tile * Tile::keys + first_key, p);
    }
#pragma unroll
    for (int tile = 0; tile < part_keys / 8; ++tile) {
      differentiate(first_key + 8 * tile, p[tile], ds[tile]);
    }
#pragma unroll
    for (int step = 0; step < part_keys / 16; ++step) {
      std::uint32_t rounded[4];
      pack_a<Element>(rounded, ds[2 * step], ds[2 * step + 1]);
      multiply_rows<Element>(dq_, rounded, k, first_key / 16 + step);
    }
  }

  HCP_DEVICE void make_probabilities(float (&p)[part_keys / 8][4]) const {
    const float scale = p_.shape.softmax_scale * log2_e;
#pragma unroll
    for (int tile = 0; tile < part_keys / 8; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        p[tile][i] = device::exp2(p[tile][i] * scale - facts_[i / 2].lse);
      }
    }
  }

  HCP_DEVICE void hide_unseen(int first_key, float (&p)[part_keys / 8][4]) const {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const RowKeys keys = row_of(which) < p_.shape.rows ? p_.shape.row_keys[row_of(which)] : RowKeys{};
      const auto seen = static_cast<std::uint32_t>(seen_keys(keys, first_key)) >> column_of(0);
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

  /// Of 16 queries and 8 keys, from dP to dS.
  HCP_DEVICE void differentiate(int first_key, const float (&p)[4], float (&ds)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float factor = 1.0F;
      if constexpr (dropping) {
        const int query = warp_row() + fragment_row(device::thread() % warp_lanes, i / 2);
        const int key = first_key + column_of(i);
        factor = device::value_if(typename Memory::Pairs{memory_.kept}.kept(query, key), p_.dropout.scale);
      }
      ds[i] = p[i] * (ds[i] * factor - facts_[i / 2].delta);
    }
  }

  /// Of element i of the lane in a C of 16 queries and 8 keys: its key in the C.
  static HCP_DEVICE int column_of(int i) {
    return fragment_column(device::thread() % warp_lanes) + i % 2;
  }

  HCP_DEVICE void store_gradient() {
    const BlockShape& shape = p_.shape;
    const int row = first_row() + warp_row();
    const std::int64_t place = static_cast<std::int64_t>(row) * shape.heads_q + head_;
    add_fragments<dim_qk>(dq_, shape.softmax_scale, p_.dq + place * shape.dim_qk,
                          static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - row,
                          shape.dim_qk);
  }

  const BackwardParameters& p_;
  Memory& memory_;
  TileWork work_;
  int head_;
  int kv_head_;
  RowFacts facts_[2];             // of the lane's rows
  float dq_[dim_qk / 8][4] = {};  // [16 queries of the warp, dim_qk]
};

template <typename Element, int dim_qk, int dim_v, bool dropping>
HCP_KERNEL((BackwardQueriesTile<dim_qk, dim_v>::threads), (BackwardQueriesTile<dim_qk, dim_v>::blocks))
void backward_queries(const BackwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  BackwardQueries<Element, dim_qk, dim_v, dropping>{parameters, memory}.run();
}

}  // namespace hcp::cuda
