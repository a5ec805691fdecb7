// Dropout, sinks with their gradients and the largest logits under every scheme, partition and number of
// ranks: the same elements drop, so every result is that of dense fp64 arithmetic on the whole problem.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "src/attention/context_parallel_attention.hpp"
#include "tests/exchange/planned_group.hpp"
#include "tests/harness/thread_network.hpp"
#include "tests/kernels/softmax_case.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

using test::SoftmaxCase;
using test::SoftmaxRun;

constexpr float infinity = std::numeric_limits<float>::infinity();

void load(const test::StoredTensor& whole, const PositionSet& rows, TensorView target) {
  const test::StoredTensor part = whole.rows_at(rows);
  std::ranges::copy(part.bytes, target.data);  // of no rows, too
}

/// Columns [first, first + width) of the rows of a whole tensor with `row_elements` columns.
void store(const TensorView& part, const PositionSet& rows, std::int64_t row_elements, std::int64_t first,
           std::vector<float>& whole) {
  const auto* from = reinterpret_cast<const float*>(part.data);
  for (const PositionRange& range : rows) {
    for (std::int64_t row = range.begin; row < range.end; ++row, from += part.row_elements()) {
      std::copy_n(from, part.row_elements(), whole.begin() + row * row_elements + first);
    }
  }
}

/// Everything that the ranks share, and the results that they put together.
struct Group {
  const SoftmaxCase& setup;
  const test::Operands& operands;
  LayerGeometry geometry;
  Dropout dropout;
  SoftmaxRun run;
  std::mutex mutex{};
  std::map<std::pair<std::vector<int>, int>, ThreadNetwork> networks{};  // by levels and group
};

void run_rank(Group& group, int rank) {
  const LayerGeometry& geometry = group.geometry;
  const auto heads = static_cast<std::size_t>(geometry.heads_q);
  const ExchangePlan plan = make_exchange_plan(geometry, rank);
  std::vector<int> sizes;
  for (const Level& level : geometry.levels) {
    sizes.push_back(level.size);
  }
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<Transport*> borrowed;
  for (const std::vector<int>& levels : plan.communicators) {
    const LevelPlace place = level_place(rank, sizes, levels);
    const std::lock_guard lock{group.mutex};
    transports.push_back(group.networks[{levels, place.group}].transport(place.rank, place.size));
    borrowed.push_back(transports.back().get());
  }

  MemoryLedger ledger;
  PhaseLog log;
  const auto kernel = make_cpu_attention_kernel(1);
  const LayerTensors tensors{plan, PassSelection::both, ledger};
  const PositionSet& queries = geometry.shards[static_cast<std::size_t>(rank)];
  const PositionSet& keys = geometry.kv_shards[static_cast<std::size_t>(rank)];
  load(group.operands.q, queries, tensors.view(array_q));
  load(group.operands.k, keys, tensors.view(array_k));
  load(group.operands.v, keys, tensors.view(array_v));
  load(group.operands.dout, queries, tensors.view(array_dout));
  std::vector<float> dsinks(heads, 1e9F);  // stale values must not survive
  std::vector<float> max_logits(heads, 1e9F);
  const BlockRule rule{.mask = geometry.mask,
                       .heads = {},
                       .softmax_scale = group.setup.attention.softmax_scale(),
                       .dropout = group.dropout};
  ContextParallelAttention attention{
      plan,
      rule,
      *kernel,
      borrowed,
      ledger,
      log,
      static_cast<int>(group.setup.layer),
      {.sinks = group.setup.sinks, .dsinks = dsinks, .max_logits = max_logits}};
  attention.forward(tensors, true);
  attention.backward(tensors);

  const std::lock_guard lock{group.mutex};
  const std::int64_t q_row = geometry.heads_q * geometry.dim_qk;
  const std::int64_t out_row = geometry.heads_q * geometry.dim_v;
  const std::int64_t k_row = geometry.heads_kv * geometry.dim_qk;
  const std::int64_t v_row = geometry.heads_kv * geometry.dim_v;
  store(tensors.view(array_out), queries, out_row, 0, group.run.attention.out);
  store(tensors.view(array_dq), queries, q_row, 0, group.run.attention.dq);
  store(tensors.view(array_dk), keys, k_row, 0, group.run.attention.dk);
  store(tensors.view(array_dv), keys, v_row, 0, group.run.attention.dv);
  store(tensors.view(array_lse), plan.rows, geometry.heads_q, plan.first_head_q, group.run.attention.lse);
  for (std::size_t head = 0; head < heads; ++head) {
    group.run.dsinks[head] += dsinks[head];
    group.run.max_logits[head] = std::max(group.run.max_logits[head], max_logits[head]);
  }
}

SoftmaxRun run_group(const SoftmaxCase& setup, const test::Operands& operands,
                     const std::vector<Level>& levels, Partition partition) {
  const test::MaskDefinition definition = setup.attention.mask_definition();
  const AttentionMask mask = definition.mask();
  const std::vector<std::int64_t> query_offsets = test::offsets_of(definition.doc_lengths);
  const std::vector<std::int64_t> key_offsets = test::offsets_of(definition.key_lengths());
  DealtShards shards = dealt(levels, partition, definition);
  const auto heads = static_cast<std::size_t>(setup.attention.heads_q);
  Group group{
      .setup = setup,
      .operands = operands,
      .geometry = {.levels = levels,
                   .shards = std::move(shards.queries),
                   .kv_shards = std::move(shards.keys),
                   .mask = &mask,
                   .heads_q = setup.attention.heads_q,
                   .heads_kv = setup.attention.heads_kv,
                   .dim_qk = setup.attention.dim_qk,
                   .dim_v = setup.attention.dim_v},
      .dropout = {.probability = setup.dropout,
                  .seed = setup.seed,
                  .first_head = setup.first_head,
                  .query_offsets = query_offsets,
                  .key_offsets = key_offsets,
                  .documents_per_row = setup.documents_per_row},
      .run = {{std::vector<float>(operands.dout.values.size()),
               std::vector<float>(static_cast<std::size_t>(setup.attention.tokens()) * heads),
               std::vector<float>(operands.q.values.size()), std::vector<float>(operands.k.values.size()),
               std::vector<float>(operands.v.values.size())},
              std::vector<float>(heads),
              std::vector<float>(heads, -infinity)}};
  run_as_threads(static_cast<int>(Scheme{levels}.size()), [&](int rank) { run_rank(group, rank); });
  return group.run;
}

std::vector<std::vector<Level>> schemes() {
  constexpr auto p2p = Algorithm::p2p;
  constexpr auto a2a = Algorithm::a2a;
  constexpr auto all_gather = Algorithm::all_gather;
  return {{},
          {{p2p, 4}},
          {{all_gather, 3}},
          {{a2a, 4}},
          {{p2p, 2}, {a2a, 3}},
          {{a2a, 2}, {p2p, 2}},
          {{all_gather, 2}, {p2p, 2}},
          {{a2a, 2}, {p2p, 2}, {all_gather, 2}}};
}

void expect_exact(const SoftmaxCase& setup) {
  const test::Operands operands = test::random_operands(setup.attention, 21);
  const test::DenseSoftmax reference = test::dense_softmax(setup, operands);
  for (const std::vector<Level>& levels : schemes()) {
    for (const Partition partition : {Partition::zigzag, Partition::contiguous}) {
      SCOPED_TRACE(Scheme{levels}.name() + " " + Scheme{levels}.sizes() +
                   (partition == Partition::zigzag ? " zigzag" : " contiguous"));
      expect_close(run_group(setup, operands, levels, partition), reference, 2e-6);
    }
  }
}

const std::vector<float> six_sinks{0.0F, 1.5F, -2.0F, 4.0F, 0.3F, -12.0F};

TEST(SoftmaxTerms, OfEveryScheme) {
  expect_exact({.attention = {.doc_lengths = {70, 0, 23, 70, 0, 23},
                              .causal = true,
                              .heads_q = 6,
                              .heads_kv = 3,
                              .heads = {0, 0, 2},
                              .dim_qk = 16,
                              .dim_v = 24},
                .documents_per_row = 3,
                .dropout = 0.2,
                .layer = 2,
                .first_head = 6,
                .sinks = six_sinks});
}

TEST(SoftmaxTerms, OfRanksWithoutRows) {
  expect_exact({.attention = {.doc_lengths = {3, 2}, .heads_q = 6, .heads_kv = 6}, .sinks = six_sinks});
}

TEST(SoftmaxTerms, OfOtherKeysThanQueries) {
  test::AttentionCase attention{.heads_q = 6, .heads_kv = 2, .heads = {0, 0, 3}};
  attention.any_mask = test::MaskDefinition{.kind = test::MaskKind::causal_bottom_right,
                                            .doc_lengths = {50, 0, 31},
                                            .kv_doc_lengths = {120, 5, 77}};
  expect_exact({.attention = attention, .dropout = 0.5, .sinks = six_sinks});
}

TEST(SoftmaxTerms, ThatDoNotCoverTheHeadsAreRefused) {
  const SoftmaxCase setup{.attention = {.heads_q = 6, .heads_kv = 6}, .sinks = {0.0F, 1.0F}};
  const test::Operands operands = test::random_operands(setup.attention, 1);
  EXPECT_THROW(static_cast<void>(run_group(setup, operands, {}, Partition::zigzag)), std::invalid_argument);
}

}  // namespace
}  // namespace hcp
