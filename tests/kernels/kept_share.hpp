/// Dropout of attention probabilities in the words of its definition, for tests: one element at a time, by
/// document and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/dropout.hpp"
#include "tests/kernels/mask_definition.hpp"

namespace hcp::test {

class KeptShare {
 public:
  /// @param dropout  its offsets are not looked at: the documents are those of `mask`
  KeptShare(const Dropout& dropout, const MaskDefinition& mask);

  /// For each of `keys`: 0 if the element is dropped, else 1 / (1 - probability).
  /// @param head  counted as Dropout::first_head counts
  [[nodiscard]] std::vector<double> of(std::size_t query, const std::vector<std::size_t>& keys,
                                       std::int64_t head) const;

 private:
  /// Document of a token, and its place there.
  struct Place {
    std::size_t document = 0;
    std::uint32_t place = 0;
  };
  static std::vector<Place> places_of(const std::vector<std::int64_t>& doc_lengths);

  Dropout dropout_;
  std::vector<Place> queries_;
  std::vector<Place> keys_;
};

}  // namespace hcp::test
