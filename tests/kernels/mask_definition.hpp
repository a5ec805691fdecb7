/// Masks in the words of their definitions, for tests: which key a query sees is asked for one pair at a
/// time, by document and place, and knows nothing of intervals.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention_mask.hpp"

namespace hcp::test {

enum class MaskKind {
  no_mask,
  causal,
  causal_bottom_right,
  sliding_window,
  padding,
  padding_causal,
  prefix_lm,
  block_causal,
  block_diffusion,
  intervals,
};

inline constexpr MaskKind all_mask_kinds[] = {
    MaskKind::no_mask,        MaskKind::causal,       MaskKind::causal_bottom_right,
    MaskKind::sliding_window, MaskKind::padding,      MaskKind::padding_causal,
    MaskKind::prefix_lm,      MaskKind::block_causal, MaskKind::block_diffusion,
    MaskKind::intervals,
};

[[nodiscard]] std::string name_of(MaskKind kind);

/// Document offsets [documents + 1] of document lengths.
[[nodiscard]] std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& lengths);

/// A mask with its parameters; of those, each kind reads its own.
struct MaskDefinition {
  MaskKind kind = MaskKind::no_mask;
  std::vector<std::int64_t> doc_lengths;          ///< queries; of intervals: one document
  std::vector<std::int64_t> kv_doc_lengths = {};  ///< keys; empty: as the queries
  Window window = {};
  std::vector<std::int64_t> special_lengths = {};  ///< valid or prefix lengths, [documents]
  std::int64_t block_size = 1;
  std::vector<std::int64_t> intervals = {};  ///< [queries, 4]

  [[nodiscard]] std::int64_t queries() const { return offsets_of(doc_lengths).back(); }
  [[nodiscard]] std::int64_t keys() const { return offsets_of(key_lengths()).back(); }
  [[nodiscard]] const std::vector<std::int64_t>& key_lengths() const {
    return kv_doc_lengths.empty() ? doc_lengths : kv_doc_lengths;
  }

  /// [queries][keys]: who sees whom.
  [[nodiscard]] std::vector<std::vector<bool>> dense() const;

  /// What is under test.
  [[nodiscard]] AttentionMask mask() const;
};

/// Up to `most_documents` documents of 0 .. `longest` tokens, every parameter drawn from all that is allowed
/// and what lies beyond the documents. Kinds that allow it have other keys than queries every second time.
[[nodiscard]] MaskDefinition random_definition(MaskKind kind, std::mt19937& random, int most_documents,
                                               std::int64_t longest);

/// For messages.
[[nodiscard]] std::string text_of(const MaskDefinition& definition);

}  // namespace hcp::test
