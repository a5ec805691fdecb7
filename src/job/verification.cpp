#include "src/job/verification.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/reference_attention.hpp"
#include "src/job/checked_rows.hpp"
#include "src/job/error_norms.hpp"
#include "src/job/head_sums.hpp"
#include "src/job/lockstep.hpp"

namespace hcp {
namespace {

using Doubles = std::vector<double>;

constexpr std::int64_t sampled_queries = 64;
constexpr std::int64_t sampled_keys = 16;

/// The blocks of a micro-batch with a query that sees one of `keys`.
PositionSet queries_seeing(const AttentionMask& mask, std::int64_t tokens, const PositionSet& keys) {
  std::vector<PositionRange> seeing = Lockstep::blocks_of({{0, tokens}});
  std::erase_if(seeing,
                [&](PositionRange block) { return set_intersection(mask.looked_at({block}), keys).empty(); });
  return normalised(std::move(seeing));
}

class LayerVerifier {
 public:
  LayerVerifier(const LayerResults& results, const InputSource& input, Coverage coverage,
                const Lockstep& group)
      : results_{results},
        input_{input},
        coverage_{coverage},
        group_{group},
        queries_{selected(results.rows, sampled_queries)},
        keys_{selected(results.kv_rows, sampled_keys)},
        seen_keys_{results.mask->looked_at({{0, results.tokens}})},
        tokens_of_queries_{queries_.set, group},
        tokens_seeing_keys_{queries_seeing(*results.mask, results.tokens, keys_.set), group},
        head_sums_{results},
        norms_{} {
    norms_.reserve(verified_tensors);
    for (std::size_t i = 0; i < verified_tensors; ++i) {
      norms_.emplace_back(chunks_of(static_cast<VerifiedTensor>(i)).size());
    }
  }

  VerificationResult verify() {
    const std::int64_t end = results_.kv_heads.first + results_.kv_heads.count;
    for (std::int64_t kv_head = results_.kv_heads.first; kv_head < end; ++kv_head) {
      verify_kv_head(kv_head);
    }
    if (input_.has_out()) {
      compare_with_stored_out();
    }
    VerificationResult result;
    for (std::size_t i = 0; i < verified_tensors; ++i) {
      result.errors[i] = norms_[i].largest(chunks_of(static_cast<VerifiedTensor>(i)));
    }
    if (coverage_ == Coverage::full) {
      result.errors[static_cast<std::size_t>(VerifiedTensor::max_logit)] = head_sums_.max_logit_error(group_);
      result.errors[static_cast<std::size_t>(VerifiedTensor::dsink)] = head_sums_.dsink_error(group_);
    }
    return result;
  }

 private:
  [[nodiscard]] static bool is_of_keys(VerifiedTensor tensor) {
    return tensor == VerifiedTensor::dk || tensor == VerifiedTensor::dv;
  }

  [[nodiscard]] const PositionSet& chunks_of(VerifiedTensor tensor) const {
    return is_of_keys(tensor) ? results_.kv_rows : results_.rows;
  }

  [[nodiscard]] SelectedRows selected(const PositionSet& rows, std::int64_t in_a_sample) const {
    return spread_rows(rows, coverage_ == Coverage::full ? count_of(rows) : in_a_sample);
  }

  /// Whether a query sees any key, or a key is seen by any query.
  [[nodiscard]] bool takes_part(VerifiedTensor tensor, std::int64_t position) const {
    if (is_of_keys(tensor)) {
      const auto range = std::ranges::upper_bound(seen_keys_, position, {}, &PositionRange::end);
      return range != seen_keys_.end() && range->begin <= position;
    }
    return std::ranges::any_of(results_.mask->visible(position),
                               [](PositionRange keys) { return !keys.empty(); });
  }

  /// Everything that uses one KV head: the query heads of its group.
  void verify_kv_head(std::int64_t kv_head) {
    const HeadSpan group = group_of(kv_head);
    std::vector<Doubles> out;
    std::vector<Doubles> lse;
    compute_reference(kv_head, group, out, lse);
    for (std::int64_t i = 0; i < group.count; ++i) {
      const auto head = static_cast<std::size_t>(i);
      compare(VerifiedTensor::out, results_.out, local_query_head(group.first + i), queries_, out[head], {});
      compare_lse(run_lse(group.first + i, tokens_of_queries_), lse[head]);
    }
    if (results_.pass == PassSelection::forward) {
      return;
    }
    const std::vector<Doubles> dout = load(InputTensor::dout, queries_.set, group, results_.dim_v);
    std::vector<Doubles> delta;
    for (std::size_t head = 0; head < out.size(); ++head) {
      delta.push_back(row_sums(out[head], dout[head]));
    }
    for (std::size_t head = 0; head < out.size(); ++head) {
      head_sums_.add_sink_gradient(local_query_head(group.first) + static_cast<std::int64_t>(head), lse[head],
                                   delta[head]);
    }
    check_query_gradient(kv_head, group, dout, lse, delta);
    check_key_gradient(kv_head, group, lse, delta);
  }

  [[nodiscard]] HeadSpan group_of(std::int64_t kv_head) const {
    const std::int64_t first = std::max(results_.query_heads.first, kv_head * results_.queries_per_kv);
    const std::int64_t end = std::min(results_.query_heads.first + results_.query_heads.count,
                                      (kv_head + 1) * results_.queries_per_kv);
    return {first, end - first};
  }

  [[nodiscard]] std::int64_t local_query_head(std::int64_t head) const {
    return head - results_.query_heads.first;
  }

  [[nodiscard]] ReferenceHead reference_head(std::int64_t head) const {
    return {.mask = results_.mask,
            .softmax_scale = results_.softmax_scale,
            .dim_qk = results_.dim_qk,
            .dim_v = results_.dim_v,
            .dropout = results_.dropout.drops() ? &results_.dropout : nullptr,
            .head = local_query_head(head)};
  }

  /// The heads `heads` of an input, one by one, as the run got them.
  [[nodiscard]] std::vector<Doubles> load(InputTensor tensor, const PositionSet& rows, HeadSpan heads,
                                          std::int64_t dim) const {
    TensorView view{nullptr, results_.dtype, count_of(rows), heads.count, dim};
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
    view.data = bytes.data();
    input_.fill(tensor, rows, heads.first, results_.layer, view);
    std::vector<Doubles> values;
    for (std::int64_t head = 0; head < heads.count; ++head) {
      values.push_back(head_in_fp64(view, head));
    }
    return values;
  }

  [[nodiscard]] Doubles row_sums(const Doubles& out, const Doubles& dout) const {
    Doubles sums;
    for (auto row = out.begin(), dout_row = dout.begin(); row != out.end();
         row += results_.dim_v, dout_row += results_.dim_v) {
      sums.push_back(std::inner_product(row, row + results_.dim_v, dout_row, 0.0));
    }
    return sums;
  }

  /// lse of the run, of one query head. Collective, as all that fetch.
  [[nodiscard]] Doubles run_lse(std::int64_t head, const AskedTokens& tokens) const {
    const HeadSpan held = results_.lse_heads;
    const bool holds = head >= held.first && head < held.first + held.count;
    return tokens.fetch(holds ? results_.lse_rows : PositionSet{}, [&](std::int64_t row) {
      return static_cast<double>(results_.lse[row * held.count + head - held.first]);
    });
  }

  /// rowsum(dout * out) with out of the run, of one query head.
  [[nodiscard]] Doubles run_delta(std::int64_t head, const AskedTokens& tokens) const {
    const PositionSet rows = set_intersection(results_.rows, tokens.asked());
    Doubles delta;
    delta.reserve(static_cast<std::size_t>(count_of(rows)));
    group_.for_each_block(rows, [&](PositionRange range) {
      const Doubles dout = load(InputTensor::dout, {range}, {head, 1}, results_.dim_v).front();
      const RowSpan span = rows_of({range}, results_.rows).front();
      const ConstTensorView out = results_.out.row_slice(span.first, span.count);
      const Doubles sums = row_sums(head_in_fp64(out, local_query_head(head)), dout);
      delta.insert(delta.end(), sums.begin(), sums.end());
    });
    return fetch(tokens, rows, delta);
  }

  /// @param values [rows]
  [[nodiscard]] static Doubles fetch(const AskedTokens& tokens, const PositionSet& rows,
                                     const Doubles& values) {
    return tokens.fetch(rows, [&](std::int64_t row) { return values[static_cast<std::size_t>(row)]; });
  }

  /// Calls work(keys) for all keys that the selected queries see, block by block.
  template <typename Work>
  void for_each_key_block(std::int64_t kv_head, const Work& work) const {
    group_.for_each_block(results_.mask->looked_at(queries_.set), [&](PositionRange range) {
      const Doubles k = load(InputTensor::k, {range}, {kv_head, 1}, results_.dim_qk).front();
      const Doubles v = load(InputTensor::v, {range}, {kv_head, 1}, results_.dim_v).front();
      const std::vector<std::int64_t> positions = single_positions(std::span{&range, 1});
      work(ReferenceKeys{positions, k.data(), v.data()});
    });
  }

  void compute_reference(std::int64_t kv_head, HeadSpan group, std::vector<Doubles>& out,
                         std::vector<Doubles>& lse) {
    const std::vector<Doubles> q = load(InputTensor::q, queries_.set, group, results_.dim_qk);
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
      const std::int64_t local = local_query_head(group.first) + static_cast<std::int64_t>(head);
      head_sums_.add_max_logits(local, max_logit[head]);
      if (!results_.sinks.empty()) {
        add_reference_sink(static_cast<double>(results_.sinks[static_cast<std::size_t>(local)]),
                           queries_.count(), results_.dim_v, {out[head].data(), lse[head].data()});
      }
    }
  }

  void check_query_gradient(std::int64_t kv_head, HeadSpan group, const std::vector<Doubles>& dout,
                            const std::vector<Doubles>& lse, const std::vector<Doubles>& delta) {
    const std::vector<Doubles> q = load(InputTensor::q, queries_.set, group, results_.dim_qk);
    std::vector<Doubles> dq(q.size(), Doubles(static_cast<std::size_t>(queries_.count() * results_.dim_qk)));
    std::vector<Doubles> magnitude = dq;
    for_each_key_block(kv_head, [&](const ReferenceKeys& keys) {
      for (std::size_t head = 0; head < q.size(); ++head) {
        fold_reference_gradient(reference_head(group.first + static_cast<std::int64_t>(head)),
                                {queries_.positions, q[head].data()},
                                {dout[head].data(), lse[head].data(), delta[head].data()}, keys,
                                {.dq = dq[head].data(), .dq_magnitude = magnitude[head].data()});
      }
    });
    for (std::size_t head = 0; head < q.size(); ++head) {
      compare(VerifiedTensor::dq, results_.dq,
              local_query_head(group.first + static_cast<std::int64_t>(head)), queries_, dq[head],
              magnitude[head]);
    }
  }

  /// @param reference_lse, reference_delta [heads of the group][queries], for full coverage
  void check_key_gradient(std::int64_t kv_head, HeadSpan group, const std::vector<Doubles>& reference_lse,
                          const std::vector<Doubles>& reference_delta) {
    const Doubles k = load(InputTensor::k, keys_.set, {kv_head, 1}, results_.dim_qk).front();
    const Doubles v = load(InputTensor::v, keys_.set, {kv_head, 1}, results_.dim_v).front();
    Doubles dk(k.size());
    Doubles dv(v.size());
    Doubles dk_magnitude = dk;
    Doubles dv_magnitude = dv;
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t head = group.first + i;
      const auto place = static_cast<std::size_t>(i);
      const bool full = coverage_ == Coverage::full;
      const Doubles lse = full ? fetch(tokens_seeing_keys_, results_.rows, reference_lse[place])
                               : run_lse(head, tokens_seeing_keys_);
      const Doubles delta = full ? fetch(tokens_seeing_keys_, results_.rows, reference_delta[place])
                                 : run_delta(head, tokens_seeing_keys_);
      std::int64_t row = 0;
      group_.for_each_block(tokens_seeing_keys_.needed(), [&](PositionRange range) {
        const Doubles q = load(InputTensor::q, {range}, {head, 1}, results_.dim_qk).front();
        const Doubles dout = load(InputTensor::dout, {range}, {head, 1}, results_.dim_v).front();
        const std::vector<std::int64_t> positions = single_positions(std::span{&range, 1});
        fold_reference_gradient(reference_head(head), {positions, q.data()},
                                {dout.data(), lse.data() + row, delta.data() + row},
                                {keys_.positions, k.data(), v.data()},
                                {.dk = dk.data(),
                                 .dk_magnitude = dk_magnitude.data(),
                                 .dv = dv.data(),
                                 .dv_magnitude = dv_magnitude.data()});
        row += range.size();
      });
    }
    const std::int64_t local_head = kv_head - results_.kv_heads.first;
    compare(VerifiedTensor::dk, results_.dk, local_head, keys_, dk, dk_magnitude);
    compare(VerifiedTensor::dv, results_.dv, local_head, keys_, dv, dv_magnitude);
  }

  ErrorNorms& norms_of(VerifiedTensor tensor) { return norms_[static_cast<std::size_t>(tensor)]; }

  /// @param reference [selected rows, dim]
  /// @param magnitude the same, or empty for 0
  void compare(VerifiedTensor tensor, ConstTensorView computed, std::int64_t local_head,
               const SelectedRows& selected, const Doubles& reference, const Doubles& magnitude) {
    for (std::int64_t i = 0; i < selected.count(); ++i) {
      const auto place = static_cast<std::size_t>(i);
      const Doubles row = head_in_fp64(computed.row_slice(selected.rows[place], 1), local_head);
      const bool exact_zero = !takes_part(tensor, selected.positions[place]);
      for (std::size_t channel = 0; channel < row.size(); ++channel) {
        const std::size_t element = place * row.size() + channel;
        const bool wrong = exact_zero && row[channel] != 0.0;
        norms_of(tensor).add(selected.chunks[place],
                             wrong ? std::numeric_limits<double>::infinity() : row[channel],
                             reference[element], magnitude.empty() ? 0.0 : magnitude[element]);
      }
    }
  }

  /// @param run_lse, reference [queries]
  void compare_lse(const Doubles& run_lse, const Doubles& reference) {
    for (std::size_t i = 0; i < reference.size(); ++i) {
      norms_of(VerifiedTensor::lse).add(queries_.chunks[i], run_lse[i], reference[i], 0.0);
    }
  }

  void compare_with_stored_out() {
    const std::int64_t heads = results_.query_heads.count;
    group_.for_each_block(results_.rows, [&](PositionRange range) {
      TensorView stored{nullptr, DataType::fp32, range.size(), heads, results_.dim_v};
      std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
      stored.data = bytes.data();
      input_.fill(InputTensor::out, {range}, results_.query_heads.first, results_.layer, stored);
      const SelectedRows rows = rows_within(results_.rows, range);
      for (std::int64_t head = 0; head < heads; ++head) {
        compare(VerifiedTensor::stored_out, results_.out, head, rows, head_in_fp64(stored, head), {});
      }
    });
  }

  const LayerResults& results_;
  const InputSource& input_;
  Coverage coverage_;
  const Lockstep& group_;
  SelectedRows queries_;
  SelectedRows keys_;
  PositionSet seen_keys_;
  AskedTokens tokens_of_queries_;
  AskedTokens tokens_seeing_keys_;
  HeadSums head_sums_;
  std::vector<ErrorNorms> norms_;
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
  // Forward: q k^T and P v. Query gradient: q k^T, dout v^T, dq and its magnitude. Key gradient: q k^T, dout
  // v^T, and dk and dv each with its magnitude.
  const double products_qk = passes == PassSelection::forward ? 1 : 1 + 3 + 3;
  const double products_v = passes == PassSelection::forward ? 1 : 1 + 1 + 3;
  return 2.0 * static_cast<double>(visible_pairs) * static_cast<double>(shape.query_heads) *
         (products_qk * static_cast<double>(shape.kv_channels) +
          products_v * static_cast<double>(shape.v_channels));
}

}  // namespace hcp
