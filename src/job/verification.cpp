#include "src/job/verification.hpp"

#include <algorithm>
#include <limits>

#include "kernels/reference_attention.hpp"
#include "src/job/checked_rows.hpp"
#include "src/job/head_sums.hpp"
#include "src/job/layer_errors.hpp"
#include "src/job/layer_values.hpp"
#include "src/job/lockstep.hpp"

namespace hcp {
namespace {

using Doubles = std::vector<double>;

constexpr std::int64_t sampled_queries = 64;
constexpr std::int64_t sampled_keys = 16;

/// The blocks of a micro-batch with a query that sees one of `keys`.
PositionSet queries_seeing(const AttentionMask& mask, std::int64_t tokens, const PositionSet& keys) {
  PositionSet seeing;
  for (const PositionSet& block : Lockstep::blocks_of({{0, tokens}})) {
    if (!set_intersection(mask.looked_at(block), keys).empty()) {
      seeing = set_union(seeing, block);
    }
  }
  return seeing;
}

class LayerVerifier {
 public:
  LayerVerifier(const LayerResults& results, const InputSource& input, Coverage coverage,
                const Lockstep& group)
      : results_{results},
        input_{input},
        coverage_{coverage},
        group_{group},
        values_{results, input, group},
        queries_{selected(results.rows, sampled_queries)},
        keys_{selected(results.kv_rows, sampled_keys)},
        tokens_of_queries_{queries_.set, group},
        tokens_seeing_keys_{queries_seeing(*results.mask, results.tokens, keys_.set), group},
        errors_{results},
        head_sums_{results} {}

  VerificationResult verify() {
    const std::int64_t end = results_.kv_heads.first + results_.kv_heads.count;
    for (std::int64_t kv_head = results_.kv_heads.first; kv_head < end; ++kv_head) {
      verify_kv_head(kv_head);
    }
    if (input_.has_out()) {
      compare_with_stored_out();
    }
    if (coverage_ == Coverage::sample && head_sums_.has_sink_gradients()) {
      add_sink_gradients_of_run();
    }
    VerificationResult result;
    for (std::size_t i = 0; i < verified_tensors; ++i) {
      result.errors[i] = errors_.largest(static_cast<VerifiedTensor>(i));
    }
    result.errors[static_cast<std::size_t>(VerifiedTensor::dsink)] = head_sums_.dsink_error(group_);
    result.errors[static_cast<std::size_t>(VerifiedTensor::max_logit)] =
        coverage_ == Coverage::full ? head_sums_.max_logit_error(group_)
                                    : head_sums_.max_logit_error_in_sample(group_);
    return result;
  }

 private:
  [[nodiscard]] SelectedRows selected(const PositionSet& rows, std::int64_t in_a_sample) const {
    return spread_rows(rows, coverage_ == Coverage::full ? count_of(rows) : in_a_sample);
  }

  /// Everything that uses one KV head: the query heads of its group.
  void verify_kv_head(std::int64_t kv_head) {
    const HeadSpan group = values_.query_heads_of(kv_head);
    std::vector<Doubles> out;
    std::vector<Doubles> lse;
    compute_reference(kv_head, group, out, lse);
    for (std::int64_t i = 0; i < group.count; ++i) {
      const auto head = static_cast<std::size_t>(i);
      errors_.compare(VerifiedTensor::out, results_.out, values_.local_query_head(group.first + i), queries_,
                      out[head], {});
      errors_.compare_lse(queries_, values_.lse(group.first + i, tokens_of_queries_), lse[head]);
    }
    if (results_.pass == PassSelection::forward) {
      return;
    }
    const std::vector<Doubles> dout = values_.input(InputTensor::dout, queries_.set, group, results_.dim_v);
    std::vector<Delta> delta(out.size());
    for (std::size_t head = 0; head < out.size(); ++head) {
      delta[head].append(out[head], dout[head], results_.dim_v);
      if (coverage_ == Coverage::full && head_sums_.has_sink_gradients()) {
        head_sums_.add_sink_gradient(values_.local_query_head(group.first) + static_cast<std::int64_t>(head),
                                     lse[head], delta[head]);
      }
    }
    check_query_gradient(kv_head, group, dout, lse, delta);
    check_key_gradient(kv_head, group, lse, delta);
  }

  [[nodiscard]] ReferenceHead reference_head(std::int64_t head) const {
    return {.mask = results_.mask,
            .softmax_scale = results_.softmax_scale,
            .dim_qk = results_.dim_qk,
            .dim_v = results_.dim_v,
            .dropout = results_.dropout.drops() ? &results_.dropout : nullptr,
            .head = values_.local_query_head(head)};
  }

  /// Calls work(keys) for all keys that the selected queries see, block by block.
  template <typename Work>
  void for_each_key_block(std::int64_t kv_head, const Work& work) const {
    group_.for_each_block(results_.mask->looked_at(queries_.set), [&](const PositionSet& block) {
      const Doubles k = values_.input(InputTensor::k, block, {kv_head, 1}, results_.dim_qk).front();
      const Doubles v = values_.input(InputTensor::v, block, {kv_head, 1}, results_.dim_v).front();
      const std::vector<std::int64_t> positions = single_positions(block);
      work(ReferenceKeys{positions, k.data(), v.data()});
    });
  }

  void compute_reference(std::int64_t kv_head, HeadSpan group, std::vector<Doubles>& out,
                         std::vector<Doubles>& lse) {
    const std::vector<Doubles> q = values_.input(InputTensor::q, queries_.set, group, results_.dim_qk);
    out.assign(q.size(), Doubles(static_cast<std::size_t>(queries_.count() * results_.dim_v)));
    lse.assign(q.size(),
               Doubles(static_cast<std::size_t>(queries_.count()), -std::numeric_limits<double>::infinity()));
    std::vector<Doubles> max_logit = lse;
    for_each_key_block(kv_head, [&](const ReferenceKeys& keys) {
      for (std::size_t head = 0; head < q.size(); ++head) {
        fold_reference_attention(reference_head(group.first + static_cast<std::int64_t>(head)),
                                 {queries_.positions, q[head].data()}, keys,
                                 {out[head].data(), lse[head].data(), max_logit[head].data()});
      }
    });
    for (std::size_t head = 0; head < q.size(); ++head) {
      const std::int64_t local = values_.local_query_head(group.first) + static_cast<std::int64_t>(head);
      head_sums_.add_max_logits(local, max_logit[head]);
      if (!results_.sinks.empty()) {
        add_reference_sink(static_cast<double>(results_.sinks[static_cast<std::size_t>(local)]),
                           queries_.count(), results_.dim_v, {out[head].data(), lse[head].data()});
      }
    }
  }

  void check_query_gradient(std::int64_t kv_head, HeadSpan group, const std::vector<Doubles>& dout,
                            const std::vector<Doubles>& lse, const std::vector<Delta>& delta) {
    const std::vector<Doubles> q = values_.input(InputTensor::q, queries_.set, group, results_.dim_qk);
    std::vector<Doubles> dq(q.size(), Doubles(static_cast<std::size_t>(queries_.count() * results_.dim_qk)));
    std::vector<Doubles> magnitude = dq;
    for_each_key_block(kv_head, [&](const ReferenceKeys& keys) {
      for (std::size_t head = 0; head < q.size(); ++head) {
        fold_reference_gradient(
            reference_head(group.first + static_cast<std::int64_t>(head)),
            {queries_.positions, q[head].data()},
            {dout[head].data(), lse[head].data(), delta[head].sums.data(), delta[head].magnitudes.data()},
            keys, {.dq = dq[head].data(), .dq_magnitude = magnitude[head].data()});
      }
    });
    for (std::size_t head = 0; head < q.size(); ++head) {
      errors_.compare(VerifiedTensor::dq, results_.dq,
                      values_.local_query_head(group.first + static_cast<std::int64_t>(head)), queries_,
                      dq[head], magnitude[head]);
    }
  }

  /// @param reference_lse, reference_delta [heads of the group][queries], for full coverage
  void check_key_gradient(std::int64_t kv_head, HeadSpan group, const std::vector<Doubles>& reference_lse,
                          const std::vector<Delta>& reference_delta) {
    const Doubles k = values_.input(InputTensor::k, keys_.set, {kv_head, 1}, results_.dim_qk).front();
    const Doubles v = values_.input(InputTensor::v, keys_.set, {kv_head, 1}, results_.dim_v).front();
    Doubles dk(k.size());
    Doubles dv(v.size());
    Doubles dk_magnitude = dk;
    Doubles dv_magnitude = dv;
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t head = group.first + i;
      const auto place = static_cast<std::size_t>(i);
      const bool full = coverage_ == Coverage::full;
      const Doubles lse = full ? tokens_seeing_keys_.fetch(results_.rows, reference_lse[place])
                               : values_.lse(head, tokens_seeing_keys_);
      const Delta delta = full ? reference_delta[place].fetched(tokens_seeing_keys_, results_.rows)
                               : values_.delta(head, tokens_seeing_keys_);
      std::int64_t row = 0;
      group_.for_each_block(tokens_seeing_keys_.needed(), [&](const PositionSet& block) {
        const Doubles q = values_.input(InputTensor::q, block, {head, 1}, results_.dim_qk).front();
        const Doubles dout = values_.input(InputTensor::dout, block, {head, 1}, results_.dim_v).front();
        const std::vector<std::int64_t> positions = single_positions(block);
        fold_reference_gradient(
            reference_head(head), {positions, q.data()},
            {dout.data(), lse.data() + row, delta.sums.data() + row, delta.magnitudes.data() + row},
            {keys_.positions, k.data(), v.data()},
            {.dk = dk.data(),
             .dk_magnitude = dk_magnitude.data(),
             .dv = dv.data(),
             .dv_magnitude = dv_magnitude.data()});
        row += std::ssize(positions);
      });
    }
    const std::int64_t local_head = kv_head - results_.kv_heads.first;
    errors_.compare(VerifiedTensor::dk, results_.dk, local_head, keys_, dk, dk_magnitude);
    errors_.compare(VerifiedTensor::dv, results_.dv, local_head, keys_, dv, dv_magnitude);
  }

  /// Of all rows of this rank, from lse and delta of the run.
  void add_sink_gradients_of_run() {
    const AskedTokens tokens{results_.rows, group_};
    for (std::int64_t i = 0; i < results_.query_heads.count; ++i) {
      const std::int64_t head = results_.query_heads.first + i;
      const Doubles lse = values_.lse(head, tokens);
      head_sums_.add_sink_gradient(i, lse, values_.own_delta(head, results_.rows));
    }
  }

  void compare_with_stored_out() {
    const std::int64_t heads = results_.query_heads.count;
    group_.for_each_block(results_.rows, [&](const PositionSet& block) {
      TensorView stored{nullptr, DataType::fp32, count_of(block), heads, results_.dim_v};
      std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
      stored.data = bytes.data();
      input_.fill(InputTensor::out, block, results_.query_heads.first, results_.layer, stored);
      const SelectedRows rows = rows_within(results_.rows, block);
      for (std::int64_t head = 0; head < heads; ++head) {
        errors_.compare(VerifiedTensor::stored_out, results_.out, head, rows, head_in_fp64(stored, head), {});
      }
    });
  }

  const LayerResults& results_;
  const InputSource& input_;
  Coverage coverage_;
  const Lockstep& group_;
  LayerValues values_;
  SelectedRows queries_;
  SelectedRows keys_;
  AskedTokens tokens_of_queries_;
  AskedTokens tokens_seeing_keys_;
  LayerErrors errors_;
  HeadSums head_sums_;
};

}  // namespace

std::string_view name_of(VerifiedTensor tensor) {
  constexpr std::array<std::string_view, verified_tensors> names{"out", "lse",        "dq",    "dk",
                                                                 "dv",  "stored out", "dsink", "max logit"};
  return names.at(static_cast<std::size_t>(tensor));
}

double VerificationResult::largest() const {
  double largest = 0;
  for (const auto& each : errors) {
    largest = each ? std::max(largest, each->error) : largest;
  }
  return largest;
}

std::string VerificationResult::worst() const {
  for (std::size_t i = 0; i < verified_tensors; ++i) {
    if (errors[i] && errors[i]->error == largest()) {
      const std::string name{name_of(static_cast<VerifiedTensor>(i))};
      if (errors[i]->chunk.empty()) {
        return name;
      }
      return name + " of tokens [" + std::to_string(errors[i]->chunk.begin) + ", " +
             std::to_string(errors[i]->chunk.end) + ")";
    }
  }
  return {};
}

VerificationResult verify_layer(const LayerResults& results, const InputSource& input, Coverage coverage,
                                const GatherDoubles& gather, const Progress& progress) {
  const Lockstep group{gather, progress};
  return LayerVerifier{results, input, coverage, group}.verify();
}

double full_verification_flop(std::int64_t visible_pairs, const ProblemShape& shape, PassSelection passes) {
  // Forward: q k^T and P v. Query gradient: q k^T, dout v^T and that of the squares, dq and its magnitude.
  // Key gradient: q k^T, dout v^T and that of the squares, and dk and dv each with its magnitude.
  const double products_qk = passes == PassSelection::forward ? 1 : 1 + 3 + 3;
  const double products_v = passes == PassSelection::forward ? 1 : 1 + 2 + 4;
  return 2.0 * static_cast<double>(visible_pairs) * static_cast<double>(shape.query_heads) *
         (products_qk * static_cast<double>(shape.kv_channels) +
          products_v * static_cast<double>(shape.v_channels));
}

}  // namespace hcp
