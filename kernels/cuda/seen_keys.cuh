/// The mask of a row within a tile of keys.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/query_rows.hpp"

namespace hcp::cuda {

/// Bits 0 .. count - 1; none below 0, all above 64.
HCP_DEVICE std::uint64_t bits_below(int count) {
  return count >= 64 ? ~std::uint64_t{0} : count <= 0 ? 0 : (std::uint64_t{1} << count) - 1;
}

/// Bit i: whether the row sees key first_key + i.
HCP_DEVICE std::uint64_t seen_keys(const RowKeys& keys, int first_key) {
  return (bits_below(keys.end[0] - first_key) & ~bits_below(keys.begin[0] - first_key)) |
         (bits_below(keys.end[1] - first_key) & ~bits_below(keys.begin[1] - first_key));
}

HCP_DEVICE bool sees_nothing(const RowKeys& keys) {
  return keys.begin[0] == keys.end[0];
}

}  // namespace hcp::cuda
