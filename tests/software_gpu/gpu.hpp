/// The state of the software GPU, and the frame of every call of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/software_gpu/handle_table.hpp"
#include "tests/software_gpu/kernels.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {

/// What the host asks of a stream is done at once.
class Stream {
 public:
  void submit(const std::function<void()>& operation);
};

struct Event {
  bool timed = false;
  std::optional<double> passed_s;  ///< by a monotonic clock; nothing before the first record
};

/// Limits of an architecture.
/// @source CUDA C++ programming guide, compute capabilities, technical specifications
struct Architecture {
  int major = 9;
  int minor = 0;
  int max_shared_bytes = 227 << 10;  ///< of a block that asks for it
};

struct Gpu {
  std::mutex mutex;  ///< held by every call
  Architecture architecture;
  Memory memory;
  Kernels kernels;
  std::map<const void*, int> admitted_shared_bytes;  ///< by function
  HandleTable<cudaStream_t, Stream> streams;
  HandleTable<cudaEvent_t, Event> events;
  ptx::RunOptions options;
  std::vector<Launch> launches;
  std::vector<std::string> misuses;
};

/// Never destroyed: objects of the program may outlive any that it has.
[[nodiscard]] Gpu& gpu();

/// One call of the runtime. Each ends with one of its functions for what it returns.
class Call {
 public:
  explicit Call(const char* name) : name_{name}, lock_{gpu().mutex} {}

  [[nodiscard]] cudaError_t done() const { return cudaSuccess; }
  /// A device would say so as well; the caller is not to blame.
  [[nodiscard]] cudaError_t fail(cudaError_t error) const;
  /// What a device would at best refuse.
  [[nodiscard]] cudaError_t misuse(cudaError_t error, const std::string& what) const;

  /// nullptr, and a misuse, if the handle is that of no stream that lives, or of the default stream.
  [[nodiscard]] Stream* stream(cudaStream_t handle) const;
  /// nullptr, and a misuse, if the handle is that of no event that lives.
  [[nodiscard]] Event* event(cudaEvent_t handle) const;

 private:
  const char* name_;
  std::lock_guard<std::mutex> lock_;
};

/// Of the calling thread, and forgets it.
[[nodiscard]] cudaError_t take_last_error();

}  // namespace hcp::software_gpu
