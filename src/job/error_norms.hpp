/// Relative L2 errors of a tensor, chunk by chunk of its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/job/verification.hpp"

namespace hcp {

/// The size that an error of a logit, or of a log of a sum of exponentials, is measured by: 1, as it is the
/// relative error of the exponential; 0 for -inf, which has none.
[[nodiscard]] double magnitude_of_exponent(double exponent);

class ErrorNorms {
 public:
  explicit ErrorNorms(std::size_t chunks) : chunks_(chunks) {}

  /// One element of chunk `chunk`.
  /// @param magnitude of the sum behind `reference`, in absolute values
  void add(std::size_t chunk, double value, double reference, double magnitude);

  /// The largest error of the chunks that have elements; empty if none has.
  /// @param rows the chunks
  [[nodiscard]] std::optional<TensorError> largest(const PositionSet& rows) const;

 private:
  struct Sums {
    double difference = 0;  ///< squares, as the others
    double reference = 0;
    double magnitude = 0;
    bool any = false;

    [[nodiscard]] double error() const;
  };
  std::vector<Sums> chunks_;
};

}  // namespace hcp
