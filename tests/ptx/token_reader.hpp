/// Walks over the tokens of a PTX text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/ptx/token.hpp"

namespace hcp::ptx {

/// Every function refuses (std::invalid_argument with the line) what is not there.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text) : text_{text}, tokens_{tokens_of(text)} {}

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }

  /// The next token, or one after it, which stays.
  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  const Token& next();
  /// Takes the next token if it is `text`.
  bool take(std::string_view text);
  void expect(std::string_view text);
  /// Decimal or 0x..., with its sign.
  std::int64_t integer();

 private:
  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace hcp::ptx
