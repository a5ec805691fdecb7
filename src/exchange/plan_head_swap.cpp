// The whole layer: heads are swapped for sequence, the blocks are visited, and back.
#include <algorithm>
#include <limits>
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

/// A tensor of the caller on its way to the members of the head swap.
struct PlanBuilder::Scattered {
  std::string name;
  ArrayId whole = 0;               ///< [own rows, all heads, dim]
  View local{};                    ///< after the swap: all rows of the group, this member's heads
  std::vector<HeadRange> heads{};  ///< of each member
};

/// A tensor on its way back: assigned, or added where several members hold a share of the same head.
struct PlanBuilder::Collected {
  std::string name;
  Move::Kind kind = Move::Kind::assign;
  View local{};       ///< rows of the group, some of this member's heads, on the wire as it is
  View own{};         ///< the same before it is rounded for the wire; what stays here does not travel
  ArrayId whole = 0;  ///< [own rows, heads, dim]
  PositionSet whole_positions{};
  std::vector<HeadRange> heads{};  ///< of each member, as heads of `whole`
};

const PositionSet& PlanBuilder::shard_of_member(int member) const {
  return geometry_.shards.at(static_cast<std::size_t>(sets_.cp_rank_of(attention_rank_, member)));
}

HeadRange PlanBuilder::query_heads(int member) const {
  return query_heads_of(member, sets_.swap_members(), geometry_.heads_q);
}

SharedHeads PlanBuilder::kv_heads(int member) const {
  return shared_heads_of(member, sets_.swap_members(), geometry_.heads_q,
                         geometry_.heads_q / geometry_.heads_kv);
}

void PlanBuilder::scatter(Payload payload, const std::vector<Scattered>& tensors) {
  current_level_ = sets_.swap_levels().back();
  current_step_ = 0;
  Transfer transfer{.communicator = communicator(sets_.swap_levels())};
  std::vector<std::int64_t> packed_elements(tensors.size(), 0);
  const PositionSet& shard = shard_of_member(swap_member_);
  for (int member = 0; member < sets_.swap_members(); ++member) {
    std::vector<Part> sent;
    std::vector<Part> received;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Scattered& tensor = tensors[i];
      const HeadRange heads = tensor.heads.at(static_cast<std::size_t>(member));
      const PositionSet rows = set_intersection(shard, tensor.local.positions);
      const View source = heads_of(tensor.whole, shard, heads);
      if (member == swap_member_) {
        move(Move::Kind::assign, source, tensor.local, rows);
        continue;
      }
      const ArrayPlan& whole = plan_.arrays.at(static_cast<std::size_t>(tensor.whole));
      const std::int64_t dim = whole.dim;
      std::int64_t& offset = packed_elements[i];
      const std::int64_t end = offset + count_of(rows) * source.elements;
      const ArrayId packing =
          array(tensor.name + " to swap", MemoryCategory::head_scatter, whole.type, end / dim, 1, dim);
      const View target = packed(packing, offset, source.elements, rows);
      move(Move::Kind::assign, source, target, rows);
      append_rows(sent, target, rows);
      append_rows(received, tensor.local, set_intersection(shard_of_member(member), tensor.local.positions));
      offset = end;
    }
    const int peer = sets_.cp_rank_of(attention_rank_, member);
    const int level = outermost_difference(cp_rank_, peer, geometry_.levels);
    if (!sent.empty()) {
      transfer.sends.push_back({member, peer, level, payload, std::move(sent)});
    }
    if (!received.empty()) {
      transfer.receives.push_back({member, peer, level, payload, std::move(received)});
    }
  }
  wait(post(std::move(transfer)));
}

void PlanBuilder::collect(Payload payload, const std::vector<Collected>& tensors) {
  current_level_ = sets_.swap_levels().back();
  current_step_ = 1;
  Transfer transfer{.communicator = communicator(sets_.swap_levels())};
  const PositionSet& shard = shard_of_member(swap_member_);
  const auto members = static_cast<std::size_t>(sets_.swap_members());
  std::vector<std::int64_t> packed_elements(tensors.size(), 0);
  std::vector<std::vector<View>> arriving(members, std::vector<View>(tensors.size()));
  for (int member = 0; member < sets_.swap_members(); ++member) {
    std::vector<Part> sent;
    std::vector<Part> received;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Collected& tensor = tensors[i];
      const PositionSet rows = set_intersection(shard, tensor.local.positions);
      View& from = arriving.at(static_cast<std::size_t>(member))[i];
      if (member == swap_member_) {
        from = tensor.own;
        continue;
      }
      const ArrayPlan& local = plan_.arrays.at(static_cast<std::size_t>(tensor.local.array));
      const std::int64_t elements = tensor.heads.at(static_cast<std::size_t>(member)).count() * local.dim;
      std::int64_t& offset = packed_elements[i];
      const std::int64_t end = offset + count_of(rows) * elements;
      const ArrayId landing = array(tensor.name + " swapped back", MemoryCategory::head_scatter, local.type,
                                    end / local.dim, 1, local.dim);
      from = packed(landing, offset, elements, rows);
      offset = end;
      append_rows(sent, tensor.local, set_intersection(shard_of_member(member), tensor.local.positions));
      append_rows(received, from, rows);
    }
    const int peer = sets_.cp_rank_of(attention_rank_, member);
    const int level = outermost_difference(cp_rank_, peer, geometry_.levels);
    if (!sent.empty()) {
      transfer.sends.push_back({member, peer, level, payload, std::move(sent)});
    }
    if (!received.empty()) {
      transfer.receives.push_back({member, peer, level, payload, std::move(received)});
    }
  }
  wait(post(std::move(transfer)));
  for (std::size_t member = 0; member < members; ++member) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const View target = heads_of(tensors[i].whole, tensors[i].whole_positions, tensors[i].heads[member]);
      move(tensors[i].kind, arriving[member][i], target, set_intersection(shard, tensors[i].local.positions));
    }
  }
}

void PlanBuilder::collect_gradients(const View& dq, const BlockView& gradient) {
  // A KV head that one member alone holds is final and travels in the storage type; a head that neighbours
  // hold too is summed here in rank order and travels in the wire type. `shared` lists those heads,
  // ascending.
  const int members = sets_.swap_members();
  const PositionSet& shard = shard_of_member(swap_member_);
  const PositionSet kv_shard = set_intersection(shard, gradient.positions());
  std::vector<std::int64_t> shared;
  for (std::int64_t head = 0; head < geometry_.heads_kv; ++head) {
    int holders = 0;
    for (int member = 0; member < members; ++member) {
      holders += kv_heads(member).all.contains(head) ? 1 : 0;
    }
    if (holders > 1) {
      shared.push_back(head);
    }
  }
  const auto among_shared = [&](HeadRange heads) -> HeadRange {
    const auto place = [&](std::int64_t head) {
      return std::lower_bound(shared.begin(), shared.end(), head) - shared.begin();
    };
    return {place(heads.begin), place(heads.end)};
  };

  std::vector<Collected> tensors;
  Collected query{.name = "dq", .own = dq, .whole = array_dq, .whole_positions = shard};
  query.local = rounded(dq, geometry_.storage, "dq final", MemoryCategory::head_scatter);
  for (int member = 0; member < members; ++member) {
    query.heads.push_back(query_heads(member));
  }
  tensors.push_back(std::move(query));

  const auto sum_rows = count_of(kv_shard);
  const auto shared_heads = static_cast<std::int64_t>(shared.size());
  const SharedHeads mine = kv_heads(swap_member_);
  std::vector<std::pair<ArrayId, ArrayId>> sums;  // fp32 sum of shared heads, and where it goes
  for (const bool is_k : {true, false}) {
    const View& local = is_k ? gradient.k : gradient.v;
    const std::string name = is_k ? "dk" : "dv";
    const ArrayId whole = is_k ? array_dk : array_dv;
    const std::int64_t dim = plan_.arrays.at(static_cast<std::size_t>(whole)).dim;
    const auto part_of = [&](HeadRange heads) {
      return heads_of(local.array, local.positions,
                      {heads.begin - mine.all.begin, heads.end - mine.all.begin});
    };
    Collected finished{.name = name, .own = part_of(mine.final), .whole = whole, .whole_positions = shard};
    finished.local = rounded(finished.own, geometry_.storage, name + " final", MemoryCategory::head_scatter);
    for (int member = 0; member < members; ++member) {
      finished.heads.push_back(kv_heads(member).final);
    }
    tensors.push_back(std::move(finished));
    if (shared.empty()) {
      continue;
    }

    const ArrayId sum =
        array(name + " sum", MemoryCategory::head_scatter, DataType::fp32, sum_rows, shared_heads, dim);
    fill(sum, sum_rows, 0.0F);
    sums.emplace_back(sum, whole);
    for (const bool front : {true, false}) {
      const auto run = [&](const SharedHeads& heads) -> HeadRange {
        return front ? HeadRange{heads.all.begin, heads.final.begin}
                     : HeadRange{heads.final.end, heads.all.end};
      };
      Collected share{.name = name + (front ? " front" : " back"),
                      .kind = Move::Kind::add,
                      .own = part_of(run(mine)),
                      .whole = sum,
                      .whole_positions = kv_shard};
      share.local = rounded(share.own, geometry_.gradient_wire, share.name, MemoryCategory::head_scatter);
      for (int member = 0; member < members; ++member) {
        share.heads.push_back(among_shared(run(kv_heads(member))));
      }
      tensors.push_back(std::move(share));
    }
  }

  if (kv_shard != shard) {  // rows that nobody looks at
    fill(array_dk, count_of(shard), 0.0F);
    fill(array_dv, count_of(shard), 0.0F);
  }
  collect(Payload::dqkv, tensors);
  for (const auto& [sum, whole] : sums) {
    for (std::int64_t i = 0; i < shared_heads; ++i) {
      const std::int64_t head = shared[static_cast<std::size_t>(i)];
      move(Move::Kind::assign, heads_of(sum, kv_shard, {i, i + 1}), heads_of(whole, shard, {head, head + 1}),
           kv_shard);
    }
  }
}

void PlanBuilder::plan_forward() {
  program_ = &plan_.forward;
  const PositionSet& shard = geometry_.shards.at(static_cast<std::size_t>(cp_rank_));
  const PositionSet& kv_rows = sets_.kv_rows(attention_rank_);
  const std::int64_t rows = count_of(plan_.rows);
  BlockView own{view_of(array_k, shard), view_of(array_v, shard)};
  if (swaps()) {
    own = kv_block("swapped", MemoryCategory::saved, geometry_.storage, kv_rows);
    plan_.attention.q =
        array("swapped q", MemoryCategory::saved, geometry_.storage, rows, plan_.heads_q, geometry_.dim_qk);
    std::vector<HeadRange> q_heads;
    std::vector<HeadRange> kv;
    for (int member = 0; member < sets_.swap_members(); ++member) {
      q_heads.push_back(query_heads(member));
      kv.push_back(kv_heads(member).all);
    }
    scatter(Payload::qkv, {{"q", array_q, view_of(plan_.attention.q, plan_.rows), q_heads},
                           {"k", array_k, own.k, kv},
                           {"v", array_v, own.v, kv}});
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
  Collected out{
      .name = "out", .local = rounded_out, .own = rounded_out, .whole = array_out, .whole_positions = shard};
  for (int member = 0; member < sets_.swap_members(); ++member) {
    out.heads.push_back(query_heads(member));
  }
  collect(Payload::out, {out});
}

void PlanBuilder::plan_backward() {
  program_ = &plan_.backward;
  current_level_ = -1;
  current_step_ = 0;
  const PositionSet& shard = geometry_.shards.at(static_cast<std::size_t>(cp_rank_));
  const PositionSet& kv_rows = sets_.kv_rows(attention_rank_);
  const std::int64_t rows = count_of(plan_.rows);
  BlockView own{view_of(array_k, shard), view_of(array_v, shard)};
  ArrayId out = array_out;
  if (swaps()) {
    own = kv_block("swapped", MemoryCategory::saved, geometry_.storage, kv_rows);
    out =
        array("swapped out", MemoryCategory::saved, geometry_.storage, rows, plan_.heads_q, geometry_.dim_v);
    plan_.attention.dout = array("swapped dout", MemoryCategory::head_scatter, geometry_.storage, rows,
                                 plan_.heads_q, geometry_.dim_v);
    Scattered dout{"dout", array_dout, view_of(plan_.attention.dout, plan_.rows), {}};
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
  const BlockView gradient = kv_block("running d", MemoryCategory::accumulator, DataType::fp32, kv_rows);
  fill(plan_.attention.dq, rows, 0.0F);
  fill(gradient.k.array, count_of(kv_rows), 0.0F);
  fill(gradient.v.array, count_of(kv_rows), 0.0F);
  visit(static_cast<int>(sets_.visit_levels().size()), own, &gradient);

  const View dq = view_of(plan_.attention.dq, plan_.rows);
  if (swaps()) {
    collect_gradients(dq, gradient);
    return;
  }
  move(Move::Kind::assign, dq, view_of(array_dq, shard), shard);
  move(Move::Kind::assign, gradient, {view_of(array_dk, shard), view_of(array_dv, shard)}, shard);
}

}  // namespace hcp
