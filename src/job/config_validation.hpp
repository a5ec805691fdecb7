/// What can be refused before any communicator exists, the same on all ranks: no MPI, no files but names.
#pragma once

#include <string>

#include "src/job/job_config.hpp"
#include "topology/rank_grid.hpp"

namespace hcp {

/// The grid over `world_size` ranks; the context-parallel size defaults to world / (tensor · pipeline).
/// @throws std::invalid_argument if the ranks do not make a whole grid
[[nodiscard]] GridSizes grid_sizes(const JobConfig& config, int world_size);

/// Ranks of a run that is only planned: tensor · context · pipeline.
/// @throws std::invalid_argument if the context-parallel size was not given, or the product overflows
[[nodiscard]] int planned_world_size(const JobConfig& config);

/// Everything about the options together that needs neither ranks nor files: grid, schemes of all layers,
/// kernel, transport, the options of the mask, what excludes what, and, without an input file, the shape of
/// the problem.
///
/// Two-level schemes without sizes wait for the node layout: resolve_scheme and check_query_heads refuse
/// them.
/// @throws std::invalid_argument with what, the value, and what would be right
void validate(const JobConfig& config, int world_size);

/// Heads that the head swaps of all layers need, where their sizes are known.
/// @param query_heads of the model
/// @throws std::invalid_argument as check_query_heads
void check_head_swaps(const JobConfig& config, int cp_size, std::int64_t query_heads);

/// @throws std::invalid_argument if `path` exists, or its directory is missing or cannot be written to
void check_trace_path(const std::string& path);

/// "hcp-20260131T120000Z-4711.h5": UTC time, and the Slurm job or else the process.
[[nodiscard]] std::string default_trace_path();

}  // namespace hcp
