/// The table of one instruction set from the templates.
#pragma once

#include "kernels/cpu/backward_tile.hpp"
#include "kernels/cpu/fma_loop.hpp"
#include "kernels/cpu/forward_tile.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp::tile {

template <typename Isa>
constexpr TileFunctions make_tile_functions(const char* instruction_set) {
  return {.instruction_set = instruction_set,
          .forward_workspace_bytes = sizeof(ForwardWorkspace<Isa>),
          .begin_forward = begin_forward<Isa>,
          .visit_forward = visit_forward<Isa>,
          .finish_forward = finish_forward<Isa>,
          .backward_workspace_bytes = sizeof(BackwardWorkspace<Isa>),
          .begin_backward = begin_backward<Isa>,
          .visit_backward = visit_backward<Isa>,
          .add_key_gradients = add_key_gradients<Isa>,
          .finish_backward = finish_backward<Isa>,
          .fma_loop = fma_loop<Isa>,
          .fma_flops_per_step = fma_flops_per_step<Isa>};
}

}  // namespace hcp::tile
