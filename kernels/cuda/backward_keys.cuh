/// dk and dv on tensor cores: a block owns a tile of keys and a KV head, and walks through the query heads
/// that share it and their tiles of queries.
///
/// Scores are held transposed, [keys, queries], 16 keys per warp: so P and dS go from the products that make
/// them into the products with dout and q without leaving the registers. They are rounded to the storage
/// type; all sums are fp32.
/// @source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/backward_pairs.cuh"
#include "kernels/cuda/backward_visits.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/mma_tile.cuh"
#include "kernels/cuda/seen_keys.cuh"
#include "kernels/cuda/tile_products.cuh"

namespace hcp::cuda {

/// Where the sums of both do not fit into the registers, a kernel makes one of them.
enum class KeyGradients { dk_and_dv, dk, dv };

template <int dim_qk, int dim_v>
struct BackwardKeysTile {
  static constexpr bool one_gradient = dim_qk + dim_v > 320;
  static constexpr int keys = dim_qk + dim_v <= 128 || one_gradient ? 64 : 128;
  static constexpr int queries = dim_qk + dim_v <= 256 ? 64 : 32;
  /// Scores and dP of so many at a time: more read fragments of keys more rarely, as long as they fit into
  /// the registers.
  static constexpr int part_queries(bool dropping) {
    return dim_qk + dim_v <= (dropping ? 128 : 256) ? 64 : dim_qk + dim_v <= 256 || one_gradient ? 32 : 16;
  }
  static constexpr int threads = keys / 16 * warp_lanes;
  static constexpr int blocks = dim_qk + dim_v <= 128 ? 2 : 1;  ///< on a multiprocessor, at least
};

/// Shared memory of a block.
template <int dim_qk, int dim_v, bool dropping>
struct BackwardKeysMemory {
  using Tile = BackwardKeysTile<dim_qk, dim_v>;
  using Pairs = KeptPairs<Tile::queries, Tile::keys>;

  struct Stage {
    alignas(16) std::uint16_t q[Tile::queries * dim_qk];
    alignas(16) std::uint16_t dout[Tile::queries * dim_v];
    alignas(16) RowKeys keys[Tile::queries];
    // Queries that follow each other lie in banks that follow each other, and are read in pairs.
    alignas(8) float lse[Tile::queries];                            ///< as RowFacts, once they are there
    alignas(8) float delta[Tile::queries];                          ///< as RowFacts
    alignas(8) std::uint32_t seen[Tile::keys / 32][Tile::queries];  ///< as seen_keys; not of full visits
  };
  alignas(128) std::uint16_t k[Tile::keys * dim_qk];
  alignas(128) std::uint16_t v[Tile::keys * dim_v];
  alignas(128) Stage stages[2];
  std::uint8_t kept[dropping ? Pairs::bytes : 1];
};

/// One block. While one stage is computed with, the other one is loaded.
template <typename Element, int dim_qk, int dim_v, bool dropping, KeyGradients gradients>
class BackwardKeys {
  using Tile = BackwardKeysTile<dim_qk, dim_v>;
  using Memory = BackwardKeysMemory<dim_qk, dim_v, dropping>;
  static constexpr bool wants_dk = gradients != KeyGradients::dv;
  static constexpr bool wants_dv = gradients != KeyGradients::dk;
  static constexpr int part_queries = Tile::part_queries(dropping);

 public:
  HCP_DEVICE BackwardKeys(const BackwardParameters& parameters, std::byte* memory)
      : p_{parameters},
        memory_{*reinterpret_cast<Memory*>(memory)},
        visits_{parameters.shape, parameters.schedule, Tile::queries} {}

  HCP_DEVICE void run() {
    if (visits_.done()) {
      return;
    }
    load_keys();
    load_queries(memory_.stages[0]);
    device::commit_copies();
    int stage = 0;
#pragma unroll 1
    while (!visits_.done()) {
      const bool full = visits_.current().full;
      if constexpr (dropping) {
        draw();
      }
      visits_.advance();
      if (!visits_.done()) {
        load_queries(memory_.stages[1 - stage]);
      }
      device::commit_copies();
      device::wait_for_copies<1>();
      convert_facts(memory_.stages[stage], full);
      device::barrier();
      add_visit(memory_.stages[stage], full);
      device::barrier();
      stage = 1 - stage;
    }
    store_gradients();
  }

 private:
  HCP_DEVICE int first_key() const {
    return visits_.tile() * Tile::keys;
  }
  /// Of the keys of the warp in the tile.
  HCP_DEVICE int warp_key() const {
    return device::thread() / warp_lanes * 16;
  }

  HCP_DEVICE void load_keys() {
    const BlockShape& shape = p_.shape;
    const std::int64_t row = static_cast<std::int64_t>(first_key()) * shape.heads_kv + device::block_y();
    SharedTile<Tile::keys, dim_qk>{memory_.k}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.k) + row * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - first_key(), shape.dim_qk);
    if constexpr (wants_dk) {
      SharedTile<Tile::keys, dim_v>{memory_.v}.template load<Tile::threads>(
          static_cast<const std::uint16_t*>(p_.v) + row * shape.dim_v,
          static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - first_key(), shape.dim_v);
    }
  }

  /// Those of the current visit; belongs to the copies that the next commit closes.
  HCP_DEVICE void load_queries(typename Memory::Stage& stage) {
    const BlockShape& shape = p_.shape;
    const QueryVisit visit = visits_.current();
    const std::int64_t row = static_cast<std::int64_t>(visit.first_row) * shape.heads_q + visit.head;
    SharedTile<Tile::queries, dim_qk>{stage.q}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.q) + row * shape.dim_qk,
        static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - visit.first_row, shape.dim_qk);
    SharedTile<Tile::queries, dim_v>{stage.dout}.template load<Tile::threads>(
        static_cast<const std::uint16_t*>(p_.dout) + row * shape.dim_v,
        static_cast<std::int64_t>(shape.heads_q) * shape.dim_v, shape.rows - visit.first_row, shape.dim_v);
    if (const int query = device::thread(); query < Tile::queries) {
      const bool valid = visit.first_row + query < shape.rows;
      const int from = valid ? visit.first_row + query : 0;
      const std::int64_t place = static_cast<std::int64_t>(from) * shape.heads_q + visit.head;
      device::copy_word_async(&stage.lse[query], p_.lse + place, valid);
      device::copy_word_async(&stage.delta[query], p_.delta + place, valid);
      device::copy_async(&stage.keys[query], shape.row_keys + from, valid);
    }
  }

  /// What the thread itself has copied, so that it is there. Rows beyond the last one have become 0 and add
  /// nothing: dout and q are 0 there.
  HCP_DEVICE void convert_facts(typename Memory::Stage& stage, bool full) {
    if (const int query = device::thread(); query < Tile::queries) {
      const RowFacts facts = row_facts(stage.lse[query], stage.delta[query]);
      stage.lse[query] = facts.lse;
      stage.delta[query] = facts.delta;
      if (!full) {
        const RowKeys keys = stage.keys[query];  // in one access
#pragma unroll
        for (int word = 0; word < Tile::keys / 32; ++word) {
          stage.seen[word][query] = static_cast<std::uint32_t>(seen_keys(keys, first_key() + 32 * word));
        }
      }
    }
  }

  HCP_DEVICE void draw() {
    const QueryVisit visit = visits_.current();
    typename Memory::Pairs{memory_.kept}.template draw<Tile::threads>(
        p_.dropout, visit.head, visit.first_row, p_.shape.rows, first_key(), p_.shape.keys);
  }

  HCP_DEVICE void add_visit(typename Memory::Stage& stage, bool full) {
#pragma unroll 1
    for (int first = 0; first < Tile::queries; first += part_queries) {
      add_part(stage, first, full);
    }
  }

  HCP_DEVICE void add_part(typename Memory::Stage& stage, int first_query, bool full) {
    const SharedTile<Tile::queries, dim_qk> q{stage.q};
    const SharedTile<Tile::queries, dim_v> dout{stage.dout};
    float p[part_queries / 8][4] = {};
    multiply_transposed<Element>(p, SharedTile<Tile::keys, dim_qk>{memory_.k}, warp_key(), q, first_query);
    float ds[part_queries / 8][4] = {};
    if constexpr (wants_dk) {
      multiply_transposed<Element>(ds, SharedTile<Tile::keys, dim_v>{memory_.v}, warp_key(), dout,
                                   first_query);
    }
#pragma unroll
    for (int tile = 0; tile < part_queries / 8; ++tile) {
      make_probabilities(stage, first_query + 8 * tile, full, p[tile]);
      differentiate(stage, first_query + 8 * tile, p[tile], ds[tile]);
    }
#pragma unroll
    for (int step = 0; step < part_queries / 16; ++step) {
      std::uint32_t rounded[4];
      if constexpr (wants_dk) {
        pack_a<Element>(rounded, ds[2 * step], ds[2 * step + 1]);
        multiply_rows<Element>(dk_, rounded, q, first_query / 16 + step);
      }
      if constexpr (wants_dv) {
        pack_a<Element>(rounded, p[2 * step], p[2 * step + 1]);
        multiply_rows<Element>(dv_, rounded, dout, first_query / 16 + step);
      }
    }
  }

  /// Of 16 keys and 8 queries, from scores to P.
  HCP_DEVICE void make_probabilities(const typename Memory::Stage& stage, int first_query, bool full,
                                     float (&p)[4]) {
    const float scale = p_.shape.softmax_scale * log2_e;
    const auto lse = of_columns(stage.lse + first_query);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i] = device::exp2(p[i] * scale - lse.of[i % 2]);
    }
    if (!full) {
      const auto seen = of_columns(stage.seen[warp_key() / 32] + first_query);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        p[i] = device::value_if(seen.of[i % 2] >> key_of(i) % 32 & 1U, p[i]);
      }
    }
  }

  /// Of 16 keys and 8 queries, from dP to dS, and P as dropped in dv.
  HCP_DEVICE void differentiate(const typename Memory::Stage& stage, int first_query, float (&p)[4],
                                float (&ds)[4]) {
    const auto delta = of_columns(stage.delta + first_query);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = first_query + column_of(i);
      float factor = 1.0F;
      if constexpr (dropping) {
        factor =
            device::value_if(typename Memory::Pairs{memory_.kept}.kept(query, key_of(i)), p_.dropout.scale);
      }
      ds[i] = p[i] * (ds[i] * factor - delta.of[i % 2]);
      p[i] *= factor;
    }
  }

  /// Of element i of the lane in a C of 16 keys and 8 queries: its key in the tile, its query in the C.
  HCP_DEVICE int key_of(int i) const {
    return warp_key() + fragment_row(device::fresh_lane(), i / 2);
  }
  static HCP_DEVICE int column_of(int i) {
    return fragment_column(device::fresh_lane()) + i % 2;
  }

  /// Two values side by side.
  template <typename Value>
  struct alignas(8) ColumnPair {
    Value of[2];
  };
  /// The lane's two columns of a row of eight, in one access.
  template <typename Value>
  static HCP_DEVICE ColumnPair<Value> of_columns(const Value* row) {
    return *reinterpret_cast<const ColumnPair<Value>*>(row + fragment_column(device::fresh_lane()));
  }

  HCP_DEVICE void store_gradients() {
    const BlockShape& shape = p_.shape;
    const int key = first_key() + warp_key();
    const std::int64_t row = static_cast<std::int64_t>(key) * shape.heads_kv + device::block_y();
    if constexpr (wants_dk) {
      add_fragments<dim_qk>(dk_, shape.softmax_scale, p_.dk + row * shape.dim_qk,
                            static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - key,
                            shape.dim_qk);
    }
    if constexpr (wants_dv) {
      add_fragments<dim_v>(dv_, 1.0F, p_.dv + row * shape.dim_v,
                           static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - key,
                           shape.dim_v);
    }
  }

  const BackwardParameters& p_;
  Memory& memory_;
  QueryVisits visits_;
  float dk_[wants_dk ? dim_qk / 8 : 1][4] = {};  // [16 keys of the warp, dim_qk]
  float dv_[wants_dv ? dim_v / 8 : 1][4] = {};   // [16 keys of the warp, dim_v]
};

template <typename Element, int dim_qk, int dim_v, bool dropping, KeyGradients gradients>
HCP_KERNEL((BackwardKeysTile<dim_qk, dim_v>::threads), (BackwardKeysTile<dim_qk, dim_v>::blocks))
void backward_keys(const BackwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  BackwardKeys<Element, dim_qk, dim_v, dropping, gradients>{parameters, memory}.run();
}

}  // namespace hcp::cuda
