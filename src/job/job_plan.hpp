/// Everything about a run that follows from options, shape and node layout alone: `hcp run` and `hcp plan`
/// share it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/scheme.hpp"
#include "src/job/job_config.hpp"
#include "src/job/problem_shape.hpp"
#include "topology/node_layout.hpp"
#include "topology/rank_grid.hpp"

namespace hcp {

/// What the transport of a run needs of its messages: as far as is resolved, else by what the options say.
/// Tensors lie on devices where CUDA is asked for, and NCCL moves them unless they are staged.
[[nodiscard]] MessageForm message_form_of(const JobConfig& config);

class JobPlan {
 public:
  /// @throws std::invalid_argument if a scheme does not fit the ranks, the nodes or the heads, or the mask
  /// cannot be made
  JobPlan(const JobConfig& config, const ProblemShape& shape, const NodeLayout& layout,
          const GridSizes& sizes);
  JobPlan(const JobPlan&) = delete;
  JobPlan& operator=(const JobPlan&) = delete;

  [[nodiscard]] const ProblemShape& shape() const { return shape_; }
  [[nodiscard]] const NodeLayout& layout() const { return layout_; }
  [[nodiscard]] const RankGrid& grid() const { return grid_; }
  [[nodiscard]] const AttentionMask& mask() const { return mask_; }
  [[nodiscard]] int layers() const { return static_cast<int>(scheme_of_layer_.size()); }

  /// The different schemes of the run; every layer has one of them.
  [[nodiscard]] const std::vector<ResolvedScheme>& schemes() const { return schemes_; }
  [[nodiscard]] int scheme_of_layer(int layer) const {
    return scheme_of_layer_.at(static_cast<std::size_t>(layer));
  }
  [[nodiscard]] int layers_with(int scheme) const;

  /// What the plans of one scheme are made from.
  [[nodiscard]] const LayerGeometry& geometry(int scheme) const {
    return geometries_.at(static_cast<std::size_t>(scheme));
  }
  [[nodiscard]] const std::vector<PositionSet>& shards() const { return shards_; }        ///< by CP rank
  [[nodiscard]] const std::vector<PositionSet>& kv_shards() const { return kv_shards_; }  ///< of keys

  /// Heads of one tensor-parallel rank.
  [[nodiscard]] std::int64_t query_heads() const;
  [[nodiscard]] std::int64_t kv_heads() const;
  /// Visible (query, key) pairs of the whole batch.
  [[nodiscard]] std::int64_t area() const { return area_; }

  /// The CP rank's peers as grid ranks, for a rank at `coordinates`.
  [[nodiscard]] int grid_rank_of(GridCoordinates coordinates, int cp_rank) const;
  [[nodiscard]] bool across_nodes(int grid_rank_a, int grid_rank_b) const;
  /// What the header says of the schemes: expanded names, sizes and where they come from, levels that vanish,
  /// nodes that level 0 does not fit; and of their messages: which form and which collectives are planned.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  [[nodiscard]] std::string note_on_messages() const;

  ProblemShape shape_;
  const NodeLayout& layout_;
  RankGrid grid_;
  AttentionMask mask_;
  std::vector<ResolvedScheme> schemes_;
  std::vector<int> scheme_of_layer_;
  std::vector<PositionSet> shards_;
  std::vector<PositionSet> kv_shards_;
  std::vector<LayerGeometry> geometries_;
  std::int64_t area_ = 0;
};

}  // namespace hcp
