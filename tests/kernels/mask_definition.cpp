#include "tests/kernels/mask_definition.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace hcp::test {
namespace {

struct Token {
  std::size_t document = 0;
  std::int64_t place = 0;
};

std::vector<Token> tokens_of(const std::vector<std::int64_t>& lengths) {
  std::vector<Token> tokens;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    for (std::int64_t place = 0; place < lengths[document]; ++place) {
      tokens.push_back({document, place});
    }
  }
  return tokens;
}

/// Whether a query whose own place is `own` sees the key at `place`.
bool in_window(const Window& window, std::int64_t own, std::int64_t place) {
  const bool near_on_the_left = place >= own || window.left == -1 || own - place <= window.left;
  const bool near_on_the_right = place <= own || window.right == -1 || place - own <= window.right;
  return near_on_the_left && near_on_the_right;
}

/// A row of a document of `rows` rows is noised in the first half; a noised and a clean row are copies of one
/// token.
bool block_diffusion_sees(std::int64_t rows, std::int64_t block_size, std::int64_t query, std::int64_t key) {
  const std::int64_t tokens = rows / 2;
  const bool query_is_noised = query < tokens;
  const bool key_is_noised = key < tokens;
  const std::int64_t query_block = query % tokens / block_size;
  const std::int64_t key_block = key % tokens / block_size;
  if (query_is_noised) {
    return key_is_noised ? key_block == query_block : key_block < query_block;
  }
  return !key_is_noised && key_block <= query_block;
}

/// In one document.
bool sees(const MaskDefinition& definition, std::size_t document, std::int64_t query, std::int64_t key) {
  const std::int64_t queries = definition.doc_lengths[document];
  const std::int64_t keys = definition.key_lengths()[document];
  const auto special_length = [&] { return definition.special_lengths[document]; };
  switch (definition.kind) {
    case MaskKind::no_mask:
      return true;
    case MaskKind::causal:
      return key <= query && in_window(definition.window, query, key);
    case MaskKind::causal_bottom_right: {
      const std::int64_t own = query + keys - queries;
      return key <= own && in_window(definition.window, own, key);
    }
    case MaskKind::sliding_window:
      return in_window(definition.window, query, key);
    case MaskKind::padding:
      return query < special_length() && key < special_length();
    case MaskKind::padding_causal:
      return query < special_length() && key < special_length() && key <= query;
    case MaskKind::prefix_lm:
      return key < special_length() || key <= query;
    case MaskKind::block_causal:
      return key / definition.block_size <= query / definition.block_size;
    case MaskKind::block_diffusion:
      return block_diffusion_sees(queries, definition.block_size, query, key);
    case MaskKind::intervals: {
      const std::int64_t* row = definition.intervals.data() + 4 * query;
      return (row[0] <= key && key < row[1]) || (row[2] <= key && key < row[3]);
    }
  }
  throw std::logic_error{"no such mask"};
}

std::int64_t uniform(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>{least, most}(random);
}

/// Runs of rows whose four bounds stay or move by one, single rows, and rows that see nothing.
std::vector<std::int64_t> random_intervals(std::mt19937& random, std::int64_t queries, std::int64_t keys) {
  std::vector<std::int64_t> rows;
  std::int64_t bounds[4] = {};
  std::int64_t steps[4] = {};
  for (std::int64_t query = 0; query < queries; ++query) {
    if (query == 0 || uniform(random, 0, 3) == 0) {
      for (int i = 0; i < 4; ++i) {
        bounds[i] = uniform(random, 0, keys);
        steps[i] = uniform(random, 0, 1);
      }
      std::ranges::sort(bounds);
      if (uniform(random, 0, 4) == 0) {
        bounds[1] = bounds[0];
        bounds[3] = bounds[2];
        steps[1] = steps[0];
        steps[3] = steps[2];
      }
    } else {
      for (int i = 3; i >= 0; --i) {
        bounds[i] = std::min(bounds[i] + steps[i], i == 3 ? keys : bounds[i + 1]);
      }
    }
    const int first = uniform(random, 0, 1) == 0 ? 0 : 2;  // in any order
    for (const int i : {first, first + 1, 2 - first, 3 - first}) {
      rows.push_back(bounds[i]);
    }
  }
  return rows;
}

}  // namespace

std::string name_of(MaskKind kind) {
  constexpr const char* names[] = {
      "no_mask",        "causal",    "causal_bottom_right", "sliding_window",  "padding",
      "padding_causal", "prefix_lm", "block_causal",        "block_diffusion", "intervals"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

std::vector<std::vector<bool>> MaskDefinition::dense() const {
  std::vector<std::vector<bool>> dense;
  const std::vector<Token> key_tokens = tokens_of(key_lengths());
  for (const Token& query : tokens_of(doc_lengths)) {
    std::vector<bool>& row = dense.emplace_back();
    for (const Token& key : key_tokens) {
      row.push_back(query.document == key.document && sees(*this, query.document, query.place, key.place));
    }
  }
  return dense;
}

AttentionMask MaskDefinition::mask() const {
  const std::vector<std::int64_t> query_offsets = offsets_of(doc_lengths);
  const std::vector<std::int64_t> key_offsets = offsets_of(key_lengths());
  const DocumentBounds documents{query_offsets, key_offsets};
  switch (kind) {
    case MaskKind::no_mask:
      return AttentionMask::no_mask(documents);
    case MaskKind::causal:
      return AttentionMask::causal(documents, window);
    case MaskKind::causal_bottom_right:
      return AttentionMask::causal_bottom_right(documents, window);
    case MaskKind::sliding_window:
      return AttentionMask::sliding_window(documents, window);
    case MaskKind::padding:
      return AttentionMask::padding(query_offsets, special_lengths);
    case MaskKind::padding_causal:
      return AttentionMask::padding_causal(query_offsets, special_lengths);
    case MaskKind::prefix_lm:
      return AttentionMask::prefix_lm(query_offsets, special_lengths);
    case MaskKind::block_causal:
      return AttentionMask::block_causal(query_offsets, block_size);
    case MaskKind::block_diffusion:
      return AttentionMask::block_diffusion(query_offsets, block_size);
    case MaskKind::intervals:
      return AttentionMask::intervals(intervals, keys());
  }
  throw std::logic_error{"no such mask"};
}

MaskDefinition random_definition(MaskKind kind, std::mt19937& random, int most_documents,
                                 std::int64_t longest) {
  MaskDefinition definition{.kind = kind, .doc_lengths = {}};
  const std::int64_t documents = kind == MaskKind::intervals ? 1 : uniform(random, 1, most_documents);
  const auto length = [&] {
    // Short documents and long ones alike, 0 and 1 among them.
    const std::int64_t any = uniform(random, 0, 2) == 0 ? uniform(random, 0, 3) : uniform(random, 0, longest);
    return kind == MaskKind::block_diffusion ? any / 2 * 2 : any;
  };
  const bool may_have_other_keys = kind == MaskKind::no_mask || kind == MaskKind::causal ||
                                   kind == MaskKind::causal_bottom_right ||
                                   kind == MaskKind::sliding_window || kind == MaskKind::intervals;
  const bool other_keys = may_have_other_keys && uniform(random, 0, 1) == 0;
  for (std::int64_t i = 0; i < documents; ++i) {
    definition.doc_lengths.push_back(length());
    definition.special_lengths.push_back(uniform(random, 0, definition.doc_lengths.back()));
    if (other_keys) {
      definition.kv_doc_lengths.push_back(length());
    }
  }
  const auto window_bound = [&] {
    return uniform(random, 0, 3) == 0 ? uniform(random, -1, longest + 10) : uniform(random, -1, longest / 4);
  };
  definition.window = {window_bound(),
                       kind == MaskKind::sliding_window ? window_bound() : uniform(random, -1, 0)};
  definition.block_size =
      uniform(random, 0, 3) == 0 ? uniform(random, 1, longest + 10) : uniform(random, 1, longest / 4);
  if (kind == MaskKind::intervals) {
    definition.intervals = random_intervals(random, definition.queries(), definition.keys());
  }
  return definition;
}

std::string text_of(const MaskDefinition& definition) {
  std::ostringstream text;
  const auto list = [&](const char* what, const std::vector<std::int64_t>& values) {
    text << ", " << what;
    for (const std::int64_t value : values) {
      text << ' ' << value;
    }
  };
  text << name_of(definition.kind);
  list("documents", definition.doc_lengths);
  list("keys", definition.key_lengths());
  list("valid or prefix lengths", definition.special_lengths);
  text << ", window " << definition.window.left << ',' << definition.window.right << ", block size "
       << definition.block_size;
  return text.str();
}

}  // namespace hcp::test
