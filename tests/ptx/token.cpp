#include "tests/ptx/token.hpp"

#include <cctype>

#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

namespace {

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' || c == '$';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_{text} {}

  std::vector<Token> all() {
    while (skip_blanks(), position_ < text_.size()) {
      const std::size_t begin = position_;
      const int line = line_;
      advance_over_token();
      tokens_.push_back({std::string{text_.substr(begin, position_ - begin)}, line, begin});
    }
    tokens_.push_back({"", line_, text_.size()});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool at(std::string_view what) const { return text_.substr(position_, what.size()) == what; }

  void step(std::size_t characters) {
    for (; characters > 0 && position_ < text_.size(); --characters) {
      line_ += text_[position_++] == '\n' ? 1 : 0;
    }
  }

  void skip_blanks() {
    while (position_ < text_.size()) {
      if (at("//")) {
        step(text_.find('\n', position_) - position_);
      } else if (at("/*")) {
        step(text_.find("*/", position_) + 2 - position_);
      } else if (std::isspace(static_cast<unsigned char>(text_[position_])) != 0) {
        step(1);
      } else {
        return;
      }
    }
  }

  void advance_over_token() {
    if (at("\"")) {
      step(text_.find('"', position_ + 1) + 1 - position_);
      return;
    }
    if (!is_word_character(text_[position_])) {
      if (std::string_view{",;{}[]()|!@+-<>=:"}.find(text_[position_]) == std::string_view::npos) {
        refuse(line_, std::string{"character '"} + text_[position_] + "'");
      }
      step(1);
      return;
    }
    while (position_ < text_.size() && (is_word_character(text_[position_]) || at("::"))) {
      step(at("::") ? 2 : 1);  // "shared::cta" is one word, "label:" is two tokens
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  return Scanner{text}.all();
}

}  // namespace hcp::ptx
