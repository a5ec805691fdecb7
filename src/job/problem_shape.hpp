/// The sizes of one attention problem with every default filled in, and what sizes are possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/job/job_config.hpp"

namespace hcp {

struct ProblemShape {
  std::int64_t seq_length = 0;               ///< tokens of one row of queries
  std::int64_t micro_batch_size = 1;         ///< rows, packed one after the other
  std::vector<std::int64_t> doc_lengths;     ///< of one row, sums to seq_length
  std::int64_t kv_seq_length = 0;            ///< tokens of one row of keys and values
  std::vector<std::int64_t> kv_doc_lengths;  ///< [documents] of one row, sums to kv_seq_length
  std::int64_t query_heads = 0;              ///< of the model, before tensor parallelism
  std::int64_t kv_heads = 0;
  std::int64_t kv_channels = 0;
  std::int64_t v_channels = 0;
  std::optional<float> given_softmax_scale{};

  /// Of all rows together.
  [[nodiscard]] std::int64_t tokens() const { return micro_batch_size * seq_length; }
  [[nodiscard]] std::int64_t kv_tokens() const { return micro_batch_size * kv_seq_length; }
  /// Whether queries and keys are the same tokens of the same documents.
  [[nodiscard]] bool is_self_attention() const { return kv_doc_lengths == doc_lengths; }
  /// One value per document of one row, once for each row.
  [[nodiscard]] std::vector<std::int64_t> of_all_rows(const std::vector<std::int64_t>& of_row) const;
  /// [documents of all rows + 1], from 0 to tokens().
  [[nodiscard]] std::vector<std::int64_t> document_offsets() const;
  /// The same of the keys, to kv_tokens().
  [[nodiscard]] std::vector<std::int64_t> kv_document_offsets() const;
  /// The given one, or 1 / sqrt(kv_channels).
  [[nodiscard]] float softmax_scale() const;
  friend bool operator==(const ProblemShape&, const ProblemShape&) = default;
};

/// The shape that the options alone describe.
/// @throws std::invalid_argument that names the options that are missing, or for an impossible shape
[[nodiscard]] ProblemShape shape_from_options(const JobConfig& config);

/// The shape of an input file, held against what the user said besides.
/// @param file as it was read; one row, doc_lengths and kv_doc_lengths empty where the file has none
/// @throws std::invalid_argument if an option disagrees with the file, or for an impossible shape
[[nodiscard]] ProblemShape shape_from_file(const JobConfig& config, ProblemShape file);

/// Puts the sizes of `shape` into the options, so that describe() tells them all; those of the keys where
/// they are others than those of the queries.
void set_shape(JobConfig& config, const ProblemShape& shape);

}  // namespace hcp
