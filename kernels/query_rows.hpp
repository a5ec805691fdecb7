/// What kernels know of a row of queries besides its elements, as plain data: it crosses into code for other
/// instruction sets and to devices.
#pragma once

#include <cstdint>

namespace hcp {

inline constexpr int max_head_dim = 256;  ///< head dims are multiples of 8 up to this

/// The two intervals [begin, end) of key rows of the block that one query row sees; empty ones are {0, 0},
/// and an empty first one has an empty second one.
struct RowKeys {
  std::int32_t begin[2];
  std::int32_t end[2];
};

/// A query row as dropout sees it.
struct DropoutQuery {
  std::uint32_t place = 0;      ///< of the query in its document
  std::uint32_t first_key = 0;  ///< global position of the first key of its document, modulo 2^32
  std::uint32_t document = 0;   ///< among those of the block
};

}  // namespace hcp
