#include "tests/kernels/kept_share.hpp"

#include <array>
#include <cmath>
#include <optional>

namespace hcp::test {

KeptShare::KeptShare(const Dropout& dropout, const MaskDefinition& mask)
    : dropout_{dropout}, queries_{places_of(mask.doc_lengths)}, keys_{places_of(mask.key_lengths())} {}

std::vector<KeptShare::Place> KeptShare::places_of(const std::vector<std::int64_t>& doc_lengths) {
  std::vector<Place> places;
  for (std::size_t document = 0; document < doc_lengths.size(); ++document) {
    for (std::int64_t place = 0; place < doc_lengths[document]; ++place) {
      places.push_back({document, static_cast<std::uint32_t>(place)});
    }
  }
  return places;
}

std::vector<double> KeptShare::of(std::size_t query, const std::vector<std::size_t>& keys,
                                  std::int64_t head) const {
  std::vector<double> shares(keys.size(), 1.0);
  if (dropout_.probability == 0.0) {
    return shares;
  }
  const auto [document, place] = queries_[query];
  const auto documents_per_row = static_cast<std::size_t>(dropout_.documents_per_row);
  const auto words = philox(
      {static_cast<std::uint32_t>(dropout_.layer), static_cast<std::uint32_t>(document / documents_per_row),
       static_cast<std::uint32_t>(document % documents_per_row),
       static_cast<std::uint32_t>(dropout_.first_head + head)},
      {static_cast<std::uint32_t>(dropout_.seed), static_cast<std::uint32_t>(dropout_.seed >> 32)});
  const double probability = std::round(dropout_.probability * 65536.0) / 65536.0;
  std::optional<std::uint32_t> drawn;  // the block whose numbers are known
  std::array<std::uint16_t, dropout_block_keys> numbers{};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t key = keys_[keys[i]].place;
    if (drawn != key / 64) {
      drawn = key / 64;
      numbers = dropout_numbers({{words[0], words[1], words[2], words[3]}}, place, *drawn);
    }
    shares[i] = numbers.at(key % 64) < probability * 65536.0 ? 0.0 : 1.0 / (1.0 - probability);
  }
  return shares;
}

}  // namespace hcp::test
