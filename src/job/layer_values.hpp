/// Numbers of one layer in fp64, head by head: its inputs, computed again, and what the run made of them. lse
/// and delta of rows that other ranks hold are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "src/job/checked_rows.hpp"
#include "src/job/input.hpp"
#include "src/job/lockstep.hpp"
#include "src/job/verification.hpp"

namespace hcp {

/// rowsum(dout * out) of some rows.
struct Delta {
  std::vector<double> sums;
  /// The size of a sum, also where its terms happen to cancel: max(|sum|, the L2 norm of the terms).
  std::vector<double> magnitudes;

  /// @param out, dout  [rows, dim_v]
  void append(const std::vector<double>& out, const std::vector<double>& dout, std::int64_t dim_v);

  /// That of the tokens needed, where each rank has that of its `rows`. Collective.
  [[nodiscard]] Delta fetched(const AskedTokens& tokens, const PositionSet& rows) const;
};

class LayerValues {
 public:
  /// All of these must outlive this.
  LayerValues(const LayerResults& results, const InputSource& input, const Lockstep& group)
      : results_{results}, input_{input}, group_{group} {}

  /// The heads `heads` of an input, one by one, as the run got them: [rows, dim] each.
  [[nodiscard]] std::vector<std::vector<double>> input(InputTensor tensor, const PositionSet& rows,
                                                       HeadSpan heads, std::int64_t dim) const;

  /// Of the run, of one query head: [tokens needed]. Collective.
  [[nodiscard]] std::vector<double> lse(std::int64_t head, const AskedTokens& tokens) const;
  [[nodiscard]] Delta delta(std::int64_t head, const AskedTokens& tokens) const;

  /// delta of the run for rows that this rank holds. Collective too: ranks stay in step.
  [[nodiscard]] Delta own_delta(std::int64_t head, const PositionSet& rows) const;

  /// The query heads of the tensor-parallel rank that use a KV head.
  [[nodiscard]] HeadSpan query_heads_of(std::int64_t kv_head) const;
  /// Counted from the first of the tensor-parallel rank.
  [[nodiscard]] std::int64_t local_query_head(std::int64_t head) const {
    return head - results_.query_heads.first;
  }

 private:
  const LayerResults& results_;
  const InputSource& input_;
  const Lockstep& group_;
};

}  // namespace hcp
