#include "tests/ptx/token_reader.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

const Token& TokenReader::peek(std::size_t ahead) const {
  return tokens_.at(std::min(position_ + ahead, tokens_.size() - 1));
}

const Token& TokenReader::next() {
  if (peek().is("")) {
    refuse(peek().line, "the text ends too early");
  }
  return tokens_.at(position_++);
}

bool TokenReader::take(std::string_view text) {
  if (!peek().is(text)) {
    return false;
  }
  ++position_;
  return true;
}

void TokenReader::expect(std::string_view text) {
  const Token& token = next();
  if (!token.is(text)) {
    refuse(token.line, "'" + token.text + "' where '" + std::string{text} + "' is due");
  }
}

std::int64_t TokenReader::integer() {
  const bool negative = take("-");
  const Token& token = next();
  std::int64_t value = 0;
  std::string_view digits = token.text;
  const bool hexadecimal = digits.starts_with("0x");
  digits.remove_prefix(hexadecimal ? 2 : 0);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    refuse(token.line, "'" + token.text + "' where an integer is due");
  }
  return negative ? -value : value;
}

}  // namespace hcp::ptx
