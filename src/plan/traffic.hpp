/// What a planned layer sends: per peer for the ledger of one rank, and summed up for people.
#pragma once

#include <cstdint>
#include <map>

#include "src/exchange/exchange_plan.hpp"

namespace hcp {

struct Traffic {
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
  Traffic& operator+=(const Traffic& other);
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// What one rank sends to one peer, by pass and payload.
struct TrafficKey {
  Pass pass = Pass::forward;
  int peer_cp_rank = 0;
  int level = 0;  ///< where it is booked
  Payload payload = Payload::kv;
  friend auto operator<=>(const TrafficKey&, const TrafficKey&) = default;
};
using TrafficLedger = std::map<TrafficKey, Traffic>;

/// The messages that the plan of one rank sends.
[[nodiscard]] TrafficLedger planned_ledger(const ExchangePlan& plan);

/// Visible (query, key) pairs times query heads that one rank computes in forward.
[[nodiscard]] std::int64_t planned_area(const ExchangePlan& plan);

/// Floating-point operations of attention over `area` visible pairs (times heads), after the field's
/// convention: a multiply and an add per element of QK^T and PV forward; S, dP, dV, dQ and dK backward.
[[nodiscard]] double attention_flops(Pass pass, std::int64_t area, std::int64_t dim_qk, std::int64_t dim_v);

/// Whether a level cannot be silent as far as this rank sees: a rank that differs from it in that level alone
/// holds keys that it looks at (or, where heads are swapped, holds queries). Knows nothing of plans, so
/// that it can guard them.
[[nodiscard]] bool level_must_communicate(const LayerGeometry& geometry, int level, int cp_rank);

}  // namespace hcp
