/// The backward pass in fp32 without tensor cores: as backward_keys.cuh and backward_queries.cuh, with the
/// same schedules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/backward_pairs.cuh"
#include "kernels/cuda/backward_visits.cuh"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/plain_tile.cuh"
#include "kernels/cuda/seen_keys.cuh"

namespace hcp::cuda {

/// Shared memory of a block; `dim` is at least dim_qk and dim_v.
template <int dim>
struct PlainBackwardMemory {
  using Pairs = KeptPairs<plain_rows, plain_rows>;

  float q[PlainTile<dim>::elements];
  float dout[PlainTile<dim>::elements];
  float k[PlainTile<dim>::elements];
  float v[PlainTile<dim>::elements];
  float p[PlainTile<plain_rows>::elements];   ///< [own rows, other rows], as dv takes it
  float ds[PlainTile<plain_rows>::elements];  ///< [own rows, other rows]
  RowFacts facts[plain_rows];                 ///< of the queries
  RowKeys keys[plain_rows];                   ///< of the queries
  std::uint8_t kept[Pairs::bytes];
};

/// What both kernels do with a tile of queries and a tile of keys. Which of them the block owns is known
/// where they meet.
template <int dim, bool dropping>
class PlainBackward {
 public:
  using Memory = PlainBackwardMemory<dim>;

  HCP_DEVICE PlainBackward(const BackwardParameters& parameters, std::byte* memory)
      : p_{parameters}, memory_{*reinterpret_cast<Memory*>(memory)} {}

  HCP_DEVICE PlainTile<dim> q() const { return {memory_.q}; }
  HCP_DEVICE PlainTile<dim> dout() const { return {memory_.dout}; }
  HCP_DEVICE PlainTile<dim> k() const { return {memory_.k}; }
  HCP_DEVICE PlainTile<dim> v() const { return {memory_.v}; }
  HCP_DEVICE PlainTile<plain_rows> p() const { return {memory_.p}; }
  HCP_DEVICE PlainTile<plain_rows> ds() const { return {memory_.ds}; }

  HCP_DEVICE void load_queries(int head, int first_row) const {
    const BlockShape& shape = p_.shape;
    const std::int64_t row = static_cast<std::int64_t>(first_row) * shape.heads_q + head;
    q().load(static_cast<const float*>(p_.q) + row * shape.dim_qk,
             static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - first_row, shape.dim_qk);
    dout().load(static_cast<const float*>(p_.dout) + row * shape.dim_v,
                static_cast<std::int64_t>(shape.heads_q) * shape.dim_v, shape.rows - first_row, shape.dim_v);
    if (const int query = device::thread(); query < plain_rows) {
      const bool valid = first_row + query < shape.rows;
      const std::int64_t place = row + static_cast<std::int64_t>(query) * shape.heads_q;
      memory_.facts[query] = valid ? row_facts(p_.lse[place], p_.delta[place]) : no_row();
      memory_.keys[query] = valid ? shape.row_keys[first_row + query] : RowKeys{};
    }
  }

  HCP_DEVICE void load_keys(int head, int first_key) const {
    const BlockShape& shape = p_.shape;
    const std::int64_t row = static_cast<std::int64_t>(first_key) * shape.heads_kv + head;
    k().load(static_cast<const float*>(p_.k) + row * shape.dim_qk,
             static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - first_key, shape.dim_qk);
    v().load(static_cast<const float*>(p_.v) + row * shape.dim_v,
             static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - first_key, shape.dim_v);
  }

  HCP_DEVICE void draw(int query_head, int first_row, int first_key) const {
    if constexpr (dropping) {
      typename Memory::Pairs{memory_.kept}.template draw<plain_threads>(
          p_.dropout, query_head, first_row, p_.shape.rows, first_key, p_.shape.keys);
    }
  }

  /// P, dropped as in dv, and dS of the two tiles.
  template <bool own_keys>
  HCP_DEVICE void differentiate(int first_key, bool full) const {
    const BlockShape& shape = p_.shape;
    float scores[2][2];
    float dp[2][2];
    plain_products(scores, own_keys ? k() : q(), own_keys ? q() : k(), shape.dim_qk);
    plain_products(dp, own_keys ? v() : dout(), own_keys ? dout() : v(), shape.dim_v);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int own = 2 * plain_y() + i;
        const int other = plain_x() + plain_edge * j;
        const int query = own_keys ? other : own;
        const int key = own_keys ? own : other;
        const RowFacts facts = memory_.facts[query];
        const bool seen = full || (seen_keys(memory_.keys[query], first_key) >> key & 1U) != 0;
        const float probability =
            seen ? device::exp2(scores[i][j] * (shape.softmax_scale * log2_e) - facts.lse) : 0.0F;
        float factor = 1.0F;
        if constexpr (dropping) {
          factor = device::value_if(typename Memory::Pairs{memory_.kept}.kept(query, key), p_.dropout.scale);
        }
        p().at(own, other) = probability * factor;
        ds().at(own, other) = probability * (dp[i][j] * factor - facts.delta);
      }
    }
  }

 private:
  const BackwardParameters& p_;
  Memory& memory_;
};

/// Launched as BackwardParameters says of dk and dv.
template <int dim, bool dropping>
HCP_KERNEL(plain_threads, 1)
void plain_backward_keys(const BackwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  const PlainBackward<dim, dropping> block{parameters, memory};
  const BlockShape& shape = parameters.shape;
  const int kv_head = device::block_y();
  QueryVisits visits{shape, parameters.schedule, plain_rows};
  const int first_key = visits.tile() * plain_rows;
  float dk[2][dim / plain_edge] = {};
  float dv[2][dim / plain_edge] = {};
  block.load_keys(kv_head, first_key);
#pragma unroll 1
  for (; !visits.done(); visits.advance()) {
    const QueryVisit visit = visits.current();
    block.load_queries(visit.head, visit.first_row);
    block.draw(visit.head, visit.first_row, first_key);
    device::barrier();
    block.template differentiate<true>(first_key, visit.full);
    device::barrier();
    add_plain_products(dv, block.p(), block.dout());
    add_plain_products(dk, block.ds(), block.q());
    device::barrier();
  }
  const std::int64_t row = static_cast<std::int64_t>(first_key) * shape.heads_kv + kv_head;
  add_plain_sums<dim>(dk, shape.softmax_scale, parameters.dk + row * shape.dim_qk,
                      static_cast<std::int64_t>(shape.heads_kv) * shape.dim_qk, shape.keys - first_key,
                      shape.dim_qk);
  add_plain_sums<dim>(dv, 1.0F, parameters.dv + row * shape.dim_v,
                      static_cast<std::int64_t>(shape.heads_kv) * shape.dim_v, shape.keys - first_key,
                      shape.dim_v);
}

/// Launched as BackwardParameters says of dq.
template <int dim, bool dropping>
HCP_KERNEL(plain_threads, 1)
void plain_backward_queries(const BackwardParameters parameters) {
  HCP_SHARED_MEMORY(memory);
  const PlainBackward<dim, dropping> block{parameters, memory};
  const BlockShape& shape = parameters.shape;
  const int head = device::block_y();
  const int kv_head = kv_head_of(shape, head);
  const TileWork work = parameters.schedule.work[device::block_x()];
  const int first_row = work.tile * plain_rows;
  float dq[2][dim / plain_edge] = {};
  block.load_queries(head, first_row);
#pragma unroll 1
  for (int i = work.begin; i < work.end; ++i) {
    const TileVisit visit = parameters.schedule.visits[i];
    const int first_key = visit.tile * plain_rows;
    block.load_keys(kv_head, first_key);
    block.draw(head, first_row, first_key);
    device::barrier();
    block.template differentiate<false>(first_key, visit.full != 0);
    device::barrier();
    add_plain_products(dq, block.ds(), block.k());
    device::barrier();
  }
  const std::int64_t row = static_cast<std::int64_t>(first_row) * shape.heads_q + head;
  add_plain_sums<dim>(dq, shape.softmax_scale, parameters.dq + row * shape.dim_qk,
                      static_cast<std::int64_t>(shape.heads_q) * shape.dim_qk, shape.rows - first_row,
                      shape.dim_qk);
}

}  // namespace hcp::cuda
