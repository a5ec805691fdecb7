#include "tests/exchange/planned_group.hpp"

#include <algorithm>

#include "topology/level_digits.hpp"

namespace hcp {
namespace {

AttentionMask mask_of(const std::vector<std::int64_t>& documents, bool causal) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : documents) {
    offsets.push_back(offsets.back() + length);
  }
  return causal ? AttentionMask::causal(offsets) : AttentionMask::no_mask(offsets);
}

bool is_one_of(Payload payload, const std::vector<Payload>& wanted) {
  return wanted.empty() || std::ranges::find(wanted, payload) != wanted.end();
}

}  // namespace

PlannedGroup::PlannedGroup(std::vector<Level> levels, const std::vector<std::int64_t>& documents, bool causal,
                           Heads heads, Partition partition, DataType storage, DataType gradient_wire,
                           HeadDims dims)
    : mask_{mask_of(documents, causal)},
      geometry_{.levels = std::move(levels),
                .shards = {},
                .mask = &mask_,
                .heads_q = heads.q,
                .heads_kv = heads.kv,
                .dim_qk = dims.qk,
                .dim_v = dims.v,
                .storage = storage,
                .gradient_wire = gradient_wire} {
  std::vector<int> swaps;
  for (std::size_t i = 0; i < geometry_.levels.size(); ++i) {
    if (geometry_.levels[i].algorithm == Algorithm::a2a) {
      swaps.push_back(static_cast<int>(i));
    }
  }
  const int ranks = Scheme{geometry_.levels}.size();
  const SequencePartition shards{partition, documents, ranks};
  for (int rank = 0; rank < ranks; ++rank) {
    PositionSet shard;
    for (const TokenRange& range : shards.ranges_of(shard_number(rank, level_sizes(), swaps))) {
      shard.push_back({range.begin, range.end});
    }
    geometry_.shards.push_back(std::move(shard));
  }
  for (int rank = 0; rank < ranks; ++rank) {
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
  std::vector<int> sizes;
  for (const Level& level : geometry_.levels) {
    sizes.push_back(level.size);
  }
  return sizes;
}

std::string PlannedGroup::describe() const {
  const Scheme scheme{geometry_.levels};
  return scheme.name() + " " + scheme.sizes() + ", heads " + std::to_string(geometry_.heads_q) + ":" +
         std::to_string(geometry_.heads_kv) + ", " + std::string{hcp::name_of(geometry_.storage)} +
         ", gradients travel in " + std::string{hcp::name_of(geometry_.gradient_wire)};
}

}  // namespace hcp
