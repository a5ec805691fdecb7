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

double larger(double a, double b) {
  return std::max(a, b);
}

std::optional<TensorError> error_of_logits(std::span<const double> computed,
                                           std::span<const double> reference) {
  ErrorNorms norms{1};
  for (std::size_t head = 0; head < computed.size(); ++head) {
    norms.add(0, computed[head], reference[head], magnitude_of_exponent(reference[head]));
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

bool HeadSums::has_sink_gradients() const {
  return !results_.dsinks.empty() && results_.pass != PassSelection::forward;
}

void HeadSums::add_max_logits(std::int64_t head, std::span<const double> of_rows) {
  double& largest = max_logits_.at(static_cast<std::size_t>(head));
  for (const double logit : of_rows) {
    largest = std::max(largest, logit);
  }
}

void HeadSums::add_sink_gradient(std::int64_t head, std::span<const double> lse, const Delta& delta) {
  const auto place = static_cast<std::size_t>(head);
  const auto sink = static_cast<double>(results_.sinks[place]);
  dsinks_.at(place) += reference_sink_gradient(sink, lse, delta.sums);
  dsink_magnitudes_.at(place) -= reference_sink_gradient(sink, lse, delta.magnitudes);
}

std::optional<TensorError> HeadSums::dsink_error(const Lockstep& group) const {
  if (!has_sink_gradients()) {
    return std::nullopt;
  }
  const std::vector<double> computed = combined(group, widened(results_.dsinks), std::plus{});
  const std::vector<double> reference = combined(group, dsinks_, std::plus{});
  const std::vector<double> magnitudes = combined(group, dsink_magnitudes_, std::plus{});
  ErrorNorms norms{1};
  for (std::size_t head = 0; head < computed.size(); ++head) {
    norms.add(0, computed[head], reference[head], magnitudes[head]);
  }
  return norms.largest({PositionRange{}});
}

std::optional<TensorError> HeadSums::max_logit_error(const Lockstep& group) const {
  if (results_.max_logits.empty()) {
    return std::nullopt;
  }
  return error_of_logits(combined(group, widened(results_.max_logits), larger),
                         combined(group, max_logits_, larger));
}

std::optional<TensorError> HeadSums::max_logit_error_in_sample(const Lockstep& group) const {
  if (results_.max_logits.empty()) {
    return std::nullopt;
  }
  const std::vector<double> computed = combined(group, widened(results_.max_logits), larger);
  const std::vector<double> lowest = combined(group, max_logits_, larger);
  const std::vector<double> highest = combined(group, largest_lse(), larger);
  std::vector<double> nearest;
  for (std::size_t head = 0; head < computed.size(); ++head) {
    // In this order NaN is near to nothing.
    nearest.push_back(std::min(std::max(lowest[head], computed[head]), highest[head]));
  }
  return error_of_logits(computed, nearest);
}

/// Of the rows and query heads of which this rank holds lse.
std::vector<double> HeadSums::largest_lse() const {
  std::vector<double> largest(max_logits_.size(), -std::numeric_limits<double>::infinity());
  const HeadSpan held = results_.lse_heads;
  for (std::int64_t i = 0; i < count_of(results_.lse_rows) * held.count; ++i) {
    double& of_head =
        largest.at(static_cast<std::size_t>(held.first + i % held.count - results_.query_heads.first));
    of_head = std::max(of_head, static_cast<double>(results_.lse[i]));
  }
  return largest;
}

}  // namespace hcp
