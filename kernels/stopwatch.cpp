#include "kernels/stopwatch.hpp"

#include <chrono>

namespace hcp {

double now_s() {
  // CLOCK_MONOTONIC on Linux: counted from the start of the host.
  return std::chrono::duration<double>{std::chrono::steady_clock::now().time_since_epoch()}.count();
}

}  // namespace hcp
