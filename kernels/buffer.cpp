#include "kernels/buffer.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/stopwatch.hpp"

namespace hcp {
namespace {

constexpr std::size_t alignment_bytes = 64;  // one cache line, one AVX-512 register

/// Rows of a head lie apart from each other: with small pages every few of them cost a miss of the address
/// cache, and strided copies in the third-level cache run at 70-80 % of their speed.
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t index_of(MemoryCategory category) {
  return static_cast<std::size_t>(category);
}

/// Freed blocks stay in the heap. By default glibc takes blocks of 32 MiB and more from the system and gives
/// them back when freed, so each pass of each layer would pay the page faults of all its buffers again.
bool keep_freed_blocks() {
  return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1;
}

/// Blocks of this size and more begin at a huge page.
constexpr std::size_t least_for_huge_pages = 2 * huge_page_bytes;

/// At a huge page inside a larger block of the heap, whose address lies before it. The heap's own aligned
/// allocation gives back what it does not need on both sides, so a freed block is too small for the next one
/// of its size: passes went on for several iterations to get fresh pages, and paid for each as much as for
/// their arithmetic.
std::byte* allocate_at_huge_page(std::size_t bytes) {
  void* block = std::malloc(sizeof(void*) + huge_page_bytes + bytes);
  if (block == nullptr) {
    throw std::bad_alloc{};
  }
  const std::size_t after_address = reinterpret_cast<std::uintptr_t>(block) + sizeof(void*);
  const std::size_t padding = (huge_page_bytes - after_address % huge_page_bytes) % huge_page_bytes;
  std::byte* data = static_cast<std::byte*>(block) + sizeof(void*) + padding;
  std::memcpy(data - sizeof(void*), &block, sizeof(void*));
#if defined(MADV_HUGEPAGE)
  // Advice: a system without huge pages gives small ones.
  static_cast<void>(::madvise(data, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
  return data;
}

std::byte* allocate_on_host(std::size_t bytes) {
  // Only speed depends on the answer: a libc that declines allocates all the same.
  [[maybe_unused]] static const bool kept = keep_freed_blocks();
  if (bytes >= least_for_huge_pages) {
    return allocate_at_huge_page(bytes);
  }
  void* data = nullptr;
  if (::posix_memalign(&data, alignment_bytes, bytes) != 0) {
    throw std::bad_alloc{};
  }
  return static_cast<std::byte*>(data);
}

void release_on_host(std::byte* data, std::size_t bytes) {
  void* block = data;
  if (bytes >= least_for_huge_pages) {
    std::memcpy(&block, data - sizeof(void*), sizeof(void*));
  }
  std::free(block);
}

class HostMemory final : public MemorySource {
 public:
  [[nodiscard]] MemorySpace space() const override { return MemorySpace::host; }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) override {
    return allocate_on_host(static_cast<std::size_t>(bytes));
  }
  void release(std::byte* data, std::int64_t bytes) noexcept override {
    release_on_host(data, static_cast<std::size_t>(bytes));
  }
  void copy_from_host(std::byte* data, const std::byte* host, std::int64_t bytes) override {
    std::memcpy(data, host, static_cast<std::size_t>(bytes));
  }
  void copy_to_host(std::byte* host, const std::byte* data, std::int64_t bytes) override {
    std::memcpy(host, data, static_cast<std::size_t>(bytes));
  }
};

}  // namespace

MemorySource& host_memory() {
  static HostMemory memory;
  return memory;
}

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, memory_categories> names{
      "qkv", "result", "accumulator", "saved", "kv_ring", "dkv_ring", "gathered", "head_scatter", "packed"};
  return names.at(index_of(category));
}

void MemoryLedger::add(MemoryCategory category, std::int64_t bytes) {
  const std::size_t i = index_of(category);
  live_[i] += bytes;
  live_total_ += bytes;
  peak_[i] = std::max(peak_[i], live_[i]);
  peak_total_ = std::max(peak_total_, live_total_);
  changes_.push_back({now_s(), category, live_[i]});
}

void MemoryLedger::remove(MemoryCategory category, std::int64_t bytes) {
  const std::size_t i = index_of(category);
  if (bytes > live_[i]) {
    throw std::logic_error{"memory ledger: " + std::to_string(bytes) + " B leave category " +
                           std::string{name_of(category)} + ", which holds " + std::to_string(live_[i]) +
                           " B"};
  }
  live_[i] -= bytes;
  live_total_ -= bytes;
  changes_.push_back({now_s(), category, live_[i]});
}

std::int64_t MemoryLedger::live(MemoryCategory category) const {
  return live_[index_of(category)];
}

std::int64_t MemoryLedger::peak(MemoryCategory category) const {
  return peak_[index_of(category)];
}

void MemoryLedger::reset_peaks() {
  peak_ = live_;
  peak_total_ = live_total_;
}

std::vector<MemoryLedger::Change> MemoryLedger::take_changes() {
  return std::exchange(changes_, {});
}

Buffer::Buffer(MemoryLedger& ledger, MemoryCategory category, std::int64_t bytes, MemorySource& source)
    : ledger_{&ledger}, source_{&source}, category_{category}, bytes_{bytes} {
  if (bytes < 0) {
    throw std::logic_error{"a buffer of " + std::to_string(bytes) + " B"};
  }
  if (bytes > 0) {
    data_ = source.allocate(bytes);
    ledger.add(category, bytes);
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : ledger_{other.ledger_},
      source_{other.source_},
      category_{other.category_},
      data_{std::exchange(other.data_, nullptr)},
      bytes_{std::exchange(other.bytes_, 0)} {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  // By way of a temporary, so that the old memory leaves the ledger here and not when `other` dies.
  Buffer taken{std::move(other)};
  std::swap(ledger_, taken.ledger_);
  std::swap(source_, taken.source_);
  std::swap(category_, taken.category_);
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) {
    ledger_->remove(category_, bytes_);
    source_->release(data_, bytes_);
  }
}

}  // namespace hcp
