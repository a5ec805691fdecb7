/// Results of one layer that a dense attention in double made, on ranks that are threads: shards as zigzag
/// deals them, and lse as a head swap leaves it. Tests spoil them and verify.
#pragma once

#include <barrier>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "src/job/verification.hpp"

namespace hcp::test {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

// The second of two tensor-parallel ranks of a model with 8 query heads and 4 KV heads.
inline constexpr HeadSpan query_heads{4, 4};
inline constexpr HeadSpan kv_heads{2, 2};
inline constexpr std::int64_t queries_per_kv = 2;
inline constexpr std::int64_t dim_qk = 8;
inline constexpr std::int64_t dim_v = 16;
inline constexpr std::int64_t tokens = 300;
inline constexpr float scale = 0.35F;
inline const std::vector<std::int64_t> offsets{0, 120, 120, 300};
inline const std::vector<PositionSet> shards{{{0, 75}, {250, 300}}, {{75, 250}}, {}};
inline const std::vector<HeadSpan> lse_heads{{4, 1}, {5, 2}, {7, 1}};

/// A tensor of a storage type that is read and written as numbers.
struct Stored {
  DataType type;
  std::int64_t rows, heads, dim;
  std::vector<std::byte> bytes;

  Stored(DataType storage, std::int64_t r, std::int64_t h, std::int64_t d)
      : type{storage},
        rows{r},
        heads{h},
        dim{d},
        bytes(static_cast<std::size_t>(r * h * d) * size_of(storage)) {}
  [[nodiscard]] std::byte* place(std::int64_t row, std::int64_t head, std::int64_t i) {
    return bytes.data() + static_cast<std::size_t>((row * heads + head) * dim + i) * size_of(type);
  }
  [[nodiscard]] double get(std::int64_t row, std::int64_t head, std::int64_t i) {
    float value = 0;
    widen(type, place(row, head, i), &value, 1);
    return value;
  }
  void set(std::int64_t row, std::int64_t head, std::int64_t i, double value) {
    const auto narrow = static_cast<float>(value);
    round_to(type, &narrow, place(row, head, i), 1);
  }
  void add(std::int64_t row, std::int64_t head, std::int64_t i, double value) {
    set(row, head, i, get(row, head, i) + value);
  }
  [[nodiscard]] TensorView view() { return {bytes.data(), type, rows, heads, dim}; }
  [[nodiscard]] Stored rows_at(const PositionSet& positions, DataType to) {
    Stored part{to, count_of(positions), heads, dim};
    std::int64_t row = 0;
    for (const PositionRange range : positions) {
      for (std::int64_t token = range.begin; token < range.end; ++token, ++row) {
        for (std::int64_t i = 0; i < heads * dim; ++i) {
          part.set(row, i / dim, i % dim, get(token, i / dim, i % dim));
        }
      }
    }
    return part;
  }
};

struct Whole {
  Stored out{DataType::fp32, tokens, query_heads.count, dim_v};
  Stored lse{DataType::fp32, tokens, query_heads.count, 1};
  Stored dq{DataType::fp32, tokens, query_heads.count, dim_qk};
  Stored dk{DataType::fp32, tokens, kv_heads.count, dim_qk};
  Stored dv{DataType::fp32, tokens, kv_heads.count, dim_v};
};

/// What one rank holds.
struct Rank {
  Stored out, dq, dk, dv;
  std::vector<float> lse;
  LayerResults results;

  Rank(std::size_t rank, Whole& whole, const AttentionMask& mask, DataType type);
};

/// Collects what the threads give, in the order of their ranks.
class ThreadGather {
 public:
  explicit ThreadGather(std::size_t ranks) : parts_(ranks), barrier_{static_cast<std::ptrdiff_t>(ranks)} {}

  std::vector<double> gather(std::size_t rank, std::span<const double> mine) {
    parts_[rank].assign(mine.begin(), mine.end());
    barrier_.arrive_and_wait();
    std::vector<double> all;
    for (const auto& part : parts_) {
      all.insert(all.end(), part.begin(), part.end());
    }
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::vector<std::vector<double>> parts_;
  std::barrier<> barrier_;
};

/// Verifies the dense results after `spoil` has changed those of the ranks; one result per rank.
std::vector<VerificationResult> verify(
    Coverage coverage, DataType type = DataType::fp32,
    const std::function<void(std::vector<Rank>&)>& spoil = [](std::vector<Rank>&) {});

[[nodiscard]] inline double error_of(const VerificationResult& result, VerifiedTensor tensor) {
  return result.of(tensor).value().error;
}

}  // namespace hcp::test
