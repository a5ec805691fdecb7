#include <array>
#include <cstdio>

#include "src/trace/trace_file.hpp"

namespace hcp {
namespace {

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char character : text) {
    switch (character) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(character) < 0x20) {
          std::array<char, 7> escape{};
          std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(character));
          result += escape.data();
        } else {
          result += character;
        }
    }
  }
  return result + '"';
}

}  // namespace

std::string to_json(const NamedTexts& values) {
  std::string result = "{";
  for (const auto& [name, value] : values) {
    if (result.size() > 1) result += ',';
    result += json_string(name) + ':' + json_string(value);
  }
  return result + '}';
}

}  // namespace hcp
