#include "kernels/cuda/backward_keys.cuh"

#include <algorithm>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/element_types.cuh"
#include "kernels/cuda/head_dim_tiles.hpp"
#include "kernels/cuda/plain_backward.cuh"

namespace hcp::cuda {
namespace {

template <typename Element, int dim_qk, int dim_v, bool dropping, KeyGradients gradients>
KernelEntry entry(const char* name) {
  using Tile = BackwardKeysTile<dim_qk, dim_v>;
  return {reinterpret_cast<const void*>(&backward_keys<Element, dim_qk, dim_v, dropping, gradients>),
          name,
          Tile::keys,
          Tile::queries,
          Tile::threads,
          static_cast<int>(sizeof(BackwardKeysMemory<dim_qk, dim_v, dropping>))};
}

template <typename Element, int dim_qk, int dim_v, bool dropping>
std::span<const KernelEntry> entries() {
  if constexpr (BackwardKeysTile<dim_qk, dim_v>::one_gradient) {
    static const KernelEntry both[]{
        entry<Element, dim_qk, dim_v, dropping, KeyGradients::dk>("backward_keys_dk"),
        entry<Element, dim_qk, dim_v, dropping, KeyGradients::dv>("backward_keys_dv")};
    return both;
  } else {
    static const KernelEntry one[]{
        entry<Element, dim_qk, dim_v, dropping, KeyGradients::dk_and_dv>("backward_keys")};
    return one;
  }
}

template <int dim, bool dropping>
std::span<const KernelEntry> plain_entries() {
  static const KernelEntry one[]{{reinterpret_cast<const void*>(&plain_backward_keys<dim, dropping>),
                                  "plain_backward_keys", plain_rows, plain_rows, plain_threads,
                                  static_cast<int>(sizeof(PlainBackwardMemory<dim>))}};
  return one;
}

template <bool dropping>
std::span<const KernelEntry> entries_for(DataType type, int dim_qk, int dim_v) {
  check_head_dims(dim_qk, dim_v);
  if (type == DataType::fp32) {
    const int dim = std::max(dim_qk, dim_v);
    return dim <= 64    ? plain_entries<64, dropping>()
           : dim <= 128 ? plain_entries<128, dropping>()
                        : plain_entries<256, dropping>();
  }
  return with_head_dim_tiles(dim_qk, dim_v, [type]<int tile_qk, int tile_v>() {
    return type == DataType::bf16 ? entries<Bf16, tile_qk, tile_v, dropping>()
                                  : entries<Fp16, tile_qk, tile_v, dropping>();
  });
}

}  // namespace

std::span<const KernelEntry> backward_keys_kernel_entries(DataType type, int dim_qk, int dim_v,
                                                          bool dropping) {
  return dropping ? entries_for<true>(type, dim_qk, dim_v) : entries_for<false>(type, dim_qk, dim_v);
}

}  // namespace hcp::cuda
