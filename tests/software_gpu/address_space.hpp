/// Memory at addresses that are never given out twice.
#pragma once

#include <cstddef>

namespace hcp::software_gpu {

/// While it is closed, whoever touches any of its memory ends with a segmentation fault. Open at first.
class AddressSpace {
 public:
  /// Takes addresses only; memory comes with take(). @throws std::bad_alloc
  AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  /// Aligned to 256 bytes and no more, with a gap that belongs to nobody on each side.
  /// @throws std::bad_alloc
  [[nodiscard]] void* take(std::size_t bytes);
  /// The memory goes, its addresses stay in use.
  void retire(void* begin, std::size_t bytes);

  /// @throws std::bad_alloc
  void set_open(bool open);

 private:
  std::byte* begin_ = nullptr;
  std::size_t used_ = 0;
  bool open_ = true;
};

}  // namespace hcp::software_gpu
