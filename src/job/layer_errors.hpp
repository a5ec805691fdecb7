/// The errors of one layer's tensors on one rank, chunk by chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/job/checked_rows.hpp"
#include "src/job/error_norms.hpp"
#include "src/job/verification.hpp"

namespace hcp {

class LayerErrors {
 public:
  /// @param results  must outlive this
  explicit LayerErrors(const LayerResults& results);

  /// Adds one head of the selected rows. What sees or is seen by nothing has to be exactly 0.
  /// @param computed    all rows of the rank, `local_head` is one of its heads
  /// @param reference   [selected rows, dim]
  /// @param magnitude   the same, or empty for 0
  void compare(VerifiedTensor tensor, ConstTensorView computed, std::int64_t local_head,
               const SelectedRows& selected, const std::vector<double>& reference,
               const std::vector<double>& magnitude);

  /// @param computed, reference  [selected queries]
  void compare_lse(const SelectedRows& selected, const std::vector<double>& computed,
                   const std::vector<double>& reference);

  [[nodiscard]] std::optional<TensorError> largest(VerifiedTensor tensor) const;

 private:
  [[nodiscard]] const PositionSet& chunks_of(VerifiedTensor tensor) const;
  [[nodiscard]] bool takes_part(VerifiedTensor tensor, std::int64_t position) const;

  const LayerResults& results_;
  PositionSet seen_keys_;
  std::vector<ErrorNorms> norms_;  ///< [tensors]
};

}  // namespace hcp
