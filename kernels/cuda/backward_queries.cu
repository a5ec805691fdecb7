#include "kernels/cuda/backward_queries.cuh"

#include <algorithm>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/element_types.cuh"
#include "kernels/cuda/head_dim_tiles.hpp"
#include "kernels/cuda/plain_backward.cuh"

namespace hcp::cuda {
namespace {

template <typename Element, int dim_qk, int dim_v, bool dropping>
const KernelEntry* entry() {
  using Tile = BackwardQueriesTile<dim_qk, dim_v>;
  static const KernelEntry made{
      reinterpret_cast<const void*>(&backward_queries<Element, dim_qk, dim_v, dropping>),
      "backward_queries",
      Tile::queries,
      Tile::keys,
      Tile::threads,
      static_cast<int>(sizeof(BackwardQueriesMemory<dim_qk, dim_v, dropping>))};
  return &made;
}

template <int dim, bool dropping>
const KernelEntry* plain_entry() {
  static const KernelEntry made{reinterpret_cast<const void*>(&plain_backward_queries<dim, dropping>),
                                "plain_backward_queries",
                                plain_rows,
                                plain_rows,
                                plain_threads,
                                static_cast<int>(sizeof(PlainBackwardMemory<dim>))};
  return &made;
}

template <bool dropping>
const KernelEntry* entry_for(DataType type, int dim_qk, int dim_v) {
  check_head_dims(dim_qk, dim_v);
  if (type == DataType::fp32) {
    const int dim = std::max(dim_qk, dim_v);
    return dim <= 64    ? plain_entry<64, dropping>()
           : dim <= 128 ? plain_entry<128, dropping>()
                        : plain_entry<256, dropping>();
  }
  return with_head_dim_tiles(dim_qk, dim_v, [type]<int tile_qk, int tile_v>() {
    return type == DataType::bf16 ? entry<Bf16, tile_qk, tile_v, dropping>()
                                  : entry<Fp16, tile_qk, tile_v, dropping>();
  });
}

}  // namespace

const KernelEntry& backward_queries_kernel_entry(DataType type, int dim_qk, int dim_v, bool dropping) {
  return dropping ? *entry_for<true>(type, dim_qk, dim_v) : *entry_for<false>(type, dim_qk, dim_v);
}

}  // namespace hcp::cuda
