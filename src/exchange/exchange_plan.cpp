#include "src/exchange/exchange_plan.hpp"

#include <stdexcept>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

std::string_view name_of(Pass pass) {
  return pass == Pass::forward ? "fwd" : "bwd";
}

std::string_view name_of(MessageForm form) {
  switch (form) {
    case MessageForm::scattered:
      return "scattered";
    case MessageForm::contiguous:
      return "contiguous";
    case MessageForm::collectives:
      return "collectives";
  }
  return "?";
}

std::string_view name_of(Payload payload) {
  switch (payload) {
    case Payload::qkv:
      return "qkv";
    case Payload::out:
      return "out";
    case Payload::dout:
      return "dout";
    case Payload::dqkv:
      return "dqkv";
    case Payload::kv:
      return "kv";
    case Payload::dkv:
      return "dkv";
  }
  return "?";
}

std::int64_t PlannedMessage::bytes() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) {
    sum += part.bytes;
  }
  return sum;
}

PlanBuilder::PlanBuilder(const LayerGeometry& geometry, int cp_rank)
    : geometry_{geometry},
      sets_{geometry},
      cp_rank_{cp_rank},
      attention_rank_{sets_.attention_rank_of(cp_rank)},
      swap_member_{sets_.swap_member_of(cp_rank)},
      steps_(sets_.visit_levels().size(), 0) {}

ExchangePlan PlanBuilder::build() {
  const HeadRange heads = query_heads(swap_member_);
  plan_.rows = sets_.rows(attention_rank_);
  plan_.heads_q = heads.count();
  plan_.first_head_q = heads.begin;
  plan_.head_map = {.first_query_head = heads.begin,
                    .first_kv_head = kv_heads(swap_member_).all.begin,
                    .queries_per_kv = geometry_.heads_q / geometry_.heads_kv};

  const std::int64_t queries = count_of(shard_of(geometry_.shards, swap_member_));
  const std::int64_t keys = count_of(shard_of(geometry_.kv_shards, swap_member_));
  const auto known = [&](const char* name, MemoryCategory category, DataType type, std::int64_t rows,
                         std::int64_t heads_held,
                         std::int64_t dim) { array(name, category, type, rows, heads_held, dim); };
  const LayerGeometry& g = geometry_;
  known("q", MemoryCategory::qkv, g.storage, queries, g.heads_q, g.dim_qk);
  known("k", MemoryCategory::qkv, g.storage, keys, g.heads_kv, g.dim_qk);
  known("v", MemoryCategory::qkv, g.storage, keys, g.heads_kv, g.dim_v);
  known("dout", MemoryCategory::qkv, g.storage, queries, g.heads_q, g.dim_v);
  known("out", MemoryCategory::result, g.storage, queries, g.heads_q, g.dim_v);
  known("dq", MemoryCategory::result, g.storage, queries, g.heads_q, g.dim_qk);
  known("dk", MemoryCategory::result, g.storage, keys, g.heads_kv, g.dim_qk);
  known("dv", MemoryCategory::result, g.storage, keys, g.heads_kv, g.dim_v);
  known("lse", MemoryCategory::accumulator, DataType::fp32, count_of(plan_.rows), plan_.heads_q, 1);

  plan_forward();
  plan_backward();
  return std::move(plan_);
}

int outermost_difference(int cp_rank_a, int cp_rank_b, const std::vector<Level>& levels) {
  int outermost = 0;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const int size = levels[level].size;
    if (cp_rank_a % size != cp_rank_b % size) {
      outermost = static_cast<int>(level);
    }
    cp_rank_a /= size;
    cp_rank_b /= size;
  }
  return outermost;
}

ExchangePlan make_exchange_plan(const LayerGeometry& geometry, int cp_rank) {
  std::int64_t ranks = 1;
  std::int64_t swap_members = 1;
  for (const Level& level : geometry.levels) {
    ranks *= level.size;
    if (level.algorithm == Algorithm::a2a) {
      swap_members *= level.size;
    }
  }
  const auto check_shards = [ranks](const std::vector<PositionSet>& shards, const char* of) {
    if (ranks != static_cast<std::int64_t>(shards.size())) {
      throw std::invalid_argument{"the level sizes make " + std::to_string(ranks) + " ranks, but there are " +
                                  std::to_string(shards.size()) + " shards of " + of};
    }
  };
  check_shards(geometry.shards, "queries");
  check_shards(geometry.kv_shards, "keys");
  if (swap_members > geometry.heads_q) {
    throw std::invalid_argument{std::to_string(swap_members) + " ranks swap heads, but there are only " +
                                std::to_string(geometry.heads_q) + " query heads; at most one rank per head"};
  }
  return PlanBuilder{geometry, cp_rank}.build();
}

std::vector<ArrayId> arrays_of(const Instruction& instruction, const Program& program,
                               const AttentionArrays& attention) {
  std::vector<ArrayId> used;
  const auto of_transfer = [&](int transfer) {
    const Transfer& t = program.transfers.at(static_cast<std::size_t>(transfer));
    for (const auto* messages : {&t.sends, &t.receives}) {
      for (const PlannedMessage& message : *messages) {
        for (const Part& part : message.parts) {
          if (used.empty() || used.back() != part.array) {
            used.push_back(part.array);
          }
        }
      }
    }
  };
  struct Visitor {
    std::vector<ArrayId>& used;
    const AttentionArrays& attention;
    decltype(of_transfer)& of_transfer_of;
    void operator()(const Post& a) const { of_transfer_of(a.transfer); }
    void operator()(const Wait& a) const { of_transfer_of(a.transfer); }
    void operator()(const Move& a) const { used = {a.from.array, a.to.array}; }
    void operator()(const Fill& a) const { used = {a.array}; }
    void operator()(const FinishForward&) const {
      used = {attention.running_out, attention.running_max, attention.running_sum, array_lse};
    }
    void operator()(const RowDot& a) const { used = {a.out, a.dout, a.delta}; }
    void operator()(const Attend& a) const {
      used = {attention.q, a.k, a.v};
      if (a.dk < 0) {
        used.insert(used.end(), {attention.running_out, attention.running_max, attention.running_sum});
      } else {
        used.insert(used.end(), {array_lse, attention.dout, attention.delta, attention.dq, a.dk, a.dv});
      }
    }
  };
  std::visit(Visitor{used, attention, of_transfer}, instruction.action);
  return used;
}

}  // namespace hcp
