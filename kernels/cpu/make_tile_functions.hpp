/// The table of one instruction set from the templates.
#pragma once

#include "kernels/cpu/backward_tile.hpp"
#include "kernels/cpu/fma_loop.hpp"
#include "kernels/cpu/forward_rows.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/workspaces.hpp"

namespace hcp::tile {

template <typename Isa, typename Operands>
constexpr AttentionFunctions make_attention_functions() {
  static_assert(sizeof(ForwardWorkspace<Operands>) <= workspace_bytes);
  static_assert(sizeof(BackwardWorkspace<Operands>) <= workspace_bytes);
  return {.forward_chunk_keys = forward_chunk_keys<Isa, Operands>,
          .begin_forward_chunk = begin_forward_chunk<Isa, Operands>,
          .forward_rows = forward_rows<Isa, Operands>,
          .backward_chunk_keys = backward_chunk_keys<Isa, Operands>,
          .begin_backward_chunk = begin_backward_chunk<Isa, Operands>,
          .backward_tile = backward_tile<Isa, Operands>,
          .finish_backward_chunk = finish_backward_chunk<Isa, Operands>};
}

}  // namespace hcp::tile
