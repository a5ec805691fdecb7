/// One attention problem under one scheme on the ranks of a test, and the answer that it must give.
///
/// The answer is dense fp64 arithmetic on the whole problem with a mask built from its definition, not from
/// intervals.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/buffer.hpp"
#include "kernels/position_ranges.hpp"
#include "src/attention/context_parallel_attention.hpp"
#include "src/comm/mpi_transport.hpp"
#include "src/plan/traffic.hpp"
#include "tests/kernels/dense_softmax.hpp"
#include "tests/kernels/mask_definition.hpp"
#include "topology/mpi_environment.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {

struct Problem {
  test::MaskDefinition mask;  ///< and the lengths of the documents
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 1;
  std::int64_t dim_qk = 8;
  std::int64_t dim_v = 8;
  DataType type = DataType::fp32;
  std::uint64_t seed = 1;
  bool positive_dv = false;  ///< dout >= 0, so that dv has one sign and rounding cannot cancel
  float largest_input = std::numeric_limits<float>::infinity();  ///< q, k, v and dout are cut off there
  std::vector<float> sinks = {};                                 ///< [heads_q]; empty: none
  std::optional<float> softmax_scale = {};                       ///< else 1 / sqrt(dim_qk)
  Dropout dropout = {};                                          ///< of the documents of the mask

  /// The same in the terms of the definition, of the query heads that use one KV head.
  [[nodiscard]] test::SoftmaxCase of_kv_head(std::int64_t kv_head) const;
  [[nodiscard]] std::string describe() const;
};

/// All tokens, all heads; inputs are exactly representable in the problem's type.
struct Answer {
  std::vector<float> q, k, v, dout;          // [queries or keys, heads, dim]
  std::vector<double> out, lse, dq, dk, dv;  // lse [queries, heads_q]
  std::vector<double> dsinks, max_logits;    // [heads_q]; dsinks is empty without sinks
  // The norm of the same sums in absolute values, where they may cancel: [queries or keys, heads], [heads_q].
  std::vector<double> lse_size, dq_size, dk_size, dv_size, dsinks_size, max_logits_size;
};

/// An answer without the answer: random q, k, v and dout.
[[nodiscard]] Answer random_input(const Problem& problem);

/// Collective: the KV heads are shared out over the ranks. Every rank gets the whole answer.
[[nodiscard]] Answer solve(const Problem& problem, const MpiCommunicator& comm);
[[nodiscard]] Answer solve(const Problem& problem);
/// @param input q, k, v and dout
[[nodiscard]] Answer solve(const Problem& problem, Answer input);

struct Setting {
  std::vector<Level> levels;  ///< sizes > 1
  Partition partition = Partition::zigzag;
  std::int64_t stripe_size = 1;  ///< striped: tokens
  DataType gradient_wire = DataType::fp32;
  int threads = 1;
  std::optional<std::uint64_t> delay_seed;  ///< random delays on every transfer
  MessageForm message_form = MessageForm::scattered;

  [[nodiscard]] std::string describe() const;
};

/// What one rank holds afterwards, and what its transports counted.
struct LocalResult {
  ExchangePlan plan{};
  PositionSet shard{};                            ///< queries of the rank
  PositionSet kv_shard{};                         ///< and its keys
  std::vector<std::vector<std::byte>> tensors{};  ///< out, dq, dk, dv, lse as they lie in memory
  std::vector<float> dsinks{};                    ///< [heads_q], this rank's share; empty without sinks
  std::vector<float> max_logits{};                ///< [heads_q], of what this rank computed
  TrafficLedger counted{};                        ///< by the transports
  std::array<std::int64_t, memory_categories> peaks{};
  std::int64_t peak_total = 0;
};

/// Collective. Forward and backward with the production plan, transports and attention.
/// @param before_forward called when all communicators exist
[[nodiscard]] LocalResult run_case(const Problem& problem, const Setting& setting, const Answer& answer,
                                   const MpiCommunicator& comm,
                                   const std::function<void()>& before_forward = {});

/// The same on threads of this process, all ranks' results.
[[nodiscard]] std::vector<LocalResult> run_case_on_threads(const Problem& problem, const Setting& setting,
                                                           const Answer& answer);

/// Largest error over some tensors and over the ranges of a rank's rows: ||x - ref|| / max(||ref||, ||m||).
/// Infinite where -inf or NaN do not match, or where nothing is summed and x is not zero.
struct CaseErrors {
  double worst = 0.0;
  std::string where{};
  double element = 0.0;  ///< largest |x - ref| / (1 + |ref|): below t, x is within atol = rtol = t

  void include(const CaseErrors& other);
};

/// Of this rank's out, lse, dq, dk, dv.
[[nodiscard]] CaseErrors errors_of(const Problem& problem, const Answer& answer, const LocalResult& result);

/// What every head has one number of, over the rows of all ranks.
struct HeadTerms {
  std::vector<double> dsinks, max_logits;
};
/// Collective.
[[nodiscard]] HeadTerms head_terms(const LocalResult& result, const MpiCommunicator& comm);
[[nodiscard]] HeadTerms head_terms(const std::vector<LocalResult>& results);
/// Of dsinks and max_logits over all heads.
[[nodiscard]] CaseErrors errors_of(const Answer& answer, const HeadTerms& terms);

/// The same of the whole tensors, all ranks together: out, dq, dk, dv, lse.
[[nodiscard]] std::array<double, 5> whole_errors(const Problem& problem, const Answer& answer,
                                                 const std::vector<LocalResult>& results);

/// Every single, every ordered pair over every factorisation and (for 8) the three triples of `ranks` ranks.
[[nodiscard]] std::vector<std::vector<Level>> schemes_on(int ranks);

}  // namespace hcp
