/// What a layer has one number of for each query head, to which all rows of all ranks contribute: the
/// gradients of sinks, and the largest scores. The reference's, and what the ranks of a group computed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/job/layer_values.hpp"
#include "src/job/lockstep.hpp"
#include "src/job/verification.hpp"

namespace hcp {

class HeadSums {
 public:
  /// @param results  must outlive this
  explicit HeadSums(const LayerResults& results);

  /// Whether the run computed gradients of sinks.
  [[nodiscard]] bool has_sink_gradients() const;

  /// The reference of this rank's rows in one query head, counted from the tensor-parallel rank's first.
  /// @param of_rows  the largest score of each row
  void add_max_logits(std::int64_t head, std::span<const double> of_rows);
  /// @param lse, delta  of the rows
  void add_sink_gradient(std::int64_t head, std::span<const double> lse, const Delta& delta);

  /// Collective, as the others; empty if the run computed none.
  [[nodiscard]] std::optional<TensorError> dsink_error(const Lockstep& group) const;
  [[nodiscard]] std::optional<TensorError> max_logit_error(const Lockstep& group) const;
  /// The same where max logits of only some rows were added: how far the run's number is outside of what
  /// these and its own lse allow. A score is at most the lse of its row.
  [[nodiscard]] std::optional<TensorError> max_logit_error_in_sample(const Lockstep& group) const;

 private:
  [[nodiscard]] std::vector<double> largest_lse() const;

  const LayerResults& results_;
  std::vector<double> max_logits_;  ///< [query heads], as the others
  std::vector<double> dsinks_;
  std::vector<double> dsink_magnitudes_;
};

}  // namespace hcp
