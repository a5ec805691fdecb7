#include "src/job/layer_errors.hpp"

#include <algorithm>
#include <limits>

#include "kernels/reference_attention.hpp"

namespace hcp {
namespace {

bool is_of_keys(VerifiedTensor tensor) {
  return tensor == VerifiedTensor::dk || tensor == VerifiedTensor::dv;
}

}  // namespace

LayerErrors::LayerErrors(const LayerResults& results)
    : results_{results}, seen_keys_{results.mask->looked_at({{0, results.tokens}})} {
  for (std::size_t i = 0; i < verified_tensors; ++i) {
    norms_.emplace_back(chunks_of(static_cast<VerifiedTensor>(i)).size());
  }
}

const PositionSet& LayerErrors::chunks_of(VerifiedTensor tensor) const {
  return is_of_keys(tensor) ? results_.kv_rows : results_.rows;
}

/// Whether a query sees any key, or a key is seen by any query.
bool LayerErrors::takes_part(VerifiedTensor tensor, std::int64_t position) const {
  if (is_of_keys(tensor)) {
    const auto range = std::ranges::upper_bound(seen_keys_, position, {}, &PositionRange::end);
    return range != seen_keys_.end() && range->begin <= position;
  }
  return std::ranges::any_of(results_.mask->visible(position),
                             [](PositionRange keys) { return !keys.empty(); });
}

void LayerErrors::compare(VerifiedTensor tensor, ConstTensorView computed, std::int64_t local_head,
                          const SelectedRows& selected, const std::vector<double>& reference,
                          const std::vector<double>& magnitude) {
  ErrorNorms& norms = norms_[static_cast<std::size_t>(tensor)];
  for (std::int64_t i = 0; i < selected.count(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    const std::vector<double> row = head_in_fp64(computed.row_slice(selected.rows[place], 1), local_head);
    const bool exact_zero = !takes_part(tensor, selected.positions[place]);
    for (std::size_t channel = 0; channel < row.size(); ++channel) {
      const std::size_t element = place * row.size() + channel;
      const bool wrong = exact_zero && row[channel] != 0.0;
      norms.add(selected.chunks[place], wrong ? std::numeric_limits<double>::infinity() : row[channel],
                reference[element], magnitude.empty() ? 0.0 : magnitude[element]);
    }
  }
}

void LayerErrors::compare_lse(const SelectedRows& selected, const std::vector<double>& computed,
                              const std::vector<double>& reference) {
  ErrorNorms& norms = norms_[static_cast<std::size_t>(VerifiedTensor::lse)];
  for (std::size_t i = 0; i < reference.size(); ++i) {
    norms.add(selected.chunks[i], computed[i], reference[i], magnitude_of_exponent(reference[i]));
  }
}

std::optional<TensorError> LayerErrors::largest(VerifiedTensor tensor) const {
  return norms_[static_cast<std::size_t>(tensor)].largest(chunks_of(tensor));
}

}  // namespace hcp
