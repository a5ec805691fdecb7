#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tests/ptx/parse_parts.hpp"

namespace hcp::ptx {

namespace {

void parse_initial_values(TokenReader& tokens, VariableSyntax& result) {
  const bool braces = tokens.take("{");
  do {
    const int line = tokens.peek().line;
    std::uint64_t bits = 0;
    const std::string& word = tokens.peek().text;
    if (word.size() > 2 && word[0] == '0' &&
        std::string_view{"fFdD"}.find(word[1]) != std::string_view::npos) {
      bits = std::stoull(tokens.next().text.substr(2), nullptr, 16);
    } else if (is_float(result.type)) {
      refuse(line, "initial value '" + word + "' of a floating-point variable");
    } else {
      bits = static_cast<std::uint64_t>(tokens.integer());
    }
    for (int byte = 0; byte < bytes_of(result.type); ++byte) {
      result.initial_bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
    }
  } while (braces && tokens.take(","));
  if (braces) {
    tokens.expect("}");
  }
}

}  // namespace

// .space {.align n} .type name{<n>}{[n]...}{= values}, without the semicolon
VariableSyntax parse_declaration(TokenReader& tokens) {
  static const std::map<std::string_view, StateSpace> spaces{
      {".reg", StateSpace::reg},       {".global", StateSpace::global}, {".const", StateSpace::constant},
      {".shared", StateSpace::shared}, {".local", StateSpace::local},   {".param", StateSpace::param}};
  VariableSyntax result;
  const Token& space = tokens.next();
  result.line = space.line;
  const auto found = spaces.find(space.text);
  if (found == spaces.end()) {
    refuse(space.line, "directive '" + space.text + "'");
  }
  result.space = found->second;
  while (true) {
    if (tokens.take(".align")) {
      result.alignment = tokens.integer();
    } else if (tokens.take(".ptr")) {  // says only where a pointer points to
      tokens.take(".global");
    } else {
      break;
    }
  }
  const Token& type = tokens.next();
  const auto known =
      scalar_type(std::string_view{type.text}.substr(std::min<std::size_t>(1, type.text.size())));
  if (!known) {
    refuse(type.line, "type '" + type.text + "'");
  }
  result.type = *known;
  while (tokens.take(".ptr") || tokens.take(".global")) {
  }
  if (tokens.take(".align")) {  // of the memory that the pointer points to
    tokens.integer();
  }
  result.name = tokens.next().text;
  parse_extent(tokens, result);
  if (tokens.take("=")) {
    parse_initial_values(tokens, result);
  }
  return result;
}

void parse_extent(TokenReader& tokens, VariableSyntax& result) {
  if (tokens.take("<")) {
    result.is_range = true;
    result.elements = tokens.integer();
    tokens.expect(">");
  }
  while (tokens.take("[")) {
    result.elements *= tokens.peek().is("]") ? 0 : tokens.integer();
    tokens.expect("]");
  }
}

}  // namespace hcp::ptx
