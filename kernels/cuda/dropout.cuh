/// Dropout on the device: the numbers of kernels/dropout.hpp, drawn by a block for a whole tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/kernel_parameters.hpp"

namespace hcp::cuda {

/// hcp::philox in place.
HCP_DEVICE void philox(std::uint32_t (&words)[4], std::uint32_t key0, std::uint32_t key1) {
  // Arrays of the host have no address on the device; their values may be copied.
  constexpr std::uint32_t multipliers[]{philox_multipliers[0], philox_multipliers[1]};
  constexpr std::uint32_t steps[]{philox_key_steps[0], philox_key_steps[1]};
#pragma unroll
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint32_t first = words[0];
    const std::uint32_t second = words[2];
    words[0] = device::high_product(multipliers[1], second) ^ words[1] ^ key0;
    words[1] = multipliers[1] * second;
    words[2] = device::high_product(multipliers[0], first) ^ words[3] ^ key1;
    words[3] = multipliers[0] * first;
    key0 += steps[0];
    key1 += steps[1];
  }
}

/// The numbers of one query, drawn a call at a time: neighbouring keys mostly share one.
class DropoutNumbers {
 public:
  HCP_DEVICE DropoutNumbers(const DropoutStream& stream, std::uint32_t query)
      : stream_{stream}, query_{query} {}

  /// Of a key counted from the first of the document.
  HCP_DEVICE std::uint32_t number_of(std::uint32_t key) {
    constexpr std::uint32_t block_keys = dropout_block_keys;
    const std::uint32_t call = key / block_keys * dropout_block_calls + key % (block_keys / 2) / 4;
    if (call != call_ || !drawn_) {
      words_[0] = call;
      words_[1] = query_;
      words_[2] = stream_.words[2];
      words_[3] = stream_.words[3];
      philox(words_, stream_.words[0], stream_.words[1]);
      call_ = call;
      drawn_ = true;
    }
    const bool second_half = key % block_keys >= block_keys / 2;
    const std::uint32_t low = second_half ? words_[2] : words_[0];
    const std::uint32_t high = second_half ? words_[3] : words_[1];
    return ((key % 4 < 2 ? low : high) >> (key % 2 * 16)) & 0xFFFFU;
  }

 private:
  DropoutStream stream_;
  std::uint32_t query_;
  std::uint32_t call_ = 0;
  bool drawn_ = false;
  std::uint32_t words_[4];
};

/// Which pairs of a tile of queries and a tile of keys are kept, one bit each in shared memory. The bits of a
/// byte are those that a call of the generator draws together, if the tile begins at a multiple of four keys
/// of its document.
template <int queries, int keys>
struct KeptPairs {
  static constexpr int half = keys < dropout_block_keys ? keys / 2 : dropout_block_keys / 2;
  static constexpr int row_bytes = keys / 8;
  static constexpr int bytes = queries * row_bytes;

  std::uint8_t* data = nullptr;

  /// By all `threads` threads of the block, for the tile that begins at first_row and first_key of a block
  /// of attention of `rows` rows and `keys_end` keys.
  template <int threads>
  HCP_DEVICE void draw(const DropoutTable& table, int head, int first_row, int rows, int first_key,
                       int keys_end) const {
#pragma unroll 1
    for (int place = device::thread(); place < bytes; place += threads) {
      const int row = first_row + place / row_bytes;
      const int key = first_key + first_key_of(place % row_bytes);
      data[place] = row < rows ? draw_byte(table, head, row, key, keys_end) : std::uint8_t{0};
    }
  }

  /// All bits of a query, of 32 or 64 keys. `data` is aligned to 8 bytes.
  HCP_DEVICE auto row(int query) const {
    static_assert(keys == 32 || keys == 64);
    using Row = std::conditional_t<keys == 32, std::uint32_t, std::uint64_t>;
    return reinterpret_cast<const Row*>(data)[query];
  }
  /// Of a key in row(). Those of keys a and b, b a multiple of 8 and a < 8, add up to that of a + b.
  static HCP_DEVICE constexpr int bit_of(int key) {
    return key % half / 4 * 8 + key / half * 4 + key % 4;
  }

  /// 1 or 0.
  HCP_DEVICE std::uint32_t kept(int query, int key) const {
    const int byte = key / (2 * half) * (half / 4) + key % half / 4;
    const int bit = key / half % 2 * 4 + key % 4;
    return static_cast<std::uint32_t>(data[query * row_bytes + byte]) >> bit & 1U;
  }

 private:
  /// Bits 0 .. 3 are this key and the next three, bits 4 .. 7 those `half` behind.
  static HCP_DEVICE int first_key_of(int byte) {
    return byte / (half / 4) * (2 * half) + byte % (half / 4) * 4;
  }

  static HCP_DEVICE std::uint8_t draw_byte(const DropoutTable& table, int head, int row, int first_key,
                                           int keys_end) {
    const DropoutQuery query = table.rows[row];
    DropoutNumbers numbers{table.streams[static_cast<std::int64_t>(head) * table.documents + query.document],
                           query.place};
    std::uint32_t kept = 0;
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
      // 0, half, 1, half + 1, ..: so the keys of a call follow each other
      const int offset = i % 2 * half + i / 2;
      const int key = first_key + offset;
      if (key < keys_end) {
        const std::uint32_t number = numbers.number_of(table.key_positions[key] - query.first_key);
        kept |= (number < static_cast<std::uint32_t>(table.threshold) ? 0U : 1U) << (i % 2 * 4 + i / 2);
      }
    }
    return static_cast<std::uint8_t>(kept);
  }
};

}  // namespace hcp::cuda
