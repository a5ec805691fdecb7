#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>
#include <ostream>

#include "src/job/config_validation.hpp"
#include "src/job/job_plan.hpp"
#include "src/job/mask_options.hpp"
#include "src/job/run_job.hpp"
#include "src/job/setup.hpp"
#include "src/plan/traffic.hpp"

namespace hcp {
namespace {

/// What all ranks send at one level in one pass.
struct LevelTraffic {
  Traffic inside;  ///< a node
  Traffic across;
};

/// What the CP ranks of one group need, and what every group of the grid sends.
struct PlannedRun {
  std::map<std::pair<int, int>, LevelTraffic> by_level;  ///< (level, pass), scheme by scheme added up
  MemoryPeaks smallest;
  MemoryPeaks largest;
  std::int64_t largest_area = 0;
  std::int64_t area = 0;
};

template <typename... Values>
void print(std::ostream& out, const char* format, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  out << text.data();
}

void add_traffic(PlannedRun& run, const JobPlan& plan, const ExchangePlan& exchange, int cp_rank) {
  const GridSizes& sizes = plan.grid().sizes();
  for (int group = 0; group < plan.grid().world_size() / sizes.cp; ++group) {
    const GridCoordinates at{.tp = group % sizes.tp,
                             .cp = cp_rank,
                             .dp = group / sizes.tp % sizes.dp,
                             .pp = group / sizes.tp / sizes.dp};
    for (const auto& [key, traffic] : planned_ledger(exchange)) {
      LevelTraffic& level = run.by_level[{key.level, static_cast<int>(key.pass)}];
      const bool across = plan.across_nodes(plan.grid().rank_of(at), plan.grid_rank_of(at, key.peer_cp_rank));
      (across ? level.across : level.inside) += traffic;
    }
  }
}

void add_memory(PlannedRun& run, const MemoryPeaks& peaks, bool first) {
  for (std::size_t c = 0; c < memory_categories; ++c) {
    run.largest.by_category[c] = std::max(run.largest.by_category[c], peaks.by_category[c]);
    run.smallest.by_category[c] =
        first ? peaks.by_category[c] : std::min(run.smallest.by_category[c], peaks.by_category[c]);
  }
  run.largest.total = std::max(run.largest.total, peaks.total);
  run.smallest.total = first ? peaks.total : std::min(run.smallest.total, peaks.total);
}

PlannedRun walk(const JobConfig& config, const JobPlan& plan) {
  PlannedRun run;
  for (int cp_rank = 0; cp_rank < plan.grid().sizes().cp; ++cp_rank) {
    std::vector<ExchangePlan> exchanges;
    for (int scheme = 0; scheme < static_cast<int>(plan.schemes().size()); ++scheme) {
      exchanges.push_back(make_exchange_plan(plan.geometry(scheme), cp_rank));
    }
    std::vector<const ExchangePlan*> layers;
    std::int64_t area = 0;
    for (int layer = 0; layer < plan.layers(); ++layer) {
      layers.push_back(&exchanges.at(static_cast<std::size_t>(plan.scheme_of_layer(layer))));
      add_traffic(run, plan, *layers.back(), cp_rank);
      area += planned_area(*layers.back());
    }
    add_memory(run, planned_memory(layers, config.pass), cp_rank == 0);
    run.area += area;
    run.largest_area = std::max(run.largest_area, area);
  }
  return run;
}

void print_buffers(std::ostream& out, const JobPlan& plan, PassSelection passes) {
  out << "#\n# arrays of CP rank 0, for each layer of a scheme (those of a pass live from first to last "
         "use)\n";
  out << "#   scheme            category      array                                type      rows  heads    "
         "dim         bytes\n";
  for (int scheme = 0; scheme < static_cast<int>(plan.schemes().size()); ++scheme) {
    const ExchangePlan exchange = make_exchange_plan(plan.geometry(scheme), 0);
    const std::string name = plan.schemes()[static_cast<std::size_t>(scheme)].effective.name();
    for (std::size_t id = 0; id < exchange.arrays.size(); ++id) {
      const ArrayPlan& array = exchange.arrays[id];
      if (id < known_arrays && !known_array_is_used(static_cast<ArrayId>(id), passes)) {
        continue;
      }
      print(out, "  %-18s  %-12s  %-34s  %4s  %9lld  %5lld  %5lld  %12lld\n", name.c_str(),
            std::string{name_of(array.category)}.c_str(), array.name.c_str(),
            std::string{name_of(array.type)}.c_str(), static_cast<long long>(array.rows),
            static_cast<long long>(array.heads), static_cast<long long>(array.dim),
            static_cast<long long>(array.bytes()));
    }
  }
}

}  // namespace

void print_plan(JobConfig config, std::ostream& out) {
  const int world = planned_world_size(config);
  validate(config, world);
  const Input input = open_input(config);
  set_shape(config, input.shape);
  const int given = config.simulate_ranks_per_node.value_or(0);
  const NodeLayout layout = simulated_layout(world, given > 0 ? given : world);
  const GridSizes sizes = grid_sizes(config, world);
  const JobPlan plan{config, input.shape, layout, sizes};
  const PlannedRun run = walk(config, plan);

  out << "# plan of: " << config.command_line << "\n";
  print(out, "# grid: %d ranks = tp %d x cp %d x dp %d x pp %d on %d nodes (nodes: simulated)\n", world,
        sizes.tp, sizes.cp, sizes.dp, sizes.pp, layout.nodes());
  for (const std::string& note : plan.notes()) {
    out << "# " << note << "\n";
  }
  out << "# mask: " << describe_mask(config) << "; " << describe_partition(config) << "\n";
  print(
      out,
      "# work: %.4g TFLOP forward, %.4g TFLOP backward per iteration of all ranks; imbalance %.3f (area, "
      "max/mean)\n",
      attention_flops(Pass::forward, run.area, input.shape.kv_channels, input.shape.v_channels) * 1e-12 *
          world / sizes.cp,
      attention_flops(Pass::backward, run.area, input.shape.kv_channels, input.shape.v_channels) * 1e-12 *
          world / sizes.cp,
      run.area == 0 ? 1.0 : static_cast<double>(run.largest_area) * sizes.cp / static_cast<double>(run.area));

  out << "#\n# bytes and messages sent by all ranks in one iteration of all layers, by the level where they "
         "are booked\n";
  out << "#   level  pass     inside_bytes  inside_messages     across_bytes  across_messages\n";
  for (const auto& [key, level] : run.by_level) {
    const Pass pass = static_cast<Pass>(key.second);
    if (!includes(config.pass, pass)) {
      continue;
    }
    print(out, "  %7d  %4s  %15lld  %15lld  %15lld  %15lld\n", key.first, std::string{name_of(pass)}.c_str(),
          static_cast<long long>(level.inside.bytes), static_cast<long long>(level.inside.messages),
          static_cast<long long>(level.across.bytes), static_cast<long long>(level.across.messages));
  }

  out << "#\n# largest number of live bytes per rank, over the ranks\n";
  out << "#   category                   min              max\n";
  for (std::size_t c = 0; c < memory_categories; ++c) {
    print(out, "  %-15s  %15lld  %15lld\n", std::string{name_of(static_cast<MemoryCategory>(c))}.c_str(),
          static_cast<long long>(run.smallest.by_category[c]),
          static_cast<long long>(run.largest.by_category[c]));
  }
  print(out, "  %-15s  %15lld  %15lld\n", "together", static_cast<long long>(run.smallest.total),
        static_cast<long long>(run.largest.total));
  print_buffers(out, plan, config.pass);
}

}  // namespace hcp
