#include "kernels/cpu/row_operations.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/block_checks.hpp"
#include "kernels/cpu/cpu_isa.hpp"

namespace hcp {
namespace {

/// Below this one thread is done (3 us at 100 GB/s from its caches) when others have only just woken.
constexpr std::int64_t bytes_worth_threads = 256 * 1024;

/// From this size on a target is stored past the caches: with 32 MiB of third-level cache it would push out
/// itself and its source. Measured there (Zen 4), 16 MiB to 16 MiB: 54 GB/s against 25.
constexpr std::int64_t streaming_bytes = 16 * 1024 * 1024;

constexpr std::int64_t cache_line = 64;

template <typename Byte>
std::int64_t bytes_of(const BasicRowTable<Byte>& table, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(table.type));
}

template <typename Byte>
BasicRowTable<Byte> from_element(const BasicRowTable<Byte>& table, std::int64_t element) {
  return {table.data + bytes_of(table, element), table.type, table.stride};
}

/// Calls `work(first, count)` for disjoint runs of the items [0, items), on `threads` threads if `bytes` are
/// worth it.
template <typename Work>
void for_shares(int threads, std::int64_t bytes, std::int64_t items, const Work& work) {
  if (items == 0) {
    return;
  }
  if (threads == 1 || bytes < bytes_worth_threads) {
    work(std::int64_t{0}, items);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t first = items * thread / team;
    work(first, items * (thread + 1) / team - first);
  }
}

/// Calls `work(source, target, rows, elements)` for disjoint parts of two tables, on `threads` threads if
/// they are large enough. Tables without gaps are single runs, cut where cache lines begin.
template <typename Work>
void for_parts(int threads, const BasicRowTable<const std::byte>& source,
               const BasicRowTable<std::byte>& target, std::int64_t rows, std::int64_t elements,
               const Work& work) {
  const std::int64_t total = rows * elements;
  const std::int64_t bytes = bytes_of(source, total) + bytes_of(target, total);
  if (rows == 1 || (source.stride == elements && target.stride == elements)) {
    constexpr std::int64_t granule = cache_line / 2;  // elements: whole lines of every type
    for_shares(threads, bytes, (total + granule - 1) / granule, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t begin = first * granule;
      work(from_element(source, begin), from_element(target, begin), 1,
           std::min(count * granule, total - begin));
    });
    return;
  }
  for_shares(threads, bytes, rows, [&](std::int64_t first, std::int64_t count) {
    work(from_element(source, first * source.stride), from_element(target, first * target.stride), count,
         elements);
  });
}

StoreHint hint_for(const BasicRowTable<std::byte>& target, std::int64_t rows, std::int64_t elements) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(target.data) % cache_line == 0 &&
                       bytes_of(target, target.stride) % cache_line == 0;
  const bool large = bytes_of(target, rows * elements) >= streaming_bytes;
  return aligned && large ? StoreHint::streaming : StoreHint::cached;
}

BasicRowTable<const std::byte> heads_of(const ConstTensorView& tensor) {
  return {tensor.data, tensor.type, tensor.dim};
}

/// Folds one more key with the value 0 into (row, head) pairs `first` .. `first + count - 1`.
void fold_sinks(const RunningOutput& running, std::int64_t first, std::int64_t count, std::int64_t heads,
                std::int64_t dim_v, const float* sinks) {
  for (std::int64_t i = first; i < first + count; ++i) {
    const double max = running.max[i];
    const double sink = static_cast<double>(sinks[i % heads]) * std::numbers::log2e;
    if (sink == -std::numeric_limits<double>::infinity()) {
      continue;
    }
    if (sink <= max) {
      running.sum[i] += static_cast<float>(std::exp2(sink - max));
      continue;
    }
    const double factor = std::exp2(max - sink);  // 0 for a row that saw nothing
    running.sum[i] = static_cast<float>(running.sum[i] * factor + 1.0);
    running.max[i] = static_cast<float>(sink);
    for (std::int64_t element = i * dim_v; element < (i + 1) * dim_v; ++element) {
      running.out[element] *= static_cast<float>(factor);
    }
  }
}

/// Calls `work(first, count)` for runs of heads, each of which goes through all rows.
template <typename Work>
void for_heads(int threads, std::int64_t rows, std::int64_t heads, const Work& work) {
  for_shares(threads, rows * heads * static_cast<std::int64_t>(sizeof(float)), heads, work);
}

}  // namespace

const RowFunctions& selected_row_functions() {
  const std::string_view name = cpu_isa_name();
#if defined(__x86_64__)
  if (name.starts_with("avx512")) {
    return avx512_row_functions();
  }
  if (name == "avx2") {
    return avx2_row_functions();
  }
#endif
  return portable_row_functions();
}

void RowOperations::max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) const {
  for_heads(threads_, rows, heads, [&](std::int64_t first, std::int64_t count) {
    std::fill_n(logits + first, count, -std::numeric_limits<float>::infinity());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = first; head < first + count; ++head) {
        logits[head] = std::max(logits[head], max[row * heads + head]);
      }
    }
    for (std::int64_t head = first; head < first + count; ++head) {
      logits[head] = static_cast<float>(static_cast<double>(logits[head]) * std::numbers::ln2);
    }
  });
}

void RowOperations::sink_gradients(const float* sinks, const float* lse, const float* delta,
                                   std::int64_t rows, std::int64_t heads, float* dsinks) const {
  for_heads(threads_, rows, heads, [&](std::int64_t first, std::int64_t count) {
    std::vector<double> sums(static_cast<std::size_t>(count));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = first; head < first + count; ++head) {
        const std::int64_t i = row * heads + head;
        if (!std::isinf(lse[i])) {
          const double p = std::exp(static_cast<double>(sinks[head]) - static_cast<double>(lse[i]));
          sums[static_cast<std::size_t>(head - first)] -= p * static_cast<double>(delta[i]);
        }
      }
    }
    std::ranges::transform(sums, dsinks + first, [](double sum) { return static_cast<float>(sum); });
  });
}

void RowOperations::finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads,
                                   std::int64_t dim_v, float* lse, const float* sinks) const {
  const std::int64_t bytes = 2 * rows * heads * dim_v * static_cast<std::int64_t>(sizeof(float));
  for_shares(threads_, bytes, rows * heads, [&](std::int64_t first, std::int64_t count) {
    if (sinks != nullptr) {
      fold_sinks(running, first, count, heads, dim_v, sinks);
    }
    functions_.normalise(running.out + first * dim_v, running.max + first, running.sum + first, count, dim_v,
                         lse + first);
  });
}

void RowOperations::row_dot(const ConstTensorView& out, const ConstTensorView& dout, float* delta) const {
  check_row_dot(out, dout);
  for_shares(threads_, out.bytes() + dout.bytes(), out.rows * out.heads,
             [&](std::int64_t first, std::int64_t count) {
               functions_.dot(from_element(heads_of(out), first * out.dim),
                              from_element(heads_of(dout), first * out.dim), count, out.dim, delta + first);
             });
}

void RowOperations::copy_rows(const BasicRowTable<const std::byte>& source,
                              const BasicRowTable<std::byte>& target, std::int64_t rows,
                              std::int64_t elements) const {
  const StoreHint hint = hint_for(target, rows, elements);
  for_parts(threads_, source, target, rows, elements,
            [&](const auto& from, const auto& to, std::int64_t part_rows, std::int64_t part_elements) {
              functions_.copy(from, to, part_rows, part_elements, hint);
            });
}

void RowOperations::add_rows(const BasicRowTable<const std::byte>& source,
                             const BasicRowTable<std::byte>& target, std::int64_t rows,
                             std::int64_t elements) const {
  check_add_rows(target);
  for_parts(threads_, source, target, rows, elements, functions_.add);
}

}  // namespace hcp
