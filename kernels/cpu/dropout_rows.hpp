/// Dropout of one row of scores: the numbers of kernels/dropout.hpp, vector by vector.
#pragma once

#include <cstdint>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Keys of the generator's rounds, of one stream. They wait in memory: from there they spread over a vector
/// for free.
struct RoundKeys {
  std::uint64_t keys[philox_rounds][2];  ///< their low halves count

  explicit RoundKeys(const DropoutStream& stream) {
#pragma GCC unroll 10
    for (std::uint64_t round = 0; round < philox_rounds; ++round) {
      keys[round][0] = stream.words[0] + round * philox_key_steps[0];
      keys[round][1] = stream.words[1] + round * philox_key_steps[1];
    }
  }
};

/// As dropout_numbers. The generator works in 64-bit lanes, of which only the low halves count until the end.
template <typename Isa>
inline void draw_block(const DropoutStream& stream, const RoundKeys& round_keys, std::uint32_t query,
                       std::uint32_t block, std::uint16_t* numbers) {
  using Lanes = WideWords<Isa>;
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                "stores words as numbers in the order of the keys");
  constexpr int lanes = Isa::lanes / 2;
  constexpr std::uint64_t low_half = 0xFFFF'FFFF;
#pragma GCC unroll 4
  for (int first = 0; first < dropout_block_calls; first += lanes) {
    Lanes words[4] = {Lanes{}, Lanes{} + query, Lanes{} + stream.words[2], Lanes{} + stream.words[3]};
#pragma GCC unroll 8
    for (int lane = 0; lane < lanes; ++lane) {
      words[0][lane] = static_cast<std::uint64_t>(first + lane);
    }
    words[0] += static_cast<std::uint64_t>(block) * dropout_block_calls;
#pragma GCC unroll 10
    for (int round = 0; round < philox_rounds; ++round) {
      const Lanes product0 = Isa::product_of_low_halves(Lanes{} + philox_multipliers[0], words[0]);
      const Lanes product1 = Isa::product_of_low_halves(Lanes{} + philox_multipliers[1], words[2]);
      words[0] = (product1 >> 32) ^ words[1] ^ round_keys.keys[round][0];
      words[1] = product1;
      words[2] = (product0 >> 32) ^ words[3] ^ round_keys.keys[round][1];
      words[3] = product0;
    }
    store(numbers + 4 * first, (words[0] & low_half) | (words[1] << 32));
    store(numbers + dropout_block_keys / 2 + 4 * first, (words[2] & low_half) | (words[3] << 32));
  }
}

/// The numbers of one query row. What is at the border of a stretch or of what the row sees comes through a
/// block of its own, which serves the next stretch, too, if that is near.
template <typename Isa>
class RowNumbers {
 public:
  RowNumbers(const RowsDropout& dropout, int row)
      : dropout_{dropout},
        query_{dropout.queries[row]},
        stream_{dropout.streams[dropout.queries[row].document]},
        round_keys_{stream_} {}

  /// Sets numbers[key - from] of those keys [from, to) of the block that the row sees.
  void draw(const RowKeys& seen, int from, int to, std::uint16_t* numbers) {
    for (int i = 0; i < 2; ++i) {
      const int begin = larger(seen.begin[i], from);
      const int end = smaller(seen.end[i], to);
      if (begin < end) {
        draw_keys(begin, end, numbers + (begin - from));
      }
    }
  }

 private:
  void draw_keys(int begin, int end, std::uint16_t* numbers) {
    for (int stretch = stretch_of(begin); begin < end; ++stretch) {
      const bool last = stretch + 1 == dropout_.stretch_count;
      const int stretch_end = last ? end : smaller(end, dropout_.stretches[stretch + 1].begin);
      const KeyStretch& keys = dropout_.stretches[stretch];
      const std::uint32_t place =
          keys.position + static_cast<std::uint32_t>(begin - keys.begin) - query_.first_key;
      draw_places(place, stretch_end - begin, numbers);
      numbers += stretch_end - begin;
      begin = stretch_end;
    }
  }

  /// The last stretch that begins at or before the key.
  [[nodiscard]] int stretch_of(int key) const {
    int first = 0;
    int count = dropout_.stretch_count;
    while (count > 1) {
      const int half = count / 2;
      first = dropout_.stretches[first + half].begin <= key ? first + half : first;
      count -= half;
    }
    return first;
  }

  void draw_places(std::uint32_t place, int count, std::uint16_t* numbers) {
    constexpr std::uint32_t block_keys = dropout_block_keys;
    while (count > 0) {
      const std::uint32_t block = place / block_keys;
      const auto first = static_cast<int>(place % block_keys);
      const int drawn = smaller(dropout_block_keys - first, count);
      if (drawn == dropout_block_keys) {
        draw_block<Isa>(stream_, round_keys_, query_.place, block, numbers);
      } else {
        if (!has_border_ || border_block_ != block) {
          draw_block<Isa>(stream_, round_keys_, query_.place, block, border_);
          border_block_ = block;
          has_border_ = true;
        }
        for (int i = 0; i < drawn; ++i) {
          numbers[i] = border_[first + i];
        }
      }
      place += static_cast<std::uint32_t>(drawn);
      numbers += drawn;
      count -= drawn;
    }
  }

  const RowsDropout& dropout_;
  const DropoutQuery query_;
  const DropoutStream& stream_;
  const RoundKeys round_keys_;
  bool has_border_ = false;
  std::uint32_t border_block_ = 0;
  std::uint16_t border_[dropout_block_keys];
};

/// Keeps every element of a row.
template <typename Isa>
struct NoDropout {
  [[gnu::always_inline]] void apply(int /*key*/, Floats<Isa>& /*values*/) const {}
  [[gnu::always_inline]] void apply(int /*key*/, Floats<Isa>& /*values*/, Floats<Isa>& /*others*/) const {}
};

/// Drops elements of a row, and scales the others, by their numbers.
template <typename Isa>
struct NumberedDropout {
  const std::uint16_t* numbers = nullptr;  ///< of keys from some origin on
  std::int32_t threshold = 0;
  float scale = 1.0F;

  /// @param values  of keys [key, key + lanes)
  [[gnu::always_inline]] void apply(int key, Floats<Isa>& values) const {
    values = kept(key) ? values * scale : Floats<Isa>{};
  }
  [[gnu::always_inline]] void apply(int key, Floats<Isa>& values, Floats<Isa>& others) const {
    const Ints<Isa> keep = kept(key);
    values = keep ? values * scale : Floats<Isa>{};
    others = keep ? others * scale : Floats<Isa>{};
  }

 private:
  [[nodiscard, gnu::always_inline]] Ints<Isa> kept(int key) const {
    return __builtin_convertvector(load<Halves<Isa>>(numbers + key), Ints<Isa>) >= threshold;
  }
};

template <typename Isa, bool dropping>
struct RowDropoutOf {
  using Type = NoDropout<Isa>;
};
template <typename Isa>
struct RowDropoutOf<Isa, true> {
  using Type = NumberedDropout<Isa>;
};
template <typename Isa, bool dropping>
using RowDropout = typename RowDropoutOf<Isa, dropping>::Type;

}  // namespace hcp::tile
