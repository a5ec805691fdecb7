#include "src/job/error_norms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hcp {

double magnitude_of_exponent(double exponent) {
  return std::isfinite(exponent) ? 1.0 : 0.0;
}

void ErrorNorms::add(std::size_t chunk, double value, double reference, double magnitude) {
  Sums& sums = chunks_.at(chunk);
  sums.any = true;
  sums.magnitude += magnitude * magnitude;
  if (value == reference) {  // of two -inf the difference is none, though they cannot be subtracted
    sums.reference += std::isfinite(reference) ? reference * reference : 0.0;
    return;
  }
  const double difference = value - reference;
  sums.difference +=
      std::isfinite(difference) ? difference * difference : std::numeric_limits<double>::infinity();
  sums.reference += std::isfinite(reference) ? reference * reference : 0.0;
}

double ErrorNorms::Sums::error() const {
  return difference == 0 ? 0.0 : std::sqrt(difference / std::max(reference, magnitude));
}

std::optional<TensorError> ErrorNorms::largest(const PositionSet& rows) const {
  std::optional<TensorError> worst;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i].any && (!worst || chunks_[i].error() > worst->error)) {
      worst = TensorError{chunks_[i].error(), rows.at(i)};
    }
  }
  return worst;
}

}  // namespace hcp
