#include "src/job/run_rows.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string_view>

#include "src/job/build_info.hpp"
#include "src/job/option_table.hpp"
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

/// Values of a list that fit the column of options with all the others.
constexpr std::size_t most_listed = 64;

bool is_shortened(const std::string& option, const std::string& value) {
  return find_option(option)->kind == OptionKind::list && shortened_list(value, most_listed) != value;
}

/// Every option as JSON, long lists shortened.
std::string options_json(const JobConfig& config) {
  NamedTexts options = describe(config);
  for (auto& [name, value] : options) {
    if (is_shortened(name, value)) {
      value = shortened_list(value, most_listed);
    }
  }
  return to_json(options);
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

std::string pass_text(const JobConfig& config) {
  std::string text{name_in(pass_names, config.pass)};
  if (config.comm_only) {
    text += ":comm";
  }
  if (config.compute_only) {
    text += ":compute";
  }
  return text;
}

/// Inner first; one entry for each different scheme.
std::string coordinates_in_levels(const JobPlan& plan, int cp_rank) {
  std::string text;
  for (const ResolvedScheme& scheme : plan.schemes()) {
    std::vector<int> sizes;
    for (const Level& level : scheme.effective.levels) {
      sizes.push_back(level.size);
    }
    std::string digits;
    for (const int digit : level_digits(cp_rank, sizes)) {
      digits += (digits.empty() ? "" : ",") + std::to_string(digit);
    }
    text += (text.empty() ? "" : ";") + digits;
  }
  return text;
}

}  // namespace

TraceFile create_trace(const JobConfig& config, const Transports& transports, const std::string& path) {
  NamedTexts provenance = build_info();
  provenance.insert(provenance.end(), transports.attributes.begin(), transports.attributes.end());
  provenance.emplace_back("command_line", config.command_line);
  provenance.emplace_back("deck", config.deck);
  provenance.emplace_back("host", this_host().host_name);
  provenance.emplace_back("start_time", utc_now());
  provenance.emplace_back("environment", relevant_environment());
  for (auto& [name, value] : describe(config)) {
    if (is_shortened(name, value)) {
      std::ranges::replace(name, '-', '_');
      provenance.emplace_back(name, value);
    }
  }
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
          .device = FixedString<64>::truncated(facts.device ? facts.device->text() : host_device),
          .binding = FixedString<128>::truncated(facts.host.binding)};
}

CellRow cell_row(const JobConfig& config, const JobPlan& plan, int number) {
  return {.cell = number,
          .tokens = plan.shape().tokens(),
          .scheme = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.name(); })),
          .sizes = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.sizes(); })),
          .mask = name_in(mask_type_names, config.attention_mask_type),
          .dtype = name_of(config.dtype),
          .pass = pass_text(config),
          .nodes = std::to_string(plan.layout().nodes()) + (plan.layout().simulated ? " (simulated)" : ""),
          .options = options_json(config)};
}

PlacementRow placement_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                           const CellRun& cell, int number) {
  const GridCoordinates& at = communicators.coordinates();
  return {.cell = number,
          .rank = communicators.grid_rank(),
          .tp = at.tp,
          .cp = at.cp,
          .dp = at.dp,
          .pp = at.pp,
          .level_coordinates = FixedString<64>::truncated(coordinates_in_levels(plan, at.cp)),
          .tokens = count_of(cell.shard())};
}

}  // namespace hcp
