#include "src/job/job_plan.hpp"

#include <algorithm>
#include <numeric>

#include "src/exchange/balanced_pieces.hpp"
#include "src/job/mask_options.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

std::vector<int> sizes_of(const Scheme& scheme) {
  std::vector<int> sizes;
  for (const Level& level : scheme.levels) {
    sizes.push_back(level.size);
  }
  return sizes;
}

/// One numbering per run: that of the first scheme that swaps heads; without one it is the CP rank.
std::vector<PositionSet> deal(const SequencePartition& shards, const std::vector<ResolvedScheme>& schemes) {
  const int cp = shards.shards();
  std::vector<int> sizes{cp};
  std::vector<int> swaps;
  for (const ResolvedScheme& scheme : schemes) {
    if (scheme.effective.a2a_size() == 1) {
      continue;
    }
    sizes = sizes_of(scheme.effective);
    for (std::size_t level = 0; level < sizes.size(); ++level) {
      if (scheme.effective.levels[level].algorithm == Algorithm::a2a) {
        swaps.push_back(static_cast<int>(level));
      }
    }
    break;
  }
  std::vector<PositionSet> dealt;
  for (int rank = 0; rank < cp; ++rank) {
    PositionSet positions;
    for (const TokenRange& range : shards.ranges_of(shard_number(rank, sizes, swaps))) {
      positions.push_back({range.begin, range.end});
    }
    dealt.push_back(std::move(positions));
  }
  return dealt;
}

SequencePartition partition_of_queries(const JobConfig& config, const ProblemShape& shape,
                                       const AttentionMask& mask, int cp) {
  const std::vector<std::int64_t> documents = shape.of_all_rows(shape.doc_lengths);
  PartitionOptions options{.stripe_size = config.stripe_size.value_or(default_stripe_size)};
  if (config.cp_partition == Partition::balanced) {
    options.pieces = balanced_pieces(mask, documents, cp);
  }
  return {config.cp_partition, documents, cp, options};
}

/// Keys that are not the queries' tokens make no work of their own: where queries are balanced by work, they
/// only have to be even.
SequencePartition partition_of_other_keys(const JobConfig& config, const ProblemShape& shape, int cp) {
  const Partition partition =
      config.cp_partition == Partition::balanced ? Partition::contiguous : config.cp_partition;
  return {partition,
          shape.of_all_rows(shape.kv_doc_lengths),
          cp,
          {.stripe_size = config.stripe_size.value_or(default_stripe_size)}};
}

/// How many gathers of KV a pass of CP rank 0 has, and how many of them are collectives.
struct Gathers {
  std::ptrdiff_t all = 0;
  std::ptrdiff_t collective = 0;
};
Gathers count_gathers(const LayerGeometry& geometry) {
  const ExchangePlan plan = make_exchange_plan(geometry, 0);
  const std::vector<Transfer>& transfers = plan.forward.transfers;
  const auto is_gather = [&](const Transfer& transfer) {
    const int level = plan.communicators.at(static_cast<std::size_t>(transfer.communicator)).front();
    return geometry.levels.at(static_cast<std::size_t>(level)).algorithm == Algorithm::all_gather;
  };
  return {std::ranges::count_if(transfers, is_gather),
          std::ranges::count(transfers, Collective::all_gather, &Transfer::collective)};
}

}  // namespace

MessageForm message_form_of(const JobConfig& config) {
  switch (config.transport) {
    case TransportChoice::mpi:
      return MessageForm::scattered;
    case TransportChoice::nccl:
      return MessageForm::collectives;
    case TransportChoice::staged:
      return MessageForm::contiguous;
    case TransportChoice::automatic:
      break;
  }
  const bool on_devices =
      config.backend == BackendChoice::cuda || config.attention_kernel == KernelChoice::cuda;
  return on_devices ? MessageForm::collectives : MessageForm::scattered;
}

JobPlan::JobPlan(const JobConfig& config, const ProblemShape& shape, const NodeLayout& layout,
                 const GridSizes& sizes)
    : shape_{shape}, layout_{layout}, grid_{sizes}, mask_{mask_of(config, shape)} {
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::vector<Algorithm>& algorithms = config.scheme_of_layer(layer);
    std::optional<CpNodes> nodes;
    if (algorithms.size() == 2 && config.hierarchical_context_parallel_sizes.empty()) {
      const int per_node = cp_ranks_per_node(grid_, layout_);
      nodes = CpNodes{per_node, sizes.cp / per_node};
    }
    ResolvedScheme scheme =
        resolve_scheme(algorithms, sizes.cp, config.hierarchical_context_parallel_sizes, nodes);
    check_query_heads(scheme.effective, query_heads());
    const auto same = std::find_if(schemes_.begin(), schemes_.end(), [&](const ResolvedScheme& known) {
      return known.requested == scheme.requested;
    });
    scheme_of_layer_.push_back(static_cast<int>(same - schemes_.begin()));
    if (same == schemes_.end()) {
      schemes_.push_back(std::move(scheme));
    }
  }
  shards_ = deal(partition_of_queries(config, shape_, mask_, sizes.cp), schemes_);
  kv_shards_ = shape_.is_self_attention() ? shards_
                                          : deal(partition_of_other_keys(config, shape_, sizes.cp), schemes_);
  for (const ResolvedScheme& scheme : schemes_) {
    geometries_.push_back({.levels = scheme.effective.levels,
                           .shards = shards_,
                           .kv_shards = kv_shards_,
                           .mask = &mask_,
                           .heads_q = query_heads(),
                           .heads_kv = kv_heads(),
                           .dim_qk = shape_.kv_channels,
                           .dim_v = shape_.v_channels,
                           .storage = config.dtype,
                           .gradient_wire = config.grad_comm_dtype,
                           .message_form = message_form_of(config)});
  }
  for (const PositionSet& shard : shards_) {
    area_ += mask_.area(shard);
  }
}

std::int64_t JobPlan::query_heads() const {
  return shape_.query_heads / grid_.sizes().tp;
}
std::int64_t JobPlan::kv_heads() const {
  return shape_.kv_heads / grid_.sizes().tp;
}

int JobPlan::layers_with(int scheme) const {
  return static_cast<int>(std::count(scheme_of_layer_.begin(), scheme_of_layer_.end(), scheme));
}

int JobPlan::grid_rank_of(GridCoordinates coordinates, int cp_rank) const {
  coordinates.cp = cp_rank;
  return grid_.rank_of(coordinates);
}

bool JobPlan::across_nodes(int grid_rank_a, int grid_rank_b) const {
  return layout_.node_of_grid_rank(grid_rank_a) != layout_.node_of_grid_rank(grid_rank_b);
}

std::vector<std::string> JobPlan::notes() const {
  std::vector<std::string> notes;
  for (std::size_t s = 0; s < schemes_.size(); ++s) {
    const ResolvedScheme& scheme = schemes_[s];
    std::string line = "scheme: " + scheme.requested.name() + ", sizes " + scheme.requested.sizes() + " (" +
                       std::string{name_of(scheme.source)} + ")";
    if (schemes_.size() > 1) {
      line += ", layers";
      for (int layer = 0; layer < layers(); ++layer) {
        if (scheme_of_layer(layer) == static_cast<int>(s)) {
          line += " " + std::to_string(layer);
        }
      }
    }
    notes.push_back(std::move(line));
    notes.insert(notes.end(), scheme.notes.begin(), scheme.notes.end());
    const std::vector<std::string> split =
        nodes_that_split_level_0(grid_, layout_, sizes_of(scheme.requested));
    if (!split.empty()) {
      std::string warning = "warning: level 0 of " + scheme.requested.name() + " does not fit the node on";
      for (const std::string& node : split) {
        warning += " " + node;
      }
      notes.push_back(std::move(warning));
    }
  }
  if (grid_.sizes().cp > 1) {
    notes.push_back(note_on_messages());
  }
  return notes;
}

std::string JobPlan::note_on_messages() const {
  const MessageForm form = geometries_.front().message_form;
  std::string note = form == MessageForm::scattered
                         ? "messages: rows from where they lie in memory"
                         : "messages: each tensor in one piece, packed where its rows lie apart";
  if (form != MessageForm::collectives) {
    return note;
  }
  Gathers gathers;
  for (const LayerGeometry& geometry : geometries_) {
    const Gathers more = count_gathers(geometry);
    gathers.all += more.all;
    gathers.collective += more.collective;
  }
  if (gathers.all > 0) {
    note += "; collectives: " + std::to_string(gathers.collective) + " of " + std::to_string(gathers.all) +
            " gathers of K and V (CP rank 0, a pass of each scheme); gradients are messages, summed in rank "
            "order";
  }
  return note;
}

}  // namespace hcp
