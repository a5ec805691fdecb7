/// Where the values of q, k, v and dout come from: computed from a seed, or read from an HDF5 file.
///
/// A value depends on the global token (of the queries for q and dout, of the keys for k and v) and head
/// alone, so that every number of ranks gets the same problem, and any rank can compute or read again what
/// another one holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/position_ranges.hpp"
#include "kernels/tensor.hpp"
#include "src/job/problem_shape.hpp"

namespace hcp {

enum class InputTensor : std::uint8_t {
  q,
  k,
  v,
  dout,
  out,  ///< not an input: what the maker of a file computed from the same q, k, v
};

class InputSource {
 public:
  virtual ~InputSource() = default;

  /// Writes the rows `rows` and the heads from `first_head` (of the model) on, rounded to the type of
  /// `target`.
  ///
  /// @param layer counted from 0; a file holds one layer, which stands for all of them
  /// @param target [count_of(rows), heads, dim]
  /// @throws std::invalid_argument if a file cannot be read, or holds NaN, infinity or what `target` cannot
  /// hold in these rows; std::logic_error for `out` of a source that has none
  virtual void fill(InputTensor tensor, const PositionSet& rows, std::int64_t first_head, int layer,
                    TensorView target) const = 0;

  /// Whether `out` is known too.
  [[nodiscard]] virtual bool has_out() const = 0;
};

/// Values that a hash computes from (seed, layer, tensor, token, head, channel): the sum of two uniform
/// numbers, mean 0, variance 1, within +-sqrt(6). Scores softmax_scale q k^T are then about normal with
/// variance 1.
/// @source Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195 (splitmix64, the hash)
[[nodiscard]] std::unique_ptr<InputSource> make_synthetic_input(std::uint64_t seed);

/// Learnable sinks of the query heads from `first_head` on, [heads]; distributed as the values above.
[[nodiscard]] std::vector<float> synthetic_sinks(std::uint64_t seed, int layer, std::int64_t first_head,
                                                 std::int64_t heads);

/// An input file and the shape it describes: one row, doc_lengths and kv_doc_lengths empty where the file has
/// none.
struct InputFile {
  ProblemShape shape;
  std::unique_ptr<InputSource> source;
};

/// Opens an HDF5 file with the datasets q [tokens, heads, dim], k [kv tokens, kv heads, dim], v [kv tokens,
/// kv heads, v dim], and perhaps doc_lengths and kv_doc_lengths [documents], out and dout [tokens, heads, v
/// dim]; floating point of 2 or 4 bytes, lengths integer.
///
/// @param seed of dout, where the file has none
/// @throws std::invalid_argument if the file is missing, truncated or not HDF5, or a dataset is missing or
/// has another shape or type
[[nodiscard]] InputFile open_input_file(const std::string& path, std::uint64_t seed);

}  // namespace hcp
