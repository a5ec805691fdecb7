// The whole layer: heads are swapped for sequence, the blocks are visited, and back.
#include <limits>
#include <vector>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

void PlanBuilder::plan_forward() {
  program_ = &plan_.forward;
  const PositionSet& shard = shard_of(geometry_.shards, swap_member_);
  const PositionSet& kv_shard = shard_of(geometry_.kv_shards, swap_member_);
  const PositionSet& kv_rows = sets_.kv_rows(attention_rank_);
  const std::int64_t rows = count_of(plan_.rows);
  BlockView own{view_of(array_k, kv_shard), view_of(array_v, kv_shard)};
  if (swaps()) {
    own = kv_block("swapped ", MemoryCategory::saved, geometry_.storage, kv_rows);
    plan_.attention.q =
        array("swapped q", MemoryCategory::saved, geometry_.storage, rows, plan_.heads_q, geometry_.dim_qk);
    std::vector<HeadRange> q_heads;
    std::vector<HeadRange> kv;
    for (int member = 0; member < sets_.swap_members(); ++member) {
      q_heads.push_back(query_heads(member));
      kv.push_back(kv_heads(member).all);
    }
    scatter(Payload::qkv, {{"q", array_q, geometry_.shards, view_of(plan_.attention.q, plan_.rows), q_heads},
                           {"k", array_k, geometry_.kv_shards, own.k, kv},
                           {"v", array_v, geometry_.kv_shards, own.v, kv}});
  }

  const ArrayId running =
      array("running out", MemoryCategory::accumulator, DataType::fp32, rows, plan_.heads_q, geometry_.dim_v);
  plan_.attention.running_out = running;
  plan_.attention.running_max =
      array("running max", MemoryCategory::accumulator, DataType::fp32, rows, plan_.heads_q, 1);
  plan_.attention.running_sum =
      array("running sum", MemoryCategory::accumulator, DataType::fp32, rows, plan_.heads_q, 1);
  fill(running, rows, 0.0F);
  fill(plan_.attention.running_max, rows, -std::numeric_limits<float>::infinity());
  fill(plan_.attention.running_sum, rows, 0.0F);
  visit(static_cast<int>(sets_.visit_levels().size()), own, nullptr);
  emit(FinishForward{});

  const View result = view_of(running, plan_.rows);
  if (!swaps()) {
    move(Move::Kind::assign, result, view_of(array_out, shard), shard);
    return;
  }
  const ArrayId local =
      array("swapped out", MemoryCategory::saved, geometry_.storage, rows, plan_.heads_q, geometry_.dim_v);
  const View rounded_out = view_of(local, plan_.rows);
  move(Move::Kind::assign, result, rounded_out, plan_.rows);
  collect(Payload::out,
          {collected("out", Move::Kind::assign, rounded_out, geometry_.storage, array_out, geometry_.shards,
                     shard, [&](int member) { return query_heads(member); })});
}

void PlanBuilder::plan_backward() {
  program_ = &plan_.backward;
  current_level_ = -1;
  current_step_ = 0;
  const PositionSet& shard = shard_of(geometry_.shards, swap_member_);
  const PositionSet& kv_shard = shard_of(geometry_.kv_shards, swap_member_);
  const PositionSet& kv_rows = sets_.kv_rows(attention_rank_);
  const std::int64_t rows = count_of(plan_.rows);
  BlockView own{view_of(array_k, kv_shard), view_of(array_v, kv_shard)};
  ArrayId out = array_out;
  if (swaps()) {
    own = kv_block("swapped ", MemoryCategory::saved, geometry_.storage, kv_rows);
    out =
        array("swapped out", MemoryCategory::saved, geometry_.storage, rows, plan_.heads_q, geometry_.dim_v);
    plan_.attention.dout = array("swapped dout", MemoryCategory::head_scatter, geometry_.storage, rows,
                                 plan_.heads_q, geometry_.dim_v);
    Scattered dout{"dout", array_dout, geometry_.shards, view_of(plan_.attention.dout, plan_.rows), {}};
    for (int member = 0; member < sets_.swap_members(); ++member) {
      dout.heads.push_back(query_heads(member));
    }
    scatter(Payload::dout, {dout});
  }

  plan_.attention.delta = array("delta", MemoryCategory::accumulator, DataType::fp32, rows, plan_.heads_q, 1);
  if (rows > 0) {
    emit(RowDot{out, plan_.attention.dout, plan_.attention.delta});
  }
  plan_.attention.dq =
      array("running dq", MemoryCategory::accumulator, DataType::fp32, rows, plan_.heads_q, geometry_.dim_qk);
  const BlockView gradient = zeroed_block("running d", MemoryCategory::accumulator, kv_rows);
  fill(plan_.attention.dq, rows, 0.0F);
  visit(static_cast<int>(sets_.visit_levels().size()), own, &gradient);

  const View dq = view_of(plan_.attention.dq, plan_.rows);
  if (swaps()) {
    collect_gradients(dq, gradient);
    return;
  }
  move(Move::Kind::assign, dq, view_of(array_dq, shard), shard);
  move(Move::Kind::assign, gradient, {view_of(array_dk, kv_shard), view_of(array_dv, kv_shard)}, kv_shard);
}

}  // namespace hcp
