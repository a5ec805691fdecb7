/// Owned memory, and the ledger that knows every live byte of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/tensor.hpp"

namespace hcp {

/// What a buffer is for; the trace and the plan use the same names.
enum class MemoryCategory : std::uint8_t {
  qkv,           ///< this rank's shard of q, k, v and dout
  result,        ///< out, dq, dk, dv in the storage type
  accumulator,   ///< fp32 out, lse, delta, dq, dk, dv of this rank's rows
  saved,         ///< what forward keeps for backward besides qkv (after a head swap: q, k, v, out)
  kv_ring,       ///< KV blocks that circulate
  dkv_ring,      ///< their gradients
  gathered,      ///< KV of an all_gather level and its gradient
  head_scatter,  ///< send and receive sides of the head swap
  packed,        ///< rows of a message that lie apart elsewhere
};
inline constexpr std::size_t memory_categories = 9;
[[nodiscard]] std::string_view name_of(MemoryCategory category);

/// Live bytes per category with every change of them. Not thread-safe: buffers are made and freed by one
/// thread.
class MemoryLedger {
 public:
  struct Change {
    double time_s;  ///< as now_s()
    MemoryCategory category;
    std::int64_t live_bytes;  ///< of that category, after the change
  };

  void add(MemoryCategory category, std::int64_t bytes);
  void remove(MemoryCategory category, std::int64_t bytes);

  [[nodiscard]] std::int64_t live(MemoryCategory category) const;
  [[nodiscard]] std::int64_t peak(MemoryCategory category) const;
  [[nodiscard]] std::int64_t peak_total() const { return peak_total_; }  ///< of the sum over categories
  /// Starts new peaks from what is live now.
  void reset_peaks();
  [[nodiscard]] std::vector<Change> take_changes();

 private:
  std::array<std::int64_t, memory_categories> live_{};
  std::array<std::int64_t, memory_categories> peak_{};
  std::int64_t live_total_ = 0;
  std::int64_t peak_total_ = 0;
  std::vector<Change> changes_;
};

/// Where buffers of one memory space come from. Used by one thread.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  [[nodiscard]] virtual MemorySpace space() const = 0;
  /// `bytes` > 0 of uninitialised memory, aligned to 64 bytes at least.
  /// @throws std::bad_alloc
  [[nodiscard]] virtual std::byte* allocate(std::int64_t bytes) = 0;
  /// Takes back what allocate gave for as many bytes.
  virtual void release(std::byte* data, std::int64_t bytes) noexcept = 0;

  /// After all that its kernel was asked for so far; the host waits until it is done.
  virtual void copy_from_host(std::byte* data, const std::byte* host, std::int64_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* data, std::int64_t bytes) = 0;
};

[[nodiscard]] MemorySource& host_memory();

/// Owns `bytes` of uninitialised memory, aligned to 64 bytes, booked in a ledger while it lives. Move-only.
class Buffer {
 public:
  Buffer() = default;
  /// @throws std::bad_alloc; `ledger` and `source` must outlive the buffer
  Buffer(MemoryLedger& ledger, MemoryCategory category, std::int64_t bytes,
         MemorySource& source = host_memory());
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  MemoryLedger* ledger_ = nullptr;
  MemorySource* source_ = nullptr;
  MemoryCategory category_ = MemoryCategory::qkv;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace hcp
