#include "tests/kernels/cuda/kernel_counters.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <regex>
#include <sstream>

namespace hcp::test {
namespace {

struct Column {
  const char* name;
  bool of_the_code;  ///< another compiler may not change it
  std::uint64_t (*count)(const ptx::Counters&);
};

template <ptx::InstructionKind kind>
std::uint64_t instructions(const ptx::Counters& counts) {
  return counts.of(kind);
}
template <std::uint64_t ptx::Counters::*member>
std::uint64_t sum(const ptx::Counters& counts) {
  return counts.*member;
}

using Kind = ptx::InstructionKind;
using ptx::Counters;

constexpr Column columns[]{
    {"warp instructions", false, sum<&Counters::warp_instructions>},
    {"mma", true, instructions<Kind::mma>},
    {"ldmatrix", false, instructions<Kind::ldmatrix>},
    {"shared loads", false, instructions<Kind::shared_load>},
    {"shared stores", false, instructions<Kind::shared_store>},
    {"global loads", false, instructions<Kind::global_load>},
    {"global stores", false, instructions<Kind::global_store>},
    {"cp.async", false, instructions<Kind::async_copy>},
    {"barriers", false, instructions<Kind::barrier>},
    {"shared load bytes", true, sum<&Counters::shared_load_bytes>},
    {"shared store bytes", true, sum<&Counters::shared_store_bytes>},
    {"shared phases", false, sum<&Counters::shared_phases>},
    {"bank conflicts", true, sum<&Counters::shared_extra_phases>},
    {"global load bytes", true, sum<&Counters::global_load_bytes>},
    {"global store bytes", true, sum<&Counters::global_store_bytes>},
    {"global load sectors", false, sum<&Counters::global_load_sectors>},
    {"global store sectors", false, sum<&Counters::global_store_sectors>},
};
constexpr std::size_t names = 2;  // before the columns: kernel and work
constexpr const char* separator = "; ";

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text{line};
  for (std::string field; std::getline(text, field, ';');) {
    fields.push_back(field.substr(std::min(field.find_first_not_of(' '), field.size())));
  }
  return fields;
}

/// A line with nothing in columns that another compiler may change.
std::string without_what_a_compiler_decides(const std::string& line) {
  const std::vector<std::string> fields = fields_of(line);
  std::string left;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i < names || i - names >= std::size(columns) || columns[i - names].of_the_code) {
      left += (left.empty() ? "" : separator) + fields[i];
    }
  }
  return left;
}

bool is_comment(const std::string& line) {
  return line.starts_with('#');
}

/// Sorted; the header's lines are left out.
std::vector<std::string> counts_of(const std::vector<std::string>& lines, bool whole) {
  std::vector<std::string> counts;
  for (const std::string& line : lines) {
    if (!is_comment(line)) {
      counts.push_back(whole ? line : without_what_a_compiler_decides(line));
    }
  }
  std::ranges::sort(counts);
  return counts;
}

std::vector<std::string> header_of(const std::vector<std::string>& lines) {
  std::vector<std::string> header;
  std::ranges::copy_if(lines, std::back_inserter(header), is_comment);
  return header;
}

}  // namespace

std::string kernel_name_of(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable{
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free};
  std::string name = readable == nullptr ? symbol : readable.get();
  name = std::regex_replace(name, std::regex{R"(^void |\(anonymous namespace\)::|hcp::cuda::)"}, "");
  name = std::regex_replace(name, std::regex{R"(\((\w+)\)(?=[\w-]))"}, "");  // types of template values
  return name.substr(0, name.find('('));
}

std::vector<std::string> lines_of(const std::vector<KernelCounters>& kernels, const std::string& nvcc) {
  std::string header = "# kernel; work";
  for (const Column& column : columns) {
    header += separator + std::string{column.name};
  }
  std::vector<std::string> lines{header, "# nvcc " + nvcc};
  for (const KernelCounters& kernel : kernels) {
    std::string line = kernel.kernel + separator + kernel.work;
    for (const Column& column : columns) {
      line += separator + std::to_string(column.count(kernel.counts));
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> differences(const std::vector<std::string>& stored,
                                     const std::vector<std::string>& counted) {
  const bool same_compiler = header_of(stored) == header_of(counted);
  const std::vector<std::string> before = counts_of(stored, same_compiler);
  const std::vector<std::string> now = counts_of(counted, same_compiler);
  std::vector<std::string> found;
  const auto add = [&found](const char* what, const auto& these, const auto& others) {
    std::vector<std::string> only_here;
    std::ranges::set_difference(these, others, std::back_inserter(only_here));
    for (const std::string& line : only_here) {
      found.push_back(what + line);
    }
  };
  add("stored:  ", before, now);
  add("counted: ", now, before);
  return found;
}

}  // namespace hcp::test
