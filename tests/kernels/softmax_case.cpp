#include "tests/kernels/softmax_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace hcp::test {
namespace {

std::vector<float> gather(const std::vector<float>& all, const PositionSet& positions,
                          std::int64_t elements) {
  std::vector<float> part;
  for (const PositionRange& range : positions) {
    part.insert(part.end(), all.begin() + range.begin * elements, all.begin() + range.end * elements);
  }
  return part;
}

void scatter(const std::vector<float>& part, const PositionSet& positions, std::int64_t elements,
             std::vector<float>& all) {
  auto from = part.begin();
  for (const PositionRange& range : positions) {
    std::copy_n(from, range.size() * elements, all.begin() + range.begin * elements);
    from += range.size() * elements;
  }
}

}  // namespace

SoftmaxRun run_softmax(AttentionKernel& kernel, const SoftmaxCase& setup, const Operands& operands,
                       const BlockSplit& split) {
  const AttentionCase& shape = setup.attention;
  const MaskDefinition definition = shape.mask_definition();
  const AttentionMask mask = definition.mask();
  const std::vector<std::int64_t> query_offsets = offsets_of(definition.doc_lengths);
  const std::vector<std::int64_t> key_offsets = offsets_of(definition.key_lengths());
  const BlockRule rule{&mask,
                       shape.heads,
                       shape.softmax_scale(),
                       {.probability = setup.dropout,
                        .seed = setup.seed,
                        .layer = setup.layer,
                        .first_head = setup.first_head,
                        .query_offsets = query_offsets,
                        .key_offsets = key_offsets,
                        .documents_per_row = setup.documents_per_row}};
  const std::int64_t heads = shape.heads_q;
  const auto head_count = static_cast<std::size_t>(heads);
  SoftmaxRun run{{std::vector<float>(operands.dout.values.size()),
                  std::vector<float>(static_cast<std::size_t>(shape.tokens()) * head_count),
                  std::vector<float>(operands.q.values.size()), std::vector<float>(operands.k.values.size()),
                  std::vector<float>(operands.v.values.size())},
                 std::vector<float>(setup.sinks.size()),
                 std::vector<float>(head_count, -std::numeric_limits<float>::infinity())};
  for (const PositionSet& queries : split.queries) {
    const StoredTensor q = operands.q.rows_at(queries);
    const StoredTensor dout = operands.dout.rows_at(queries);
    const QueryBlock query{q.view(), queries};
    std::vector<float> out(dout.values.size());
    std::vector<float> max(static_cast<std::size_t>(q.rows) * head_count,
                           -std::numeric_limits<float>::infinity());
    std::vector<float> sum(max.size());
    const RunningOutput running{out.data(), max.data(), sum.data()};
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      kernel.forward_block(rule, query, {k.view(), v.view(), keys}, running);
    }
    std::vector<float> logits(head_count);
    kernel.max_logits(max.data(), q.rows, heads, logits.data());
    std::ranges::transform(run.max_logits, logits, run.max_logits.begin(),
                           [](float a, float b) { return std::max(a, b); });
    std::vector<float>& lse = max;  // they may share memory
    kernel.finish_forward(running, q.rows, heads, shape.dim_v, lse.data(),
                          setup.sinks.empty() ? nullptr : setup.sinks.data());

    std::vector<float> delta(lse.size());
    const auto* const out_bytes = reinterpret_cast<const std::byte*>(out.data());
    kernel.row_dot({out_bytes, DataType::fp32, q.rows, heads, shape.dim_v}, dout.view(), delta.data());
    if (!setup.sinks.empty()) {
      std::vector<float> dsinks(head_count);
      kernel.sink_gradients(setup.sinks.data(), lse.data(), delta.data(), q.rows, heads, dsinks.data());
      std::ranges::transform(run.dsinks, dsinks, run.dsinks.begin(), std::plus{});
    }
    std::vector<float> dq(q.values.size());
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      std::vector<float> dk = gather(run.attention.dk, keys, k.heads * k.dim);
      std::vector<float> dv = gather(run.attention.dv, keys, v.heads * v.dim);
      kernel.backward_block(rule, {query, dout.view(), lse.data(), delta.data(), dq.data()},
                            {k.view(), v.view(), keys}, {dk.data(), dv.data()});
      scatter(dk, keys, k.heads * k.dim, run.attention.dk);
      scatter(dv, keys, v.heads * v.dim, run.attention.dv);
    }
    scatter(out, queries, heads * shape.dim_v, run.attention.out);
    scatter(lse, queries, heads, run.attention.lse);
    scatter(dq, queries, heads * shape.dim_qk, run.attention.dq);
  }
  return run;
}

void expect_close(const SoftmaxRun& run, const DenseSoftmax& reference, double tolerance) {
  EXPECT_LE(relative_error(run.attention.out, reference.attention.out), tolerance);
  EXPECT_LE(relative_error(run.attention.lse, reference.attention.lse), tolerance);
  EXPECT_LE(relative_error(run.attention.dq, reference.attention.dq), tolerance);
  EXPECT_LE(relative_error(run.attention.dk, reference.attention.dk), tolerance);
  EXPECT_LE(relative_error(run.attention.dv, reference.attention.dv), tolerance);
  EXPECT_LE(relative_error(run.dsinks, reference.dsinks), tolerance);
  EXPECT_LE(relative_error(run.max_logits, reference.max_logits), tolerance);
}

}  // namespace hcp::test
