#include "tests/software_gpu/address_space.hpp"

#include <sys/mman.h>

#include <new>

namespace hcp::software_gpu {
namespace {

constexpr std::size_t reserved_bytes = std::size_t{1} << 40;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment = 256;  // of cudaMalloc

/// What is taken for so many bytes, the gaps included.
std::size_t whole_pages(std::size_t bytes) {
  return (alignment + bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes;
}

void protect(std::byte* begin, std::size_t bytes, bool open) {
  if (bytes > 0 && mprotect(begin, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    throw std::bad_alloc{};
  }
}

}  // namespace

AddressSpace::AddressSpace() {
  void* reserved =
      mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    throw std::bad_alloc{};
  }
  begin_ = static_cast<std::byte*>(reserved);
}

AddressSpace::~AddressSpace() {
  munmap(begin_, reserved_bytes);
}

void* AddressSpace::take(std::size_t bytes) {
  if (bytes > reserved_bytes || whole_pages(bytes) > reserved_bytes - used_) {
    throw std::bad_alloc{};
  }
  std::byte* pages = begin_ + used_;
  protect(pages, whole_pages(bytes), open_);
  used_ += whole_pages(bytes);
  return pages + alignment;
}

void AddressSpace::retire(void* begin, std::size_t bytes) {
  std::byte* pages = static_cast<std::byte*>(begin) - alignment;
  madvise(pages, whole_pages(bytes), MADV_DONTNEED);
  protect(pages, whole_pages(bytes), false);
}

void AddressSpace::set_open(bool open) {
  protect(begin_, used_, open);
  open_ = open;
}

}  // namespace hcp::software_gpu
