#include "kernels/cpu/visit_order.hpp"

#include <thread>

namespace hcp {

VisitOrder::VisitOrder(const TileSchedule& schedule, const HeadMap& heads, std::int64_t heads_q,
                       std::int64_t heads_kv)
    : visitors_{schedule.visitors},
      places_(static_cast<std::size_t>(heads_q)),
      passed_(schedule.visitors.size() * static_cast<std::size_t>(heads_kv)) {
  for (std::size_t head = 0; head < places_.size(); ++head) {
    places_[head].kv_head = heads.kv_head_of(static_cast<std::int64_t>(head));
    if (head > 0 && places_[head].kv_head == places_[head - 1].kv_head) {
      places_[head].heads_before = places_[head - 1].heads_before + 1;
    }
  }
}

void VisitOrder::wait_for_turn(std::int64_t head, const KeyVisit& visit) const {
  constexpr int spins = 256;
  const std::int32_t before = places_[static_cast<std::size_t>(head)].heads_before *
                                  visitors_[static_cast<std::size_t>(visit.key_tile())] +
                              visit.turn;
  const std::atomic<std::int32_t>& passed = passed_[counter_of(head, visit)];
  for (int spin = 0; passed.load(std::memory_order_acquire) != before; ++spin) {
    if (spin >= spins) {
      std::this_thread::yield();  // whoever is waited for may need this core
    }
  }
}

void VisitOrder::pass(std::int64_t head, const KeyVisit& visit) {
  passed_[counter_of(head, visit)].fetch_add(1, std::memory_order_release);
}

std::size_t VisitOrder::counter_of(std::int64_t head, const KeyVisit& visit) const {
  return static_cast<std::size_t>(places_[static_cast<std::size_t>(head)].kv_head) * visitors_.size() +
         static_cast<std::size_t>(visit.key_tile());
}

}  // namespace hcp
