/// The verdict on a cell: every layer of every rank against the fp64 reference.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "src/job/cell_run.hpp"
#include "src/job/setup.hpp"

namespace hcp {

struct Verified {
  std::string mode = "off";  ///< full, sample or off
  bool passed = true;
  double error = std::numeric_limits<double>::quiet_NaN();  ///< the largest of all ranks, layers and tensors
  double tolerance = std::numeric_limits<double>::quiet_NaN();
  std::string where;  ///< of the largest error, when it is too large
};

/// Collective over the world, outside the timed part. A run that computed only a part is not verified.
/// @param progress  called with the layer before each step that may take long, see verify_layer
/// @throws std::invalid_argument if an input file cannot be read any more, perhaps on one rank alone
[[nodiscard]] Verified verify_cell(const JobConfig& config, const JobPlan& plan, const Input& input,
                                   const HierarchicalCommunicators& communicators, const CellRun& cell,
                                   const std::function<void(int layer)>& progress);

}  // namespace hcp
