#include "tests/exchange/planned_group.hpp"

#include <algorithm>

#include "src/exchange/balanced_pieces.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

std::vector<int> sizes_of(const std::vector<Level>& levels) {
  std::vector<int> sizes;
  for (const Level& level : levels) {
    sizes.push_back(level.size);
  }
  return sizes;
}

bool is_one_of(Payload payload, const std::vector<Payload>& wanted) {
  return wanted.empty() || std::ranges::find(wanted, payload) != wanted.end();
}

std::vector<PositionSet> shards_by_rank(const std::vector<Level>& levels, const SequencePartition& shards) {
  std::vector<int> swaps;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].algorithm == Algorithm::a2a) {
      swaps.push_back(static_cast<int>(i));
    }
  }
  std::vector<PositionSet> by_rank;
  for (int rank = 0; rank < shards.shards(); ++rank) {
    PositionSet& shard = by_rank.emplace_back();
    for (const TokenRange& range : shards.ranges_of(shard_number(rank, sizes_of(levels), swaps))) {
      shard.push_back({range.begin, range.end});
    }
  }
  return by_rank;
}

}  // namespace

DealtShards dealt(const std::vector<Level>& levels, Partition partition,
                  const test::MaskDefinition& definition, std::int64_t stripe_size) {
  const int ranks = Scheme{levels}.size();
  PartitionOptions options{.stripe_size = stripe_size};
  if (partition == Partition::balanced) {
    options.pieces = balanced_pieces(definition.mask(), definition.doc_lengths, ranks);
  }
  DealtShards shards;
  shards.queries =
      shards_by_rank(levels, SequencePartition{partition, definition.doc_lengths, ranks, options});
  if (definition.key_lengths() == definition.doc_lengths) {
    shards.keys = shards.queries;
  } else {
    const Partition of_keys = partition == Partition::balanced ? Partition::contiguous : partition;
    shards.keys = shards_by_rank(
        levels, SequencePartition{of_keys, definition.key_lengths(), ranks, {.stripe_size = stripe_size}});
  }
  return shards;
}

PlannedGroup::PlannedGroup(std::vector<Level> levels, const std::vector<std::int64_t>& documents, bool causal,
                           Heads heads, Partition partition, DataType storage, DataType gradient_wire,
                           HeadDims dims, MessageForm form)
    : PlannedGroup{std::move(levels),
                   test::MaskDefinition{.kind = causal ? test::MaskKind::causal : test::MaskKind::no_mask,
                                        .doc_lengths = documents},
                   heads,
                   partition,
                   storage,
                   gradient_wire,
                   dims,
                   form} {}

PlannedGroup::PlannedGroup(std::vector<Level> levels, const test::MaskDefinition& definition, Heads heads,
                           Partition partition, DataType storage, DataType gradient_wire, HeadDims dims,
                           MessageForm form)
    : definition_{definition},
      partition_{partition},
      mask_{definition.mask()},
      geometry_{.levels = std::move(levels),
                .shards = {},
                .kv_shards = {},
                .mask = &mask_,
                .heads_q = heads.q,
                .heads_kv = heads.kv,
                .dim_qk = dims.qk,
                .dim_v = dims.v,
                .storage = storage,
                .gradient_wire = gradient_wire,
                .message_form = form} {
  DealtShards shards = dealt(geometry_.levels, partition, definition_);
  geometry_.shards = std::move(shards.queries);
  geometry_.kv_shards = std::move(shards.keys);
  for (int rank = 0; rank < Scheme{geometry_.levels}.size(); ++rank) {
    plans.push_back(make_exchange_plan(geometry_, rank));
  }
}

std::int64_t PlannedGroup::bytes(Pass pass, const std::vector<Payload>& of) const {
  std::int64_t sum = 0;
  for_each_send(pass, [&](const PlannedMessage& m) { sum += is_one_of(m.payload, of) ? m.bytes() : 0; });
  return sum;
}

std::int64_t PlannedGroup::messages(Pass pass) const {
  std::int64_t sum = 0;
  for_each_send(pass, [&](const PlannedMessage&) { ++sum; });
  return sum;
}

std::int64_t PlannedGroup::level_bytes(Pass pass, int level, const std::vector<Payload>& of) const {
  std::int64_t sum = 0;
  for_each_send(pass, [&](const PlannedMessage& m) {
    sum += m.level == level && is_one_of(m.payload, of) ? m.bytes() : 0;
  });
  return sum;
}

std::vector<int> PlannedGroup::level_sizes() const {
  return sizes_of(geometry_.levels);
}

std::string PlannedGroup::describe() const {
  const Scheme scheme{geometry_.levels};
  return scheme.name() + " " + scheme.sizes() + ", heads " + std::to_string(geometry_.heads_q) + ":" +
         std::to_string(geometry_.heads_kv) + ", " + std::string{hcp::name_of(geometry_.storage)} +
         ", gradients travel in " + std::string{hcp::name_of(geometry_.gradient_wire)} + ", " +
         std::string{hcp::name_of(partition_)} + ", " + test::text_of(definition_) + ", " +
         std::string{hcp::name_of(geometry_.message_form)} + " messages";
}

}  // namespace hcp
