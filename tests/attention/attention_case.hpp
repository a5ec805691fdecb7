/// One attention problem under one scheme on the ranks of a test, and the answer that it must give.
///
/// The answer is dense fp64 arithmetic on the whole problem with a mask built from its definition, not from
/// intervals.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/buffer.hpp"
#include "kernels/position_ranges.hpp"
#include "src/attention/context_parallel_attention.hpp"
#include "src/comm/mpi_transport.hpp"
#include "src/plan/traffic.hpp"
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

  [[nodiscard]] float scale() const;
  [[nodiscard]] std::string describe() const;
};

/// All tokens, all heads; inputs are exactly representable in the problem's type.
struct Answer {
  std::vector<float> q, k, v, dout;               // [queries or keys, heads, dim]
  std::vector<double> out, lse, dq, dk, dv;       // lse [queries, heads_q]
  std::vector<double> dq_size, dk_size, dv_size;  // the same sums in absolute values
};

/// An answer without the answer: random q, k, v and dout.
[[nodiscard]] Answer random_input(const Problem& problem);

/// Collective: the heads are shared out over the ranks. Every rank gets the whole answer.
[[nodiscard]] Answer solve(const Problem& problem, const MpiCommunicator& comm);
[[nodiscard]] Answer solve(const Problem& problem);
/// @param input q, k, v and dout
[[nodiscard]] Answer solve(const Problem& problem, Answer input);

struct Setting {
  std::vector<Level> levels;  ///< sizes > 1
  Partition partition = Partition::zigzag;
  DataType gradient_wire = DataType::fp32;
  int threads = 1;
  std::optional<std::uint64_t> delay_seed;  ///< random delays on every transfer

  [[nodiscard]] std::string describe() const;
};

/// What one rank holds afterwards, and what its transports counted.
struct LocalResult {
  ExchangePlan plan{};
  PositionSet shard{};                            ///< queries of the rank
  PositionSet kv_shard{};                         ///< and its keys
  std::vector<std::vector<std::byte>> tensors{};  ///< out, dq, dk, dv, lse as they lie in memory
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

/// Largest error of this rank over out, lse, dq, dk, dv and over the ranges of its rows: ||x - ref|| /
/// max(||ref||, ||m||). Infinite where -inf or NaN do not match, or where nothing is summed and x is not
/// zero.
struct CaseErrors {
  double worst = 0.0;
  std::string where;
};
[[nodiscard]] CaseErrors errors_of(const Problem& problem, const Answer& answer, const LocalResult& result);

/// The same of the whole tensors, all ranks together: out, dq, dk, dv, lse.
[[nodiscard]] std::array<double, 5> whole_errors(const Problem& problem, const Answer& answer,
                                                 const std::vector<LocalResult>& results);

/// Every single, every ordered pair over every factorisation and (for 8) the three triples of `ranks` ranks.
[[nodiscard]] std::vector<std::vector<Level>> schemes_on(int ranks);

}  // namespace hcp
