/// What a launch needs to know of a kernel.
#pragma once

namespace hcp::cuda {

struct KernelEntry {
  const void* function = nullptr;
  const char* name = nullptr;
  int own_rows = 0;    ///< in the tile of a block
  int other_rows = 0;  ///< in the tiles that it visits
  int threads = 0;     ///< of a block
  int shared_bytes = 0;
};

}  // namespace hcp::cuda
