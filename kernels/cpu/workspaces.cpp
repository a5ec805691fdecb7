#include "kernels/cpu/workspaces.hpp"

#include <sys/mman.h>

#include <new>

namespace hcp {

Workspaces::Workspaces(int threads) {
  for (int i = 0; i < threads; ++i) {
    auto* memory =
        static_cast<std::byte*>(::operator new (workspace_bytes, std::align_val_t{workspace_bytes}));
    memory_.emplace_back(memory);
#if defined(MADV_HUGEPAGE)
    static_cast<void>(::madvise(memory, workspace_bytes, MADV_HUGEPAGE));  // advice: small pages do, too
#endif
  }
}

void Workspaces::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{workspace_bytes});
}

}  // namespace hcp
