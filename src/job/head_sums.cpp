#include "src/job/head_sums.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/reference_attention.hpp"
#include "src/job/error_norms.hpp"

namespace hcp {
namespace {

/// Element by element over the ranks of the group.
template <typename Combine>
std::vector<double> combined(const Lockstep& group, std::span<const double> mine, const Combine& combine) {
  const std::vector<double> all = group.gather(mine);
  std::vector<double> result(all.begin(), all.begin() + std::ssize(mine));
  for (std::size_t i = mine.size(); i < all.size(); ++i) {
    double& element = result[i % mine.size()];
    element = combine(element, all[i]);
  }
  return result;
}

std::vector<double> widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

std::optional<TensorError> error_of(std::span<const double> computed, std::span<const double> reference,
                                    std::span<const double> magnitude) {
  ErrorNorms norms{1};
  for (std::size_t head = 0; head < computed.size(); ++head) {
    norms.add(0, computed[head], reference[head], magnitude.empty() ? 0.0 : magnitude[head]);
  }
  return norms.largest({PositionRange{}});
}

}  // namespace

HeadSums::HeadSums(const LayerResults& results)
    : results_{results},
      max_logits_(static_cast<std::size_t>(results.query_heads.count),
                  -std::numeric_limits<double>::infinity()),
      dsinks_(max_logits_.size()),
      dsink_magnitudes_(max_logits_.size()) {}

void HeadSums::add_max_logits(std::int64_t head, std::span<const double> of_rows) {
  double& largest = max_logits_.at(static_cast<std::size_t>(head));
  for (const double logit : of_rows) {
    largest = std::max(largest, logit);
  }
}

void HeadSums::add_sink_gradient(std::int64_t head, std::span<const double> lse,
                                 std::span<const double> delta) {
  if (results_.dsinks.empty()) {
    return;
  }
  const auto place = static_cast<std::size_t>(head);
  const auto sink = static_cast<double>(results_.sinks[place]);
  std::vector<double> magnitudes(delta.begin(), delta.end());
  std::ranges::for_each(magnitudes, [](double& value) { value = std::abs(value); });
  dsinks_.at(place) += reference_sink_gradient(sink, lse, delta);
  dsink_magnitudes_.at(place) -= reference_sink_gradient(sink, lse, magnitudes);
}

std::optional<TensorError> HeadSums::max_logit_error(const Lockstep& group) const {
  if (results_.max_logits.empty()) {
    return std::nullopt;
  }
  const auto larger = [](double a, double b) { return std::max(a, b); };
  return error_of(combined(group, widened(results_.max_logits), larger), combined(group, max_logits_, larger),
                  {});
}

std::optional<TensorError> HeadSums::dsink_error(const Lockstep& group) const {
  if (results_.dsinks.empty() || results_.pass == PassSelection::forward) {
    return std::nullopt;
  }
  return error_of(combined(group, widened(results_.dsinks), std::plus{}),
                  combined(group, dsinks_, std::plus{}), combined(group, dsink_magnitudes_, std::plus{}));
}

}  // namespace hcp
