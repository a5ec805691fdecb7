/// Rate of the host attention kernel on one block, in GFLOP/s and in percent of the multiply-add peak of its
/// threads. FLOP counts are those of the visible pairs: 2 (dim_qk + dim_v) forward, 2 (3 dim_qk + 2 dim_v)
/// backward, per pair and query head.
///
///   bench_attention_kernels --benchmark_filter='backward.*causal'
///   HCP_CPU_ISA=avx2 bench_attention_kernels
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/data_type.hpp"
#include "kernels/stopwatch.hpp"

namespace {

using namespace hcp;

struct Case {
  std::int64_t seq_len = 1024;
  std::int64_t heads_q = 4;
  std::int64_t heads_kv = 4;
  std::int64_t head_dim = 128;
  DataType type = DataType::fp32;
  bool causal = false;
  int threads = 1;
};

/// Operands of one block with everything that both passes read and write.
class Problem {
 public:
  explicit Problem(const Case& setup)
      : setup_{setup},
        offsets_{0, setup.seq_len},
        positions_{0, setup.seq_len},
        mask_{setup.causal ? AttentionMask::causal(offsets_) : AttentionMask::no_mask(offsets_)},
        rule_{&mask_, {0, 0, setup.heads_q / setup.heads_kv}, 1.0F / 11.3F},
        kernel_{make_cpu_attention_kernel(setup.threads)},
        q_{random_elements(setup.heads_q, 1)},
        k_{random_elements(setup.heads_kv, 2)},
        v_{random_elements(setup.heads_kv, 3)},
        dout_{random_elements(setup.heads_q, 4)},
        out_(elements(setup.heads_q)),
        lse_(static_cast<std::size_t>(setup.seq_len * setup.heads_q)),
        sum_(lse_.size()),
        delta_(lse_.size()),
        dq_(out_.size()),
        dk_(elements(setup.heads_kv)),
        dv_(dk_.size()) {}

  void forward() {
    kernel_->fill(lse_.data(), static_cast<std::int64_t>(lse_.size()),
                  -std::numeric_limits<float>::infinity());
    const RunningOutput running{out_.data(), lse_.data(),
                                sum_.data()};  // the maximum makes way for lse at the end
    kernel_->forward_block(rule_, query(), kv(), running);
    kernel_->finish_forward(running, setup_.seq_len, setup_.heads_q, setup_.head_dim, lse_.data());
  }

  void backward() {
    kernel_->backward_block(rule_,
                            {query(), view(dout_, setup_.heads_q), lse_.data(), delta_.data(), dq_.data()},
                            kv(), {dk_.data(), dv_.data()});
  }

  /// Visible pairs of all query heads.
  [[nodiscard]] double pairs() const {
    const PositionSet all{positions_};
    return static_cast<double>(mask_.area(all) * setup_.heads_q);
  }

 private:
  [[nodiscard]] std::size_t elements(std::int64_t heads) const {
    return static_cast<std::size_t>(setup_.seq_len * heads * setup_.head_dim);
  }

  [[nodiscard]] std::vector<std::byte> random_elements(std::int64_t heads, unsigned seed) const {
    std::mt19937 generator{seed};
    std::normal_distribution<float> normal;
    std::vector<float> values(elements(heads));
    for (float& value : values) {
      value = normal(generator);
    }
    std::vector<std::byte> stored(values.size() * size_of(setup_.type));
    round_to(setup_.type, values.data(), stored.data(), values.size());
    return stored;
  }

  [[nodiscard]] ConstTensorView view(const std::vector<std::byte>& data, std::int64_t heads) const {
    return {data.data(), setup_.type, setup_.seq_len, heads, setup_.head_dim};
  }
  [[nodiscard]] QueryBlock query() const { return {view(q_, setup_.heads_q), {&positions_, 1}}; }
  [[nodiscard]] KvBlock kv() const {
    return {view(k_, setup_.heads_kv), view(v_, setup_.heads_kv), {&positions_, 1}};
  }

  Case setup_;
  std::array<std::int64_t, 2> offsets_;
  PositionRange positions_;
  AttentionMask mask_;
  BlockRule rule_;
  std::unique_ptr<AttentionKernel> kernel_;
  std::vector<std::byte> q_, k_, v_, dout_;
  std::vector<float> out_, lse_, sum_, delta_, dq_, dk_, dv_;
};

double peak_flops(int threads) {
  static std::map<int, double> measured;
  const auto [entry, fresh] = measured.try_emplace(threads, 0.0);
  if (fresh) {
    entry->second = measured_peak_flops(DataType::fp32, threads);
  }
  return entry->second;
}

void report(benchmark::State& state, double flops, double seconds, int threads) {
  const double rate = flops * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["%peak"] = 100.0 * rate / peak_flops(threads);
}

void forward(benchmark::State& state, const Case& setup) {
  Problem problem{setup};
  problem.forward();
  const double begin = now_s();
  for (auto _ : state) {
    problem.forward();
  }
  report(state, problem.pairs() * 4.0 * static_cast<double>(setup.head_dim), now_s() - begin, setup.threads);
}

void backward(benchmark::State& state, const Case& setup) {
  Problem problem{setup};
  problem.forward();
  const double begin = now_s();
  for (auto _ : state) {
    problem.backward();
  }
  report(state, problem.pairs() * 10.0 * static_cast<double>(setup.head_dim), now_s() - begin, setup.threads);
}

void add_cases(const Case& setup, const std::string& name) {
  const std::string full_name = name + (setup.causal ? "/causal" : "/no_mask") + "/d" +
                                std::to_string(setup.head_dim) + "/S" + std::to_string(setup.seq_len) +
                                "/threads" + std::to_string(setup.threads);
  benchmark::RegisterBenchmark(("forward/" + full_name).c_str(), forward, setup)
      ->UseRealTime()
      ->MeasureProcessCPUTime();
  benchmark::RegisterBenchmark(("backward/" + full_name).c_str(), backward, setup)
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}

const bool registered = [] {
  benchmark::AddCustomContext("instruction set", std::string{cpu_isa_name()});
  for (const int threads : {1, 2}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t head_dim : {32, 64, 128, 256}) {
        add_cases({.head_dim = head_dim, .causal = causal, .threads = threads}, "fp32");
      }
    }
  }
  add_cases({.type = DataType::bf16}, "bf16");
  add_cases({.type = DataType::fp16}, "fp16");
  add_cases({.seq_len = 4096, .heads_q = 1, .heads_kv = 1, .threads = 2}, "one_head");
  add_cases({.heads_q = 8, .heads_kv = 1}, "mqa");
  return true;
}();

}  // namespace
