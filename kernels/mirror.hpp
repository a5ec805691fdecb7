/// Memory of a kernel that the host fills and looks at.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/buffer.hpp"

namespace hcp {

/// A buffer where the kernel computes and its image in the host's memory: one and the same where the kernel
/// computes there. The ledger counts the kernel's. Move-only.
class Mirror {
 public:
  Mirror() = default;
  /// Uninitialised. @throws std::bad_alloc; `ledger` and `source` must outlive the mirror
  Mirror(MemoryLedger& ledger, MemoryCategory category, std::int64_t bytes,
         MemorySource& source = host_memory());

  /// Null if it has no bytes.
  [[nodiscard]] std::byte* of_kernel() const { return buffer_.data(); }
  [[nodiscard]] std::byte* of_host() const { return image_ ? image_.get() : buffer_.data(); }
  [[nodiscard]] std::int64_t bytes() const { return buffer_.bytes(); }

  /// The kernel sees what the host has written; the host, what the kernel has. Nothing, where both are one.
  void to_kernel();
  void to_host();

 private:
  MemorySource* source_ = nullptr;
  Buffer buffer_;
  std::unique_ptr<std::byte[]> image_;
};

}  // namespace hcp
