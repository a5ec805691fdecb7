#include "src/plan/traffic.hpp"

#include "topology/level_digits.hpp"

namespace hcp {

Traffic& Traffic::operator+=(const Traffic& other) {
  bytes += other.bytes;
  messages += other.messages;
  return *this;
}

TrafficLedger planned_ledger(const ExchangePlan& plan) {
  TrafficLedger ledger;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const Transfer& transfer : plan.program(pass).transfers) {
      for (const PlannedMessage& message : transfer.sends) {
        ledger[{pass, message.peer_cp_rank, message.level, message.payload}] += {message.bytes(), 1};
      }
    }
  }
  return ledger;
}

std::int64_t planned_area(const ExchangePlan& plan) {
  std::int64_t area = 0;
  for (const Instruction& instruction : plan.forward.instructions) {
    if (const auto* attend = std::get_if<Attend>(&instruction.action)) {
      area += attend->area;
    }
  }
  return area * plan.heads_q;
}

double attention_flops(Pass pass, std::int64_t area, std::int64_t dim_qk, std::int64_t dim_v) {
  const auto pairs = static_cast<double>(area);
  const auto qk = static_cast<double>(dim_qk);
  const auto v = static_cast<double>(dim_v);
  return 2.0 * pairs * (pass == Pass::forward ? qk + v : 3.0 * qk + 2.0 * v);
}

bool level_must_communicate(const LayerGeometry& geometry, int level, int cp_rank) {
  std::vector<int> sizes;
  for (const Level& l : geometry.levels) {
    sizes.push_back(l.size);
  }
  const bool swaps = geometry.levels.at(static_cast<std::size_t>(level)).algorithm == Algorithm::a2a;
  const PositionSet looked_at =
      geometry.mask->looked_at(geometry.shards.at(static_cast<std::size_t>(cp_rank)));
  const LevelPlace place = level_place(cp_rank, sizes, {level});
  const std::vector<int> group = level_groups(sizes, {level}).at(static_cast<std::size_t>(place.group));
  for (const int peer : group) {
    const bool has_queries = !geometry.shards.at(static_cast<std::size_t>(peer)).empty();
    const PositionSet& keys = geometry.kv_shards.at(static_cast<std::size_t>(peer));
    if (peer != cp_rank && ((swaps && has_queries) || !set_intersection(looked_at, keys).empty())) {
      return true;
    }
  }
  return false;
}

}  // namespace hcp
