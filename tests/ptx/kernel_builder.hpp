/// A kernel while its instructions are decoded: gives out places for registers, constants and memory.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "tests/ptx/kernel.hpp"

namespace hcp::ptx {

class KernelBuilder {
 public:
  KernelBuilder();

  /// A new register; `bytes` per lane: 2, 4, 8, or 0 for a predicate. 8-bit registers take 2.
  [[nodiscard]] Operand add_register(int bytes);

  /// `bits` for every lane, as values of 2, 4 or 8 bytes. Equal constants share a place.
  [[nodiscard]] Operand constant(std::uint64_t bits, int bytes);

  /// The predicate that is true in all lanes.
  [[nodiscard]] Operand always() const { return always_; }

  [[nodiscard]] Operand special(SpecialRegister which);

  /// @return the offset in the frame of each thread
  [[nodiscard]] std::uint32_t add_local(std::int64_t bytes, std::int64_t alignment);

  /// @return the address in the shared window
  [[nodiscard]] std::uint32_t add_static_shared(std::int64_t bytes, std::int64_t alignment);

  /// The address of dynamic shared memory, which is known only when all static variables are.
  [[nodiscard]] Operand dynamic_shared(int bytes, std::int64_t alignment);

  void note_shared_access(int bytes);
  void note_global_access(int bytes);

  Kernel& kernel() { return kernel_; }

  /// Closes the kernel; the builder is empty afterwards.
  [[nodiscard]] Kernel finish();

 private:
  void fill_constant(Operand place, std::uint64_t bits, int bytes);

  Kernel kernel_;
  std::map<std::pair<std::uint64_t, int>, Operand> constants_;
  std::map<SpecialRegister, Operand> specials_;
  std::map<int, Operand> dynamic_shared_;  // by bytes
  std::int64_t dynamic_alignment_ = 16;
  Operand always_;  // after what its construction uses
};

}  // namespace hcp::ptx
