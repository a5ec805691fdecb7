#include "tests/mutation/kernel_text.hpp"

#include <stdexcept>
#include <utility>

#include "tests/mutation/text_lines.hpp"

namespace hcp::mutation {
namespace {

constexpr std::string_view entry_mark = ".entry ";

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

std::string name_in(std::string_view line) {
  const std::string_view rest = line.substr(line.find(entry_mark) + entry_mark.size());
  return std::string{rest.substr(0, rest.find('('))};
}

}  // namespace

std::vector<KernelText> kernels_of(std::string_view module) {
  std::vector<KernelText> kernels;
  std::string head;
  int head_lines = 0;
  bool inside = false;
  int number = 0;
  for (const std::string_view line : lines_of(module)) {
    ++number;
    if (has(line, ".func ") || (!kernels.empty() && has(line, ".extern "))) {
      throw std::invalid_argument{"line " + std::to_string(number) +
                                  " of a PTX text is no part of a kernel: " + std::string{line}};
    }
    if (has(line, entry_mark)) {
      kernels.push_back({name_in(line), head, number - head_lines - 1});
      inside = true;
    }
    if (inside) {
      kernels.back().text.append(line).append("\n");
      inside = line != "}";
    } else if (kernels.empty()) {
      head.append(line).append("\n");
      ++head_lines;
    }
  }
  return kernels;
}

}  // namespace hcp::mutation
