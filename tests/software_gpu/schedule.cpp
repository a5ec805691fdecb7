#include "tests/software_gpu/schedule.hpp"

#include <algorithm>
#include <limits>

namespace hcp::software_gpu {
namespace {

constexpr unsigned kinds = 3;

}  // namespace

Schedule::Schedule(unsigned seed)
    : seed_{seed}, kind_{static_cast<Kind>(seed == 0 ? 0 : (seed - 1) % kinds)}, random_{seed} {}

int Schedule::operations_after_call() {
  if (in_order()) {
    return std::numeric_limits<int>::max();
  }
  constexpr unsigned most = 3;
  return kind_ == Kind::eager ? static_cast<int>(random_() % (most + 1)) : 0;
}

void Schedule::arrange(std::vector<Head>& heads) {
  if (in_order()) {
    std::ranges::sort(heads, {}, &Head::submitted);
    return;
  }
  if (kind_ != Kind::unfair) {
    std::ranges::shuffle(heads, random_);
    return;
  }
  constexpr unsigned mean_turn = 32;  // operations
  if (random_() % mean_turn == 0) {
    ranks_.clear();
  }
  for (const Head& head : heads) {
    ranks_.try_emplace(head.number, static_cast<std::uint32_t>(random_()));
  }
  std::ranges::sort(heads, {}, [this](const Head& head) { return ranks_.at(head.number); });
}

}  // namespace hcp::software_gpu
