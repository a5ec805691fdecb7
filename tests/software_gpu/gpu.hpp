/// The state of the software GPU, and the frame of every call of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/software_gpu/access_history.hpp"
#include "tests/software_gpu/devices.hpp"
#include "tests/software_gpu/engine.hpp"
#include "tests/software_gpu/handle_table.hpp"
#include "tests/software_gpu/host_copies.hpp"
#include "tests/software_gpu/kernels.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {

struct Event {
  int device = 0;
  /// One cudaEventRecord. Streams that wait for it do so also when the event is recorded again or destroyed.
  struct Record {
    Clock clock;              ///< what is done when it passes
    bool of_compute = false;  ///< in a stream that has run kernels
    bool passed = false;
    double passed_s = 0.0;  ///< by a monotonic clock
  };
  bool timed = false;
  std::shared_ptr<Record> record;  ///< the last; nullptr before the first
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
  Devices devices;
  Memory memory;
  Kernels kernels;
  std::map<const void*, int> admitted_shared_bytes;  ///< by function
  Engine engine;
  AccessHistory history;   ///< of device and pinned memory, while operations are deferred
  HostCopies host_copies;  ///< the same
  HandleTable<cudaStream_t, std::shared_ptr<Stream>> streams;
  HandleTable<cudaEvent_t, Event> events;
  ptx::RunOptions options;
  std::vector<Launch> launches;
  std::vector<std::string> misuses;
  std::set<std::string> reported;  ///< those of `misuses` that report() told
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
  [[nodiscard]] std::shared_ptr<Stream> stream(cudaStream_t handle) const;
  /// nullptr, and a misuse, also if its device is not the current one.
  [[nodiscard]] std::shared_ptr<Stream> current_stream(cudaStream_t handle) const;
  /// nullptr, and a misuse, if the handle is that of no event that lives.
  [[nodiscard]] Event* event(cudaEvent_t handle) const;

  /// Lets streams go on until `done`. Objects may be gone then: other threads take the lock in between.
  /// @return cudaSuccess, or another result and a finding if nothing happened for too long
  [[nodiscard]] cudaError_t wait_until(const std::function<bool()>& done);
  /// For all that the streams of a device have been asked for.
  [[nodiscard]] cudaError_t wait_for_device(int device);
  [[nodiscard]] cudaError_t wait_for_all_devices();

  /// cudaSuccess, or what a process gets that has no such device.
  [[nodiscard]] cudaError_t find_device(int device) const;

 private:
  const char* name_;
  std::unique_lock<std::mutex> lock_;
};

/// Of the calling thread, and forgets it.
[[nodiscard]] cudaError_t take_last_error();

}  // namespace hcp::software_gpu
