#include "src/job/layer_values.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/reference_attention.hpp"

namespace hcp {

using Doubles = std::vector<double>;

void Delta::append(const Doubles& out, const Doubles& dout, std::int64_t dim_v) {
  for (auto row = out.begin(), dout_row = dout.begin(); row != out.end(); row += dim_v, dout_row += dim_v) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < dim_v; ++i) {
      const double term = row[i] * dout_row[i];
      sum += term;
      squares += term * term;
    }
    sums.push_back(sum);
    magnitudes.push_back(std::max(std::abs(sum), std::sqrt(squares)));
  }
}

Delta Delta::fetched(const AskedTokens& tokens, const PositionSet& rows) const {
  return {tokens.fetch(rows, sums), tokens.fetch(rows, magnitudes)};
}

std::vector<Doubles> LayerValues::input(InputTensor tensor, const PositionSet& rows, HeadSpan heads,
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

Doubles LayerValues::lse(std::int64_t head, const AskedTokens& tokens) const {
  const HeadSpan held = results_.lse_heads;
  const bool holds = head >= held.first && head < held.first + held.count;
  return tokens.fetch(holds ? results_.lse_rows : PositionSet{}, [&](std::int64_t row) {
    return static_cast<double>(results_.lse[row * held.count + head - held.first]);
  });
}

Delta LayerValues::delta(std::int64_t head, const AskedTokens& tokens) const {
  const PositionSet rows = set_intersection(results_.rows, tokens.asked());
  return own_delta(head, rows).fetched(tokens, rows);
}

Delta LayerValues::own_delta(std::int64_t head, const PositionSet& rows) const {
  Delta delta;
  group_.for_each_block(rows, [&](const PositionSet& block) {
    const Doubles dout = input(InputTensor::dout, block, {head, 1}, results_.dim_v).front();
    Doubles out;
    for (const RowSpan span : rows_of(block, results_.rows)) {
      const ConstTensorView rows_out = results_.out.row_slice(span.first, span.count);
      std::ranges::copy(head_in_fp64(rows_out, local_query_head(head)), std::back_inserter(out));
    }
    delta.append(out, dout, results_.dim_v);
  });
  return delta;
}

HeadSpan LayerValues::query_heads_of(std::int64_t kv_head) const {
  const std::int64_t first = std::max(results_.query_heads.first, kv_head * results_.queries_per_kv);
  const std::int64_t end = std::min(results_.query_heads.first + results_.query_heads.count,
                                    (kv_head + 1) * results_.queries_per_kv);
  return {first, end - first};
}

}  // namespace hcp
