/// Cases for the kernels of the forward and the backward pass.
#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "kernels/row_operations.hpp"
#include "tests/kernels/softmax_case.hpp"
#include "tests/mutation/kernel_cases.hpp"

namespace hcp::mutation {
namespace {

using test::AttentionCase;
using test::BlockSplit;
using test::DenseSoftmax;
using test::MaskDefinition;
using test::MaskKind;
using test::Operands;
using test::relative_error;
using test::SoftmaxCase;
using test::StoredTensor;

enum class Result { out, dq, dk, dv };

/// What an instance is made for.
struct Made {
  DataType type;
  int tile_qk;
  int tile_v;
  bool dropping;
  std::vector<Result> results;
};

Made made_of(const KernelInstance& instance) {
  const bool plain = instance.family.starts_with("plain_");
  Made made = plain ? Made{DataType::fp32, instance.number(0), instance.number(0), instance.flag(1), {}}
                    : Made{instance.type(0), instance.number(1), instance.number(2), instance.flag(3), {}};
  if (instance.family.ends_with("forward")) {
    made.results = {Result::out};
  } else if (instance.family.ends_with("queries")) {
    made.results = {Result::dq};
  } else {
    made.results = instance.entry.ends_with("_dk")   ? std::vector{Result::dk}
                   : instance.entry.ends_with("_dv") ? std::vector{Result::dv}
                                                     : std::vector{Result::dk, Result::dv};
  }
  return made;
}

/// In the norm. P, and dS in the backward pass, are rounded to the storage type of two bytes; all else is
/// fp32.
double tolerance_of(DataType type, Result result) {
  const double forward = type == DataType::bf16 ? 2e-3 : type == DataType::fp16 ? 2.5e-4 : 2e-6;
  return result == Result::out || type == DataType::fp32 ? forward : 2.0 * forward;
}
constexpr double fp32_tolerance = 2e-6;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> narrow(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> rows_at(const std::vector<float>& all, const PositionSet& positions,
                           std::int64_t elements) {
  std::vector<float> part;
  for (const PositionRange& range : positions) {
    part.insert(part.end(), all.begin() + range.begin * elements, all.begin() + range.end * elements);
  }
  return part;
}

void put_back(const std::vector<float>& part, const PositionSet& positions, std::int64_t elements,
              std::vector<float>& all) {
  auto from = part.begin();
  for (const PositionRange& range : positions) {
    std::copy_n(from, range.size() * elements, all.begin() + range.begin * elements);
    from += range.size() * elements;
  }
}

/// One case with what is the same in every run of it.
class AttentionProblem {
 public:
  AttentionProblem(SoftmaxCase setup, BlockSplit split, std::vector<Result> results)
      : setup_{std::move(setup)},
        split_{std::move(split)},
        results_{std::move(results)},
        definition_{setup_.attention.mask_definition()},
        mask_{definition_.mask()},
        query_offsets_{test::offsets_of(definition_.doc_lengths)},
        key_offsets_{test::offsets_of(definition_.key_lengths())},
        operands_{random_operands(setup_.attention, 7)},
        reference_{dense_softmax(setup_, operands_)},
        lse_{narrow(reference_.attention.lse.values)} {
    const auto dim = static_cast<std::size_t>(shape().dim_v);
    for (std::size_t first = 0; first < operands_.dout.values.size(); first += dim) {
      double sum = 0.0;
      for (std::size_t i = first; i < first + dim; ++i) {
        sum += static_cast<double>(operands_.dout.values[i]) * reference_.attention.out.values[i];
      }
      delta_.push_back(static_cast<float>(sum));
    }
  }

  [[nodiscard]] bool is_right(AttentionKernel& kernel) const {
    return results_.front() == Result::out ? forward_is_right(kernel) : backward_is_right(kernel);
  }

 private:
  [[nodiscard]] const AttentionCase& shape() const { return setup_.attention; }

  [[nodiscard]] BlockRule rule() const {
    return {&mask_,
            shape().heads,
            shape().softmax_scale(),
            {.probability = setup_.dropout,
             .seed = setup_.seed,
             .layer = setup_.layer,
             .first_head = setup_.first_head,
             .query_offsets = query_offsets_,
             .key_offsets = key_offsets_,
             .documents_per_row = setup_.documents_per_row}};
  }

  [[nodiscard]] bool forward_is_right(AttentionKernel& kernel) const {
    const std::int64_t heads = shape().heads_q;
    const std::int64_t out_row = heads * shape().dim_v;
    std::vector<float> out(operands_.dout.values.size());
    std::vector<float> lse(lse_.size());
    std::vector<float> max_logits(static_cast<std::size_t>(heads), -infinity);
    for (const PositionSet& queries : split_.queries) {
      const StoredTensor q = operands_.q.rows_at(queries);
      std::vector<float> block_out(static_cast<std::size_t>(q.rows * out_row));
      std::vector<float> max(static_cast<std::size_t>(q.rows * heads), -infinity);
      std::vector<float> sum(max.size());
      const RunningOutput running{block_out.data(), max.data(), sum.data()};
      for (const PositionSet& keys : split_.keys) {
        const StoredTensor k = operands_.k.rows_at(keys);
        const StoredTensor v = operands_.v.rows_at(keys);
        kernel.forward_block(rule(), {q.view(), queries}, {k.view(), v.view(), keys}, running);
      }
      std::vector<float> logits(max_logits.size());
      max_logits_host(max.data(), q.rows, heads, logits.data());
      std::ranges::transform(max_logits, logits, max_logits.begin(),
                             [](float a, float b) { return std::max(a, b); });
      finish_forward_host(running, q.rows, heads, shape().dim_v, max.data());
      put_back(block_out, queries, out_row, out);
      put_back(max, queries, heads, lse);
    }
    return relative_error(out, reference_.attention.out) <= tolerance_of(shape().type, Result::out) &&
           relative_error(lse, reference_.attention.lse) <= fp32_tolerance &&
           relative_error(max_logits, reference_.max_logits) <= fp32_tolerance;
  }

  [[nodiscard]] bool backward_is_right(AttentionKernel& kernel) const {
    const std::int64_t heads = shape().heads_q;
    const std::int64_t k_row = shape().heads_kv * shape().dim_qk;
    const std::int64_t v_row = shape().heads_kv * shape().dim_v;
    std::vector<float> dq(operands_.q.values.size());
    std::vector<float> dk(operands_.k.values.size());
    std::vector<float> dv(operands_.v.values.size());
    for (const PositionSet& queries : split_.queries) {
      const StoredTensor q = operands_.q.rows_at(queries);
      const StoredTensor dout = operands_.dout.rows_at(queries);
      const std::vector<float> lse = rows_at(lse_, queries, heads);
      const std::vector<float> delta = rows_at(delta_, queries, heads);
      std::vector<float> block_dq(q.values.size());
      for (const PositionSet& keys : split_.keys) {
        const StoredTensor k = operands_.k.rows_at(keys);
        const StoredTensor v = operands_.v.rows_at(keys);
        std::vector<float> block_dk = rows_at(dk, keys, k_row);
        std::vector<float> block_dv = rows_at(dv, keys, v_row);
        kernel.backward_block(rule(),
                              {{q.view(), queries}, dout.view(), lse.data(), delta.data(), block_dq.data()},
                              {k.view(), v.view(), keys}, {block_dk.data(), block_dv.data()});
        put_back(block_dk, keys, k_row, dk);
        put_back(block_dv, keys, v_row, dv);
      }
      put_back(block_dq, queries, heads * shape().dim_qk, dq);
    }
    const test::DenseAttention& right = reference_.attention;
    return std::ranges::all_of(results_, [&](Result result) {
      const double error = result == Result::dq   ? relative_error(dq, right.dq)
                           : result == Result::dk ? relative_error(dk, right.dk)
                                                  : relative_error(dv, right.dv);
      return error <= tolerance_of(shape().type, result);
    });
  }

  SoftmaxCase setup_;
  BlockSplit split_;
  std::vector<Result> results_;
  MaskDefinition definition_;
  AttentionMask mask_;
  std::vector<std::int64_t> query_offsets_;
  std::vector<std::int64_t> key_offsets_;
  Operands operands_;
  DenseSoftmax reference_;
  std::vector<float> lse_;    // [tokens, heads_q]
  std::vector<float> delta_;  // [tokens, heads_q]
};

struct Dims {
  std::int64_t qk;
  std::int64_t v;
};

/// Head dims that run on the tile and leave columns of it empty.
Dims smaller_than(int tile_qk) {
  switch (tile_qk) {
    case 64:
      return {24, 40};
    case 128:
      return {72, 104};
    case 192:
      return {136, 80};
    default:
      return {136, 200};
  }
}

/// So many that on this tile each of the two dims takes every value that it can.
std::vector<Dims> all_dims(int tile_qk, int tile_v) {
  std::vector<Dims> all;
  const auto add = [&](std::int64_t qk_begin, std::int64_t qk_end, std::int64_t v_begin, std::int64_t v_end) {
    for (std::int64_t qk = qk_begin, v = v_begin; qk <= qk_end || v <= v_end; qk += 8, v += 8) {
      all.push_back({std::min(qk, qk_end), std::min(v, v_end)});
    }
  };
  if (tile_qk == 64) {
    add(8, 64, 8, 64);
  } else if (tile_qk == 192) {
    add(136, 192, 8, 128);
  } else {  // one of the dims must be beyond the next smaller tile
    add(8, tile_qk == 128 ? 64 : 192, tile_v / 2 + 8, tile_v);
    add(tile_qk == 128 ? 72 : 200, tile_qk, 8, tile_v / 2);
  }
  return all;
}

/// Tokens of two visits at least, with a rest that ends in every part of a tile as `number` goes up: on
/// tensor cores each half of a fragment of 16 rows has its last row before another warp's or the end.
std::int64_t tokens_with_a_rest(DataType type, std::int64_t number) {
  return type == DataType::fp32 ? 33 + number % 32 : 81 + number % 8;
}

/// Both intervals of each query begin and end anywhere, often around multiples of 32.
MaskDefinition two_intervals(std::int64_t tokens) {
  MaskDefinition definition{.kind = MaskKind::intervals, .doc_lengths = {tokens}};
  std::mt19937 random{17};
  const auto draw = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  for (std::int64_t query = 0; query < tokens; ++query) {
    const std::int64_t first_word = draw(tokens / 32 + 1);
    const std::int64_t words = draw(tokens / 32 + 1 - first_word) + 1;
    std::vector<std::int64_t> ends(4);
    std::ranges::generate(ends, [&] {
      const std::int64_t inside = draw(4) == 0 ? draw(32) : draw(4) - 1;
      return std::clamp(32 * (first_word + draw(words)) + inside, std::int64_t{0}, tokens);
    });
    std::ranges::sort(ends);
    definition.intervals.insert(definition.intervals.end(), ends.begin(), ends.end());
  }
  return definition;
}

/// Takes from the seeds the first one with which a bit less than a third of all drops, and so much exactly
/// that the first key of the first query, all that it sees if the mask is causal, is just kept.
void drop_about_a_third(SoftmaxCase& setup) {
  setup.layer = 3;
  setup.first_head = 28;
  const std::int64_t zero[]{0, 1};
  for (setup.seed = 0xfedc'ba98'7654'3210; setup.dropout < 0.25 || setup.dropout > 0.33; ++setup.seed) {
    const Dropout dropout{.seed = setup.seed + 1,
                          .layer = setup.layer,
                          .first_head = setup.first_head,
                          .query_offsets = zero,
                          .key_offsets = zero};
    const DropoutStream stream = dropout_stream(dropout, 0, setup.attention.heads.first_query_head);
    setup.dropout = static_cast<double>(dropout_numbers(stream, 0, 0)[0]) / 65536.0;
  }
}

class CaseList {
 public:
  explicit CaseList(Made made) : made_{std::move(made)} {}

  void add(std::string name, AttentionCase attention, const BlockSplit& split,
           std::int64_t documents_per_row = 1) {
    attention.type = made_.type;
    SoftmaxCase setup{.attention = std::move(attention), .documents_per_row = documents_per_row};
    if (made_.dropping) {
      drop_about_a_third(setup);
    }
    auto problem = std::make_shared<const AttentionProblem>(std::move(setup), split, made_.results);
    cases_.push_back(
        {std::move(name), [problem](AttentionKernel& kernel) { return problem->is_right(kernel); }});
  }
  void add(std::string name, const AttentionCase& attention) {
    add(std::move(name), attention, whole(attention));
  }

  [[nodiscard]] std::vector<KernelCase> take() { return std::move(cases_); }

 private:
  Made made_;
  std::vector<KernelCase> cases_;
};

}  // namespace

bool is_attention(const KernelInstance& instance) {
  return instance.family.ends_with("forward") ? instance.family != "finish_forward"
                                              : instance.family.find("backward") != std::string::npos;
}

std::vector<KernelCase> attention_cases_of(const KernelInstance& instance, Extent extent) {
  const Made made = made_of(instance);
  const Dims part = smaller_than(made.tile_qk);
  // Tiles of the plain kernels have half the rows and fewer, and take long.
  const bool plain = made.type == DataType::fp32;
  CaseList cases{made};
  cases.add("one tile and a rest", {.doc_lengths = {plain ? 37 : 70},
                                    .causal = true,
                                    .heads_q = 1,
                                    .heads_kv = 1,
                                    .dim_qk = part.qk,
                                    .dim_v = part.v});
  cases.add("full and partial visits, shared KV head", {.doc_lengths = {plain ? 75 : 203},
                                                        .causal = true,
                                                        .heads_q = 2,
                                                        .heads_kv = 1,
                                                        .heads = {0, 0, 2},
                                                        .dim_qk = made.tile_qk,
                                                        .dim_v = made.tile_v});
  const AttentionCase blocks{
      .doc_lengths = plain ? std::vector<std::int64_t>{43, 0, 20} : std::vector<std::int64_t>{131, 0, 62},
      .causal = true,
      .heads_q = 2,
      .heads_kv = 2,
      .heads = {7, 1, 4},
      .dim_qk = made.tile_qk,
      .dim_v = made.tile_v};
  cases.add("blocks that merge, odd offsets", blocks, zigzag(blocks, 2), 3);
  AttentionCase gaps{.heads_q = 1, .heads_kv = 1, .dim_qk = part.qk, .dim_v = part.v};
  gaps.any_mask = two_intervals(plain ? 90 : 150);
  cases.add("two intervals of keys", gaps);
  AttentionCase padding{.heads_q = 1, .heads_kv = 1, .dim_qk = made.tile_qk, .dim_v = made.tile_v};
  padding.any_mask =
      MaskDefinition{.kind = MaskKind::padding, .doc_lengths = {13, 10}, .special_lengths = {9, 0}};
  cases.add("rows that see nothing", padding);
  cases.add("whole tiles", {.doc_lengths = {plain ? 64 : 128},
                            .heads_q = 1,
                            .heads_kv = 1,
                            .dim_qk = made.tile_qk,
                            .dim_v = made.tile_v,
                            .q_magnitude = 4.0F});
  const std::vector<Dims> dims = all_dims(made.tile_qk, made.tile_v);
  const std::size_t step = extent == Extent::all ? 1 : (dims.size() + 2) / 3;
  for (std::size_t i = 0; i < dims.size(); i += step) {
    cases.add("head dims " + std::to_string(dims[i].qk) + " and " + std::to_string(dims[i].v),
              {.doc_lengths = {tokens_with_a_rest(made.type, static_cast<std::int64_t>(i))},
               .causal = true,
               .heads_q = 1,
               .heads_kv = 1,
               .dim_qk = dims[i].qk,
               .dim_v = dims[i].v});
  }
  return cases.take();
}

}  // namespace hcp::mutation
