#include "src/exchange/plan_memory.hpp"

#include <algorithm>

namespace hcp {
namespace {

constexpr std::size_t unused = static_cast<std::size_t>(-1);

struct Use {
  std::size_t first = unused;
  std::size_t last = unused;
};

bool circulates(const ArrayPlan& array) {
  return array.category == MemoryCategory::kv_ring || array.category == MemoryCategory::dkv_ring;
}

/// First and last use of every array in a pass. What circulates lives together, as rings hold all their
/// buffers from the first hop to the last: so the memory of a run does not depend on how short its rings are.
std::vector<Use> uses_of(const ExchangePlan& plan, Pass pass) {
  std::vector<Use> uses(plan.arrays.size());
  const Program& program = plan.program(pass);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ArrayId array : arrays_of(program.instructions[i], program, plan.attention)) {
      Use& use = uses.at(static_cast<std::size_t>(array));
      use.first = std::min(use.first, i);
      use.last = i;
    }
  }
  Use rings;
  for (std::size_t id = 0; id < uses.size(); ++id) {
    if (!circulates(plan.arrays[id]) || uses[id].first == unused) {
      continue;
    }
    rings.first = std::min(rings.first, uses[id].first);
    rings.last = rings.last == unused ? uses[id].last : std::max(rings.last, uses[id].last);
  }
  for (std::size_t id = 0; id < uses.size(); ++id) {
    if (circulates(plan.arrays[id]) && uses[id].first != unused) {
      uses[id] = rings;
    }
  }
  return uses;
}

class LiveBytes {
 public:
  void add(MemoryCategory category, std::int64_t bytes) {
    const auto c = static_cast<std::size_t>(category);
    live_[c] += bytes;
    total_ += bytes;
    peaks.by_category[c] = std::max(peaks.by_category[c], live_[c]);
    peaks.total = std::max(peaks.total, total_);
  }
  MemoryPeaks peaks;

 private:
  std::array<std::int64_t, memory_categories> live_{};
  std::int64_t total_ = 0;
};

void replay(LiveBytes& live, const ExchangePlan& plan, Pass pass, bool backward_follows) {
  const ArrayLifetimes lifetimes = array_lifetimes(plan, pass, backward_follows);
  const auto account = [&](const std::vector<ArrayId>& arrays, std::int64_t sign) {
    for (const ArrayId id : arrays) {
      const ArrayPlan& array = plan.arrays.at(static_cast<std::size_t>(id));
      live.add(array.category, sign * array.bytes());
    }
  };
  for (std::size_t i = 0; i < lifetimes.made_before.size(); ++i) {
    account(lifetimes.made_before[i], 1);
    account(lifetimes.freed_after[i], -1);
  }
}

}  // namespace

ArrayLifetimes array_lifetimes(const ExchangePlan& plan, Pass pass, bool backward_follows) {
  const std::vector<Use> uses = uses_of(plan, pass);
  const std::vector<Use> forward_uses = pass == Pass::forward ? uses : uses_of(plan, Pass::forward);
  const std::size_t instructions = plan.program(pass).instructions.size();
  ArrayLifetimes lifetimes{std::vector<std::vector<ArrayId>>(instructions),
                           std::vector<std::vector<ArrayId>>(instructions)};
  for (std::size_t id = known_arrays; id < plan.arrays.size(); ++id) {
    const bool saved = plan.arrays[id].category == MemoryCategory::saved;
    const bool made_in_forward = saved && forward_uses[id].first != unused;
    const Use& use = uses[id];
    const bool makes = use.first != unused && !(pass == Pass::backward && made_in_forward);
    const bool frees = pass == Pass::forward ? use.last != unused && !(saved && backward_follows)
                                             : use.last != unused || made_in_forward;
    if (makes) {
      lifetimes.made_before[use.first].push_back(static_cast<ArrayId>(id));
    }
    if (frees && instructions > 0) {
      lifetimes.freed_after[use.last == unused ? 0 : use.last].push_back(static_cast<ArrayId>(id));
    }
  }
  return lifetimes;
}

MemoryPeaks planned_memory(std::span<const ExchangePlan* const> layers, PassSelection passes) {
  LiveBytes live;
  for (const ExchangePlan* plan : layers) {
    for (int id = 0; id < known_arrays; ++id) {
      const ArrayPlan& array = plan->arrays.at(static_cast<std::size_t>(id));
      if (known_array_is_used(id, passes)) {
        live.add(array.category, array.bytes());
      }
    }
  }
  const bool backward = passes != PassSelection::forward;
  for (const ExchangePlan* plan : layers) {
    replay(live, *plan, Pass::forward, backward);
  }
  if (backward) {
    for (std::size_t i = layers.size(); i-- > 0;) {
      replay(live, *layers[i], Pass::backward, false);
    }
  }
  return live.peaks;
}

bool known_array_is_used(ArrayId array, PassSelection passes) {
  const bool of_backward = array == array_dout || array == array_dq || array == array_dk || array == array_dv;
  return passes != PassSelection::forward || !of_backward;
}

}  // namespace hcp
