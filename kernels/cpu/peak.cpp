#include "kernels/cpu/peak.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cpu/bf16_dot_loop.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/stopwatch.hpp"

namespace hcp {
namespace {

/// Best rate of `loop` on the calling thread over about `seconds`.
double best_rate(float (*loop)(std::int64_t), std::int64_t flops_per_step, double seconds) {
  constexpr std::int64_t steps = 8192;  // some 25 microseconds: few windows are interrupted
  const double flops = static_cast<double>(steps * flops_per_step);
  volatile float sink = 0.0F;
  double best = 0.0;
  const double end = now_s() + seconds;
  for (double begin = now_s(); begin < end;) {
    sink = loop(steps);
    const double after = now_s();
    best = std::max(best, flops / (after - begin));
    begin = after;
  }
  static_cast<void>(sink);
  return best;
}

}  // namespace

double measured_peak_flops(DataType type, int threads) {
  if (threads < 1) {
    throw std::invalid_argument{"threads is " + std::to_string(threads) + "; it must be at least 1"};
  }
  const TileFunctions& functions = selected_tile_functions();
  const bool bf16_dot = type == DataType::bf16 && functions.multiplies_bf16;
  const double seconds = bf16_dot ? 0.02 : 0.04;
  double total = 0.0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    double rate = best_rate(functions.fma_loop, functions.fma_flops_per_step, seconds);
    if (bf16_dot) {
      rate = std::max(rate, best_rate(bf16_dot_loop, bf16_dot_flops_per_step, seconds));
    }
    total += rate;
  }
  return total;
}

}  // namespace hcp
