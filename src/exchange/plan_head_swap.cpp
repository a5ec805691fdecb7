// The head swap: what every member of a group sends to every other, before the visits and after them.
#include <algorithm>
#include <tuple>
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

const PositionSet& PlanBuilder::shard_of(const std::vector<PositionSet>& shards, int member) const {
  return shards.at(static_cast<std::size_t>(sets_.cp_rank_of(attention_rank_, member)));
}

HeadRange PlanBuilder::query_heads(int member) const {
  return query_heads_of(member, sets_.swap_members(), geometry_.heads_q);
}

SharedHeads PlanBuilder::kv_heads(int member) const {
  return shared_heads_of(member, sets_.swap_members(), geometry_.heads_q,
                         geometry_.heads_q / geometry_.heads_kv);
}

std::vector<int> PlanBuilder::other_members() const {
  std::vector<int> members;
  for (int distance = 1; distance < sets_.swap_members(); ++distance) {
    members.push_back((swap_member_ + distance) % sets_.swap_members());
  }
  return members;
}

void PlanBuilder::add_swap_message(std::vector<PlannedMessage>& list, int member, Payload payload,
                                   std::vector<Part> parts) const {
  if (parts.empty()) {
    return;
  }
  const int peer = sets_.cp_rank_of(attention_rank_, member);
  const int level = outermost_difference(cp_rank_, peer, geometry_.levels);
  list.push_back({member, peer, level, payload, std::move(parts)});
}

void PlanBuilder::scatter(Payload payload, const std::vector<Scattered>& tensors) {
  current_level_ = sets_.swap_levels().back();
  current_step_ = 0;
  Transfer transfer{.communicator = communicator(sets_.swap_levels())};
  const auto source_of = [&](const Scattered& tensor, int member) {
    return heads_of(tensor.whole, shard_of(tensor.shards, swap_member_),
                    tensor.heads.at(static_cast<std::size_t>(member)));
  };
  const auto rows_of_member = [&](const Scattered& tensor, int member) {
    return set_intersection(shard_of(tensor.shards, member), tensor.local.positions);
  };
  std::vector<std::int64_t> packed_elements(tensors.size(), 0);
  for (const int member : other_members()) {
    std::vector<Part> sent;
    std::vector<Part> received;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Scattered& tensor = tensors[i];
      const View source = source_of(tensor, member);
      const PositionSet rows = rows_of_member(tensor, swap_member_);
      const DataType type = plan_.arrays.at(static_cast<std::size_t>(tensor.whole)).type;
      const std::int64_t dim = plan_.arrays.at(static_cast<std::size_t>(tensor.whole)).dim;
      const std::int64_t end = packed_elements[i] + count_of(rows) * source.elements;
      const ArrayId packing =
          array(tensor.name + " to swap", MemoryCategory::head_scatter, type, end / dim, 1, dim);
      const View target = packed(packing, packed_elements[i], source.elements, rows);
      move(Move::Kind::assign, source, target, rows);
      append_rows(sent, target, rows);
      append_rows(received, tensor.local, rows_of_member(tensor, member));
      packed_elements[i] = end;
    }
    add_swap_message(transfer.sends, member, payload, std::move(sent));
    add_swap_message(transfer.receives, member, payload, std::move(received));
  }
  const int open = post(std::move(transfer));
  for (const Scattered& tensor : tensors) {
    move(Move::Kind::assign, source_of(tensor, swap_member_), tensor.local,
         rows_of_member(tensor, swap_member_));
  }
  wait(open);
}

void PlanBuilder::collect(Payload payload, const std::vector<Collected>& tensors) {
  current_level_ = sets_.swap_levels().back();
  current_step_ = 1;
  Transfer transfer{.communicator = communicator(sets_.swap_levels())};
  const auto rows_of_member = [&](const Collected& tensor, int member) {
    return set_intersection(shard_of(tensor.shards, member), tensor.local.positions);
  };
  std::vector<std::int64_t> landed_elements(tensors.size(), 0);
  std::vector<std::vector<View>> arriving(
      static_cast<std::size_t>(sets_.swap_members()));  // by member and tensor
  for (const Collected& tensor : tensors) {
    arriving.at(static_cast<std::size_t>(swap_member_)).push_back(tensor.own);
  }
  for (const int member : other_members()) {
    std::vector<Part> sent;
    std::vector<Part> received;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Collected& tensor = tensors[i];
      const PositionSet rows = rows_of_member(tensor, swap_member_);
      const DataType type = plan_.arrays.at(static_cast<std::size_t>(tensor.local.array)).type;
      const std::int64_t dim = plan_.arrays.at(static_cast<std::size_t>(tensor.local.array)).dim;
      const std::int64_t elements = tensor.heads.at(static_cast<std::size_t>(member)).count() * dim;
      const std::int64_t end = landed_elements[i] + count_of(rows) * elements;
      const ArrayId landing =
          array(tensor.name + " swapped back", MemoryCategory::head_scatter, type, end / dim, 1, dim);
      const View from = packed(landing, landed_elements[i], elements, rows);
      append_rows(sent, tensor.local, rows_of_member(tensor, member));
      append_rows(received, from, rows);
      arriving.at(static_cast<std::size_t>(member)).push_back(from);
      landed_elements[i] = end;
    }
    add_swap_message(transfer.sends, member, payload, std::move(sent));
    add_swap_message(transfer.receives, member, payload, std::move(received));
  }
  wait(post(std::move(transfer)));
  for (std::size_t member = 0; member < arriving.size(); ++member) {  // sums are in rank order
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const View target = heads_of(tensors[i].whole, tensors[i].whole_positions, tensors[i].heads[member]);
      move(tensors[i].kind, arriving[member][i], target, rows_of_member(tensors[i], swap_member_));
    }
  }
}

PlanBuilder::Collected PlanBuilder::collected(const std::string& name, Move::Kind kind, const View& own,
                                              DataType wire, ArrayId whole,
                                              const std::vector<PositionSet>& shards,
                                              PositionSet whole_positions,
                                              const std::function<HeadRange(int member)>& heads) {
  Collected tensor{.name = name,
                   .kind = kind,
                   .local = rounded(own, wire, name + " rounded", MemoryCategory::head_scatter),
                   .own = own,
                   .whole = whole,
                   .shards = shards,
                   .whole_positions = std::move(whole_positions)};
  for (int member = 0; member < sets_.swap_members(); ++member) {
    tensor.heads.push_back(heads(member));
  }
  return tensor;
}

void PlanBuilder::collect_gradients(const View& dq, const BlockView& gradient) {
  // A KV head that one member alone holds is final and travels in the storage type; a head that neighbours
  // hold too is summed here in rank order and travels in the wire type.
  const PositionSet& kv_shard = shard_of(geometry_.kv_shards, swap_member_);
  const PositionSet looked_at = set_intersection(kv_shard, gradient.positions());
  const SharedHeads mine = kv_heads(swap_member_);
  const std::vector<std::int64_t> shared =
      shared_kv_heads(sets_.swap_members(), geometry_.heads_q, geometry_.heads_q / geometry_.heads_kv);
  const auto place = [&](std::int64_t head) {
    return std::lower_bound(shared.begin(), shared.end(), head) - shared.begin();
  };

  std::vector<Collected> tensors{collected("dq", Move::Kind::assign, dq, geometry_.storage, array_dq,
                                           geometry_.shards, shard_of(geometry_.shards, swap_member_),
                                           [&](int member) { return query_heads(member); })};
  std::vector<std::pair<ArrayId, ArrayId>> sums;  // fp32 sum of shared heads, and where it goes
  for (const auto& [name, local, whole] : {std::tuple{std::string{"dk"}, gradient.k, array_dk},
                                           std::tuple{std::string{"dv"}, gradient.v, array_dv}}) {
    const auto part_of = [&, &local = local](HeadRange heads) {
      return heads_of(local.array, local.positions,
                      {heads.begin - mine.all.begin, heads.end - mine.all.begin});
    };
    tensors.push_back(collected(name, Move::Kind::assign, part_of(mine.final), geometry_.storage, whole,
                                geometry_.kv_shards, kv_shard,
                                [&](int member) { return kv_heads(member).final; }));
    if (shared.empty()) {
      continue;
    }
    const std::int64_t dim = plan_.arrays.at(static_cast<std::size_t>(whole)).dim;
    const ArrayId sum = array(name + " sum", MemoryCategory::head_scatter, DataType::fp32,
                              count_of(looked_at), std::ssize(shared), dim);
    fill(sum, count_of(looked_at), 0.0F);
    sums.emplace_back(sum, whole);
    for (const bool front : {true, false}) {
      const auto run = [&](const SharedHeads& heads) { return front ? heads.front() : heads.back(); };
      tensors.push_back(collected(name + (front ? " front" : " back"), Move::Kind::add, part_of(run(mine)),
                                  geometry_.gradient_wire, sum, geometry_.kv_shards, looked_at,
                                  [&](int member) -> HeadRange {
                                    const HeadRange heads = run(kv_heads(member));
                                    return {place(heads.begin), place(heads.end)};
                                  }));
    }
  }

  if (looked_at != kv_shard) {  // rows that nobody looks at
    fill(array_dk, count_of(kv_shard), 0.0F);
    fill(array_dv, count_of(kv_shard), 0.0F);
  }
  collect(Payload::dqkv, tensors);
  for (const auto& [sum, whole] : sums) {
    for (std::int64_t i = 0; i < std::ssize(shared); ++i) {
      const std::int64_t head = shared[static_cast<std::size_t>(i)];
      move(Move::Kind::assign, heads_of(sum, looked_at, {i, i + 1}),
           heads_of(whole, kv_shard, {head, head + 1}), looked_at);
    }
  }
}

}  // namespace hcp
