#include "topology/balanced_deal.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace hcp {

namespace {

struct Shard {
  std::int64_t room = 0;  // tokens
  double weight = 0.0;
};

double weight_per_token(const WeightedPiece& piece) {
  return static_cast<double>(piece.weight) / static_cast<double>(piece.tokens);
}

/// Indices of the pieces that hold tokens, the densest first.
std::vector<std::size_t> densest_first(std::span<const WeightedPiece> pieces) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t piece) { return pieces[piece].tokens == 0; });
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t piece) { return weight_per_token(pieces[piece]); });
  return order;
}

/// The lightest shard with room for all of `tokens`; if there is none, the roomiest.
std::size_t taker(const std::vector<Shard>& shards, std::int64_t tokens) {
  std::size_t best = 0;
  for (std::size_t shard = 1; shard < shards.size(); ++shard) {
    const bool fits = shards[shard].room >= tokens;
    const bool best_fits = shards[best].room >= tokens;
    if (fits && best_fits ? shards[shard].weight < shards[best].weight
                          : shards[shard].room > shards[best].room) {
      best = shard;
    }
  }
  return best;
}

}  // namespace

std::vector<DealtPart> deal_balanced(std::span<const WeightedPiece> pieces, int shards) {
  std::int64_t tokens = 0;
  for (const WeightedPiece& piece : pieces) {
    tokens += piece.tokens;
  }
  std::vector<Shard> filled(static_cast<std::size_t>(shards));
  for (std::size_t shard = 0; shard < filled.size(); ++shard) {
    filled[shard].room = tokens / shards + (static_cast<std::int64_t>(shard) < tokens % shards ? 1 : 0);
  }

  std::vector<std::vector<DealtPart>> parts_of(pieces.size());
  for (const std::size_t piece : densest_first(pieces)) {
    for (std::int64_t rest = pieces[piece].tokens; rest > 0;) {
      const std::size_t shard = taker(filled, rest);
      const std::int64_t taken = std::min(rest, filled[shard].room);
      filled[shard].room -= taken;
      filled[shard].weight += static_cast<double>(taken) * weight_per_token(pieces[piece]);
      parts_of[piece].push_back({static_cast<int>(shard), taken});
      rest -= taken;
    }
  }
  std::vector<DealtPart> dealt;
  for (const std::vector<DealtPart>& parts : parts_of) {
    dealt.insert(dealt.end(), parts.begin(), parts.end());
  }
  return dealt;
}

}  // namespace hcp
