/// Rate of the host kernel's operations on rows against memcpy of the same bytes: read and written together,
/// so memcpy copies half of them. The two take turns in short windows and the best of each counts, because
/// other tenants of a machine only ever slow a window down.
///
///   bench_row_operations --benchmark_filter='pack'
///   HCP_CPU_ISA=avx2 bench_row_operations
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/buffer.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/row_operations.hpp"
#include "kernels/stopwatch.hpp"

namespace {

using namespace hcp;

constexpr std::int64_t heads = 32;
constexpr std::int64_t packed_heads = 4;  ///< of one rank in an all-to-all over eight
constexpr std::int64_t dim = 128;

/// Elements of a type, all 1, aligned to cache lines.
class Array {
 public:
  Array(DataType type, std::int64_t elements)
      : type_{type},
        ledger_{std::make_unique<MemoryLedger>()},
        buffer_{*ledger_, MemoryCategory::qkv, elements * static_cast<std::int64_t>(size_of(type))} {
    const std::vector<float> ones(static_cast<std::size_t>(elements), 1.0F);
    round_to(type, ones.data(), buffer_.data(), ones.size());
  }

  [[nodiscard]] BasicRowTable<std::byte> table(std::int64_t stride) const {
    return {buffer_.data(), type_, stride};
  }
  [[nodiscard]] BasicRowTable<const std::byte> const_table(std::int64_t stride) const {
    return {buffer_.data(), type_, stride};
  }
  [[nodiscard]] ConstTensorView view(std::int64_t rows) const {
    return {buffer_.data(), type_, rows, heads, dim};
  }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(buffer_.data()); }

 private:
  DataType type_;
  std::unique_ptr<MemoryLedger> ledger_;
  Buffer buffer_;
};

std::int64_t size(DataType type) {
  return static_cast<std::int64_t>(size_of(type));
}

double seconds_per_call(std::int64_t calls, const std::function<void()>& call) {
  const double begin = now_s();
  for (std::int64_t i = 0; i < calls; ++i) {
    call();
    benchmark::ClobberMemory();
  }
  return (now_s() - begin) / static_cast<double>(calls);
}

/// `operation` reads and writes `bytes` bytes in all.
void compare(benchmark::State& state, std::int64_t bytes, const std::function<void()>& operation) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  const Array source{DataType::fp32, bytes / 8 + 1};
  const Array target{DataType::fp32, bytes / 8 + 1};
  const auto copy = [&] { std::memcpy(target.floats(), source.floats(), half); };
  constexpr std::int64_t window_bytes = 16 << 20;  // about half a millisecond
  const std::int64_t calls = std::max(std::int64_t{1}, window_bytes / bytes);

  double best_operation = std::numeric_limits<double>::infinity();
  double best_copy = best_operation;
  for (auto _ : state) {
    const double seconds = seconds_per_call(calls, operation);
    best_operation = std::min(best_operation, seconds);
    best_copy = std::min(best_copy, seconds_per_call(calls, copy));
    state.SetIterationTime(seconds);
  }
  state.counters["GB/s"] = static_cast<double>(bytes) / best_operation * 1e-9;
  state.counters["%memcpy"] = 100.0 * best_copy / best_operation;
}

RowOperations operations() {
  return {selected_row_functions(), 1};
}

/// Rows of `row_bytes` bytes read and written that make about `bytes`.
std::int64_t rows_of(const benchmark::State& state, std::int64_t row_bytes) {
  return state.range(0) / row_bytes;
}

void convert(benchmark::State& state, DataType from, DataType to) {
  constexpr std::int64_t elements = heads * dim;
  const std::int64_t row_bytes = elements * (size(from) + size(to));
  const std::int64_t rows = rows_of(state, row_bytes);
  const Array source{from, rows * elements};
  const Array target{to, rows * elements};
  compare(state, rows * row_bytes, [&, rows_operations = operations()] {
    rows_operations.copy_rows(source.const_table(elements), target.table(elements), rows, elements);
  });
}

enum class Direction : std::uint8_t { pack, unpack };

/// A few heads of rows of many, to or from a block of their own.
void pack(benchmark::State& state, DataType type, Direction direction) {
  constexpr std::int64_t elements = packed_heads * dim;
  const std::int64_t row_bytes = 2 * elements * size(type);
  const std::int64_t rows = rows_of(state, row_bytes);
  const Array whole{type, rows * heads * dim};
  const Array block{type, rows * elements};
  const auto& source = direction == Direction::pack ? whole : block;
  const auto& target = direction == Direction::pack ? block : whole;
  const std::int64_t source_stride = direction == Direction::pack ? heads * dim : elements;
  const std::int64_t target_stride = direction == Direction::pack ? elements : heads * dim;
  compare(state, rows * row_bytes, [&, rows_operations = operations()] {
    rows_operations.copy_rows(source.const_table(source_stride), target.table(target_stride), rows, elements);
  });
}

void add(benchmark::State& state, DataType type) {
  constexpr std::int64_t elements = heads * dim;
  const std::int64_t row_bytes = elements * (size(type) + 2 * size(DataType::fp32));
  const std::int64_t rows = rows_of(state, row_bytes);
  const Array source{type, rows * elements};
  const Array target{DataType::fp32, rows * elements};
  compare(state, rows * row_bytes, [&, rows_operations = operations()] {
    rows_operations.add_rows(source.const_table(elements), target.table(elements), rows, elements);
  });
}

void finish_forward(benchmark::State& state) {
  const std::int64_t row_bytes = heads * (2 * dim + 3) * size(DataType::fp32);
  const std::int64_t rows = rows_of(state, row_bytes);
  const Array out{DataType::fp32, rows * heads * dim};
  const Array max{DataType::fp32, rows * heads};
  const Array sum{DataType::fp32, rows * heads};
  const Array lse{DataType::fp32, rows * heads};
  compare(state, rows * row_bytes, [&, rows_operations = operations()] {
    rows_operations.finish_forward({out.floats(), max.floats(), sum.floats()}, rows, heads, dim,
                                   lse.floats());
  });
}

void row_dot(benchmark::State& state, DataType type) {
  const std::int64_t row_bytes = heads * (2 * dim * size(type) + size(DataType::fp32));
  const std::int64_t rows = rows_of(state, row_bytes);
  const Array out{type, rows * heads * dim};
  const Array dout{type, rows * heads * dim};
  const Array delta{DataType::fp32, rows * heads};
  compare(state, rows * row_bytes, [&, rows_operations = operations()] {
    rows_operations.row_dot(out.view(rows), dout.view(rows), delta.floats());
  });
}

template <typename... Arguments>
void register_sizes(const std::string& name, Arguments... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), arguments...)
      ->ArgName("bytes")
      ->Arg(256 << 10)  // second-level cache
      ->Arg(4 << 20)    // third-level cache
      ->Arg(128 << 20)  // memory
      ->UseManualTime()
      ->Iterations(30);
}

const bool registered = [] {
  benchmark::AddCustomContext("instruction set", std::string{selected_row_functions().instruction_set});
  for (const DataType type : {DataType::fp32, DataType::bf16}) {
    const std::string name{name_of(type)};
    register_sizes("pack/" + name, pack, type, Direction::pack);
    register_sizes("unpack/" + name, pack, type, Direction::unpack);
    register_sizes("add_rows/" + name, add, type);
    register_sizes("row_dot/" + name, row_dot, type);
  }
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    const std::string name{name_of(type)};
    register_sizes("convert/fp32_to_" + name, convert, DataType::fp32, type);
    register_sizes("convert/" + name + "_to_fp32", convert, type, DataType::fp32);
  }
  register_sizes("finish_forward/fp32", finish_forward);
  return true;
}();

}  // namespace
