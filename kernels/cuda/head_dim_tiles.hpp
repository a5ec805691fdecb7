/// Head dims that kernels on tensor cores are made for; others run on the next larger pair, masked.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/query_rows.hpp"

namespace hcp::cuda {

/// @throws std::invalid_argument unless both are multiples of 8 from 8 to max_head_dim
inline void check_head_dims(int dim_qk, int dim_v) {
  for (const int dim : {dim_qk, dim_v}) {
    if (dim < 8 || dim > max_head_dim || dim % 8 != 0) {
      throw std::invalid_argument{"the head dim is " + std::to_string(dim) +
                                  "; kernels on devices take multiples of 8 from 8 to " +
                                  std::to_string(max_head_dim)};
    }
  }
}

/// make.operator()<dim_qk, dim_v>() of the smallest pair that holds both, which have passed check_head_dims.
template <typename Make>
decltype(auto) with_head_dim_tiles(int dim_qk, int dim_v, const Make& make) {
  if (dim_qk <= 64 && dim_v <= 64) {
    return make.template operator()<64, 64>();
  }
  if (dim_qk <= 128 && dim_v <= 128) {
    return make.template operator()<128, 128>();
  }
  if (dim_qk <= 192 && dim_v <= 128) {
    return make.template operator()<192, 128>();
  }
  return make.template operator()<256, 256>();
}

}  // namespace hcp::cuda
