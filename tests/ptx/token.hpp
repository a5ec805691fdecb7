/// PTX text as a sequence of tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hcp::ptx {

struct Token {
  std::string text;        ///< a word ("ld.global.f32", "%r1", "0x10"), one punctuation mark, or "string"
  int line = 0;            ///< from 1
  std::size_t offset = 0;  ///< in the text
  [[nodiscard]] bool is(std::string_view other) const { return text == other; }
};

/// The tokens without comments; the last one is empty and stands for the end.
/// @throws std::invalid_argument at a character that PTX does not know
[[nodiscard]] std::vector<Token> tokens_of(std::string_view text);

}  // namespace hcp::ptx
