/// The loops over rows behind RowFunctions, once for all instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/normalise_rows.hpp"
#include "kernels/cpu/row_functions.hpp"
#include "kernels/cpu/row_vectors.hpp"

namespace hcp::row_arithmetic {

template <typename Isa, typename From, typename To, StoreHint hint>
[[gnu::always_inline]] inline void copy_row(const std::byte* source, std::byte* target,
                                            std::int64_t elements) {
  using FromPacked = typename From::Packed;
  using ToPacked = typename To::Packed;
  constexpr std::int64_t step = sizeof(FromPacked) / From::size;
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + step <= elements; i += step) {
    const ToPacked packed = To::round(From::widen(load<FromPacked>(source + i * From::size)));
    if constexpr (hint == StoreHint::streaming) {
      Isa::stream(target + i * To::size, packed);
    } else {
      store(target + i * To::size, packed);
    }
  }
  if (i < elements) {
    const auto rest = load_some<FromPacked>(source + i * From::size, (elements - i) * From::size);
    store_some(target + i * To::size, To::round(From::widen(rest)), (elements - i) * To::size);
  }
}

/// How far ahead rows with gaps are fetched, which begin where no prefetcher expects them.
/// Measured (Zen 4, rows of 1 KiB, 16 KiB apart, in memory): 14 GB/s without, 32 at 4 KiB, 36 at 8 and 34 at
/// 16 KiB; into the first-level cache instead of the second only 20.
inline constexpr std::int64_t prefetched_bytes = 8192;

[[gnu::always_inline]] inline void prefetch(const std::byte* row, std::int64_t bytes) {
  constexpr std::int64_t cache_line = 64;
  for (std::int64_t byte = 0; byte < bytes; byte += cache_line) {
    __builtin_prefetch(row + byte, 0, 2);
  }
}

/// Strides in bytes.
template <typename Isa, typename From, typename To, StoreHint hint>
void copy_rows(const std::byte* source, std::int64_t source_stride, std::byte* target,
               std::int64_t target_stride, std::int64_t rows, std::int64_t elements) {
  const std::int64_t source_bytes = elements * From::size;
  const std::int64_t target_bytes = elements * To::size;
  const std::int64_t rows_ahead = 1 + prefetched_bytes / (source_bytes + 1);
  const bool source_gaps = source_stride > source_bytes;
  const bool target_gaps = hint == StoreHint::cached && target_stride > target_bytes;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (source_gaps && row + rows_ahead < rows) {
      prefetch(source + (row + rows_ahead) * source_stride, source_bytes);
    }
    if (target_gaps && row + rows_ahead < rows) {
      prefetch(target + (row + rows_ahead) * target_stride, target_bytes);
    }
    copy_row<Isa, From, To, hint>(source + row * source_stride, target + row * target_stride, elements);
  }
  if constexpr (hint == StoreHint::streaming) {
    Isa::finish_streaming();
  }
}

template <typename Isa>
void copy(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
          std::int64_t rows, std::int64_t elements, StoreHint hint) {
  with_storage<Isa>(source.type, [&](auto from) {
    using From = decltype(from);
    with_storage<Isa>(target.type, [&](auto to) {
      using To = decltype(to);
      const auto run = [&](auto read, auto written, std::int64_t row_elements) {
        using Read = decltype(read);
        using Written = decltype(written);
        const auto copy_all = hint == StoreHint::streaming
                                  ? copy_rows<Isa, Read, Written, StoreHint::streaming>
                                  : copy_rows<Isa, Read, Written, StoreHint::cached>;
        copy_all(source.data, source.stride * From::size, target.data, target.stride * To::size, rows,
                 row_elements);
      };
      if constexpr (__is_same(From, To)) {
        run(StoredBytes<Isa>{}, StoredBytes<Isa>{}, elements * From::size);
      } else {
        run(From{}, To{}, elements);
      }
    });
  });
}

template <typename Isa>
void add(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
         std::int64_t rows, std::int64_t elements) {
  with_storage<Isa>(source.type, [&](auto from) {
    using From = decltype(from);
    using Packed = typename From::Packed;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::byte* const addend = source.data + row * source.stride * From::size;
      std::byte* const sum = target.data + row * target.stride * 4;
      std::int64_t i = 0;
#pragma GCC unroll 4
      for (; i + Isa::lanes <= elements; i += Isa::lanes) {
        store(sum + i * 4,
              load<Floats<Isa>>(sum + i * 4) + From::widen(load<Packed>(addend + i * From::size)));
      }
      if (i < elements) {
        const std::int64_t rest = elements - i;
        store_some(sum + i * 4,
                   load_some<Floats<Isa>>(sum + i * 4, rest * 4) +
                       From::widen(load_some<Packed>(addend + i * From::size, rest * From::size)),
                   rest * 4);
      }
    }
  });
}

/// Sum over the lanes, pairwise.
template <int lanes>
[[gnu::always_inline]] inline float lane_sum(typename Vectors<lanes>::Floats values) {
  if constexpr (lanes == 1) {
    return values[0];
  } else {
    using Half = typename Vectors<lanes / 2>::Floats;
    Half halves[2];
    __builtin_memcpy(halves, &values, sizeof(values));
    return lane_sum<lanes / 2>(halves[0] + halves[1]);
  }
}

/// Products of the elements of two registers as they lie in memory, added to the lanes of `sum`.
template <typename Isa, typename Left, typename Right>
struct Products {
  using LeftPacked = typename Left::Packed;
  using RightPacked = typename Right::Packed;
  [[gnu::always_inline]] static Floats<Isa> add(Floats<Isa> sum, LeftPacked left, RightPacked right) {
    return sum + Left::widen(left) * Right::widen(right);
  }
};

/// Two bf16 values in 32 bits are widened with one instruction each, as their order does not matter.
template <typename Isa>
struct Products<Isa, StoredBf16<Isa>, StoredBf16<Isa>> {
  using LeftPacked = Words<Isa>;
  using RightPacked = Words<Isa>;
  [[gnu::always_inline]] static Floats<Isa> add(Floats<Isa> sum, Words<Isa> left, Words<Isa> right) {
    constexpr std::uint32_t high = 0xffff'0000;
    const Floats<Isa> with_low = sum + (Floats<Isa>)(left << 16) * (Floats<Isa>)(right << 16);
    return with_low + (Floats<Isa>)(left & high) * (Floats<Isa>)(right & high);
  }
};

template <typename Isa, typename Left, typename Right>
[[gnu::always_inline]] inline float dot_row(const std::byte* left, const std::byte* right,
                                            std::int64_t elements) {
  using Product = Products<Isa, Left, Right>;
  using LeftPacked = typename Product::LeftPacked;
  using RightPacked = typename Product::RightPacked;
  constexpr std::int64_t step = sizeof(LeftPacked) / Left::size;
  constexpr int chains = 4;  // independent sums: latency of a multiply-add, at one vector of each per cycle
  Floats<Isa> sums[chains]{};
  std::int64_t i = 0;
  for (; i + chains * step <= elements; i += chains * step) {
#pragma GCC unroll 4
    for (int chain = 0; chain < chains; ++chain) {
      const std::int64_t at = i + chain * step;
      sums[chain] = Product::add(sums[chain], load<LeftPacked>(left + at * Left::size),
                                 load<RightPacked>(right + at * Right::size));
    }
  }
  for (; i < elements; i += step) {
    const std::int64_t count = elements - i < step ? elements - i : step;
    sums[0] = Product::add(sums[0], load_up_to<LeftPacked>(left + i * Left::size, count * Left::size),
                           load_up_to<RightPacked>(right + i * Right::size, count * Right::size));
  }
  return lane_sum<Isa::lanes>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <typename Isa>
void dot(const BasicRowTable<const std::byte>& left, const BasicRowTable<const std::byte>& right,
         std::int64_t rows, std::int64_t elements, float* sums) {
  with_storage<Isa>(left.type, [&](auto left_storage) {
    with_storage<Isa>(right.type, [&](auto right_storage) {
      using Left = decltype(left_storage);
      using Right = decltype(right_storage);
      for (std::int64_t row = 0; row < rows; ++row) {
        sums[row] = dot_row<Isa, Left, Right>(left.data + row * left.stride * Left::size,
                                              right.data + row * right.stride * Right::size, elements);
      }
    });
  });
}

template <typename Isa>
constexpr RowFunctions make_row_functions(const char* instruction_set) {
  return {.instruction_set = instruction_set,
          .copy = copy<Isa>,
          .add = add<Isa>,
          .dot = dot<Isa>,
          .normalise = normalise<Isa>};
}

}  // namespace hcp::row_arithmetic
