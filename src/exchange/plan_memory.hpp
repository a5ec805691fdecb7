/// When each array of a plan lives, and what follows for memory: the same rule for the run and for the
/// forecast.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/exchange/exchange_plan.hpp"

namespace hcp {

/// Which passes of a layer run.
enum class PassSelection : std::uint8_t { forward, backward, both };
[[nodiscard]] constexpr bool includes(PassSelection passes, Pass pass) {
  return passes == PassSelection::both || (passes == PassSelection::forward) == (pass == Pass::forward);
}

/// Whether the caller needs to hold one of the known arrays: forward alone knows no gradients.
[[nodiscard]] bool known_array_is_used(ArrayId array, PassSelection passes);

/// Arrays to make before, and to free after, each instruction of a pass. The caller's arrays are not listed.
struct ArrayLifetimes {
  std::vector<std::vector<ArrayId>> made_before;  ///< by instruction
  std::vector<std::vector<ArrayId>> freed_after;
};

/// An array lives from its first to its last use in the pass; those that circulate in rings live together.
/// What forward saves lives on until its last use in backward, unless no backward follows.
[[nodiscard]] ArrayLifetimes array_lifetimes(const ExchangePlan& plan, Pass pass, bool backward_follows);

/// Largest number of live bytes per category, and of their sum, on one rank.
struct MemoryPeaks {
  std::array<std::int64_t, memory_categories> by_category{};
  std::int64_t total = 0;
};

/// Of one iteration: forward of all layers in order, then backward of all in reverse order. `both` or a
/// backward pass keep what forward saves; the caller's tensors of every layer live throughout.
[[nodiscard]] MemoryPeaks planned_memory(std::span<const ExchangePlan* const> layers, PassSelection passes);

}  // namespace hcp
