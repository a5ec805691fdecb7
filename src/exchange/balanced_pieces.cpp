#include "src/exchange/balanced_pieces.hpp"

#include <algorithm>
#include <numeric>

namespace hcp {
namespace {

constexpr std::int64_t pieces_per_shard = 8;
constexpr std::int64_t heavy_pieces_per_shard = 16;

class Cutter {
 public:
  Cutter(const AttentionMask& mask, std::int64_t tokens, int shards)
      : mask_{mask},
        most_tokens_{std::max(tokens / (pieces_per_shard * shards), std::int64_t{1})},
        area_{area(PositionRange{0, tokens})},
        shards_{shards} {}

  void cut_document(PositionRange document) {
    if (document.size() <= most_tokens_ && area(document) <= area_ / (pieces_per_shard * shards_)) {
      pieces_.push_back({document.size(), area(document)});
      return;
    }
    const std::int64_t count = (document.size() - 1) / most_tokens_ + 1;
    std::int64_t begin = document.begin;
    for (std::int64_t piece = 0; piece < count; ++piece) {
      const std::int64_t size = document.size() / count + (piece < document.size() % count ? 1 : 0);
      halve_while_heavy({begin, begin + size});
      begin += size;
    }
  }

  [[nodiscard]] std::vector<WeightedPiece> pieces() && { return std::move(pieces_); }

 private:
  void halve_while_heavy(PositionRange piece) {
    const std::int64_t weight = area(piece);
    if (piece.size() < 2 || weight <= area_ / (heavy_pieces_per_shard * shards_)) {
      pieces_.push_back({piece.size(), weight});
      return;
    }
    const std::int64_t middle = piece.begin + piece.size() / 2;
    halve_while_heavy({piece.begin, middle});
    halve_while_heavy({middle, piece.end});
  }

  [[nodiscard]] std::int64_t area(PositionRange queries) const {
    return queries.empty() ? 0 : mask_.area(PositionSet{queries});
  }

  const AttentionMask& mask_;
  std::int64_t most_tokens_;
  std::int64_t area_;  // of all tokens
  std::int64_t shards_;
  std::vector<WeightedPiece> pieces_;
};

}  // namespace

std::vector<WeightedPiece> balanced_pieces(const AttentionMask& mask,
                                           std::span<const std::int64_t> document_lengths, int shards) {
  const std::int64_t tokens =
      std::accumulate(document_lengths.begin(), document_lengths.end(), std::int64_t{0});
  Cutter cutter{mask, tokens, shards};
  std::int64_t begin = 0;
  for (const std::int64_t length : document_lengths) {
    cutter.cut_document({begin, begin + length});
    begin += length;
  }
  return std::move(cutter).pieces();
}

}  // namespace hcp
