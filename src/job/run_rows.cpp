#include "src/job/run_rows.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <string_view>

#include "src/job/build_info.hpp"
#include "topology/level_digits.hpp"

extern "C" char** environ;  // NOLINT: POSIX names it, no header declares it

namespace hcp {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// The variables that decide how libraries behave, as JSON.
std::string relevant_environment() {
  constexpr std::array<std::string_view, 8> prefixes{"OMPI_", "UCX_",  "NCCL_", "SLURM_",
                                                     "OMP_",  "CUDA_", "HCP_",  "PMIX_"};
  NamedTexts found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    for (const std::string_view prefix : prefixes) {
      if (text.starts_with(prefix)) {
        found.emplace_back(std::string{text.substr(0, equals)}, std::string{text.substr(equals + 1)});
      }
    }
  }
  return to_json(found);
}

/// One entry per layer, or one for all if they are the same.
template <typename Text>
std::string per_layer(const JobPlan& plan, const Text& text) {
  if (plan.schemes().size() == 1) {
    return text(plan.schemes().front().effective);
  }
  std::string joined;
  for (int layer = 0; layer < plan.layers(); ++layer) {
    joined += (layer == 0 ? "" : ";") +
              text(plan.schemes()[static_cast<std::size_t>(plan.scheme_of_layer(layer))].effective);
  }
  return joined;
}

}  // namespace

TraceFile create_trace(const JobConfig& config, const std::string& path) {
  NamedTexts provenance = build_info();
  provenance.emplace_back("command_line", config.command_line);
  provenance.emplace_back("deck", config.deck);
  provenance.emplace_back("host", this_host().host_name);
  provenance.emplace_back("start_time", utc_now());
  provenance.emplace_back("environment", relevant_environment());
  return TraceFile::create(path, provenance);
}

RankRow rank_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                 const RankFacts& facts) {
  const auto w = static_cast<std::size_t>(facts.world_rank);
  return {.rank = communicators.grid_rank(),
          .node = plan.layout().node_of_rank.at(w),
          .local_rank = plan.layout().local_rank_of_rank.at(w),
          .world_rank = facts.world_rank,
          .host = FixedString<64>::truncated(facts.host.host_name),
          .device = "cpu",
          .binding = FixedString<128>::truncated(facts.host.binding)};
}

CellRow cell_row(const JobConfig& config, const JobPlan& plan, int number) {
  NamedTexts options = describe(config);
  return {.cell = number,
          .tokens = plan.shape().tokens(),
          .scheme = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.name(); })),
          .sizes = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.sizes(); })),
          .mask = name_in(mask_type_names, config.attention_mask_type),
          .dtype = name_of(config.dtype),
          .pass = name_in(pass_names, config.pass),
          .options = to_json(options)};
}

PlacementRow placement_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                           const CellRun& cell, int number) {
  const GridCoordinates& at = communicators.coordinates();
  std::vector<int> sizes;
  for (const Level& level : plan.schemes().front().effective.levels) {
    sizes.push_back(level.size);
  }
  std::string digits;
  for (const int digit : level_digits(at.cp, sizes)) {
    digits += (digits.empty() ? "" : ",") + std::to_string(digit);
  }
  return {.cell = number,
          .rank = communicators.grid_rank(),
          .tp = at.tp,
          .cp = at.cp,
          .dp = at.dp,
          .pp = at.pp,
          .level_coordinates = FixedString<32>::truncated(digits),
          .tokens = count_of(cell.shard())};
}

}  // namespace hcp
