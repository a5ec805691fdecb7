/// Rate of the host attention kernel on one block, and ratios of two such rates.
///
/// Every figure is the best of repeated runs. The peak of the arithmetic units, and the other side of a
/// ratio, are measured in turn with them, so that all see the same machine. %peak is against the multiply-add
/// peak of the threads, for bf16 against the peak of bf16 dot products where there are such instructions.
///
///   bench_attention_kernels --benchmark_filter='backward/bf16'
///   HCP_CPU_ISA=avx2 bench_attention_kernels
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/data_type.hpp"
#include "kernels/stopwatch.hpp"
#include "tests/bench/block_problem.hpp"

namespace {

using namespace hcp;
using hcp::bench::BlockProblem;
using hcp::bench::Case;

enum class Pass { forward, backward };

/// One case and its best rate so far.
class Contender {
 public:
  Contender(const Case& setup, Pass pass) : problem_{setup}, pass_{pass} {
    problem_.forward();  // backward needs its lse
    run();
    best_ = 0.0;
  }

  /// Returns the seconds it took.
  double run() {
    const double begin = now_s();
    pass_ == Pass::forward ? problem_.forward() : problem_.backward();
    const double seconds = now_s() - begin;
    best_ = std::max(best_, flops() / seconds);
    return seconds;
  }

  [[nodiscard]] double best_flops() const { return best_; }

 private:
  [[nodiscard]] double flops() const {
    return pass_ == Pass::forward ? problem_.forward_flops() : problem_.backward_flops();
  }

  BlockProblem problem_;
  Pass pass_;
  double best_ = 0.0;
};

void rate(benchmark::State& state, const Case& setup, Pass pass) {
  Contender contender{setup, pass};
  double peak = measured_peak_flops(setup.type, setup.threads);
  double since_peak_s = 0.0;
  for (auto _ : state) {
    const double seconds = contender.run();
    state.SetIterationTime(seconds);
    since_peak_s += seconds;
    if (since_peak_s > 0.04) {  // as long as measuring the peak takes
      peak = std::max(peak, measured_peak_flops(setup.type, setup.threads));
      since_peak_s = 0.0;
    }
  }
  state.counters["GFLOP/s"] = contender.best_flops() * 1e-9;
  state.counters["%peak"] = 100.0 * contender.best_flops() / peak;
}

/// Counter `name` is the rate of `setup` over the rate of `base`.
void ratio(benchmark::State& state, const Case& setup, const Case& base, Pass pass, const std::string& name) {
  Contender contender{setup, pass};
  Contender other{base, pass};
  for (auto _ : state) {
    state.SetIterationTime(contender.run() + other.run());
  }
  state.counters["GFLOP/s"] = contender.best_flops() * 1e-9;
  state.counters[name] = contender.best_flops() / other.best_flops();
}

const char* name_of(Pass pass) {
  return pass == Pass::forward ? "forward/" : "backward/";
}

std::string name_of(const Case& setup) {
  return std::string{name_of(setup.type)} + (setup.causal ? "/causal" : "/no_mask") + "/d" +
         std::to_string(setup.head_dim) + "/S" + std::to_string(setup.seq_len) + "/heads" +
         std::to_string(setup.heads_q) +
         (setup.heads_q == setup.heads_kv ? "" : ":" + std::to_string(setup.heads_kv));
}

void add_rate(const Case& setup) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    benchmark::RegisterBenchmark((name_of(pass) + name_of(setup)).c_str(), rate, setup, pass)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void add_ratio(const Case& setup, const Case& base, const std::string& name) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    benchmark::RegisterBenchmark((name + "/" + name_of(pass) + name_of(setup)).c_str(), ratio, setup, base,
                                 pass, name)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void add_rates() {
  for (const bool causal : {false, true}) {
    for (const std::int64_t head_dim : {64, 128, 256}) {
      add_rate({.head_dim = head_dim, .causal = causal});
    }
    add_rate({.heads_q = 4, .heads_kv = 4, .causal = causal});
    for (const DataType type : {DataType::bf16, DataType::fp16}) {
      add_rate({.type = type, .causal = causal});
    }
  }
  add_rate({.seq_len = 2048, .heads_q = 8, .heads_kv = 1});
  for (const std::int64_t seq_len : {512, 1024, 2048, 8192, 16384, 32768, 65536}) {
    add_rate({.seq_len = seq_len, .causal = true});
  }
}

void add_thread_ratios() {
  for (const bool causal : {false, true}) {
    for (const std::int64_t seq_len : {2048, 4096}) {
      for (const std::int64_t heads : {1, 8}) {
        const Case one{.seq_len = seq_len, .heads_q = heads, .heads_kv = heads, .causal = causal};
        Case two = one;
        two.threads = 2;
        add_ratio(two, one, "threads2:1");
      }
    }
  }
}

/// The own block of a zigzag shard, two ranges, and one range as long as both: as many visible pairs.
void add_zigzag_ratios() {
  const Case shard{.seq_len = 8192, .causal = true, .zigzag_cp = 8};
  add_ratio(shard, {.seq_len = 1024, .causal = true}, "zigzag:range");
}

/// What dropout costs.
void add_dropout_ratios() {
  for (const DataType type : {DataType::fp32, DataType::bf16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      const Case without{.head_dim = head_dim, .type = type, .causal = true};
      Case with = without;
      with.dropout = 0.1;
      add_ratio(with, without, "dropout:none");
    }
  }
}

const bool registered = [] {
  benchmark::AddCustomContext("instruction set", std::string{cpu_isa_name()});
  add_rates();
  add_thread_ratios();
  add_zigzag_ratios();
  add_dropout_ratios();
  return true;
}();

}  // namespace
