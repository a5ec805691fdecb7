/// Small PTX programs for the tests of the interpreter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/ptx/interpreter.hpp"

namespace hcp::ptx {

/// A whole module around the text of kernels.
[[nodiscard]] std::string module_text(const std::string& kernels);

/// A kernel "test" with the 64-bit parameters "in" and "out", registers %p0-9, %s0-9 (16 bits), %r0-39 (32
/// bits) and %d0-9 (64 bits); %d8 and %d9 hold in and out, %r39 the thread.
[[nodiscard]] std::string kernel_text(const std::string& body);

struct CaseSetup {
  std::uint32_t threads = 32;
  Extent grid{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  RunOptions options;
};

/// Runs kernel_text(body) with `in` read-only and `out` writable.
Report run_case(const std::string& body, std::span<const std::uint32_t> in, std::span<std::uint32_t> out,
                const CaseSetup& setup = {});

/// As run_case, with 64 words for each.
Report run_case(const std::string& body, const CaseSetup& setup = {});

/// The kinds of the findings, in order.
[[nodiscard]] std::vector<FindingKind> kinds_of(const Report& report);

/// One column of values per register that the tested instructions read; see evaluate().
template <typename T>
using Column = std::vector<T>;

namespace detail {
std::string register_name(std::size_t bytes, std::size_t index);
std::string column_load(std::size_t bytes, std::size_t index, std::size_t byte_offset);
std::string column_store(std::size_t bytes, std::size_t index);
std::vector<std::byte> evaluate_bytes(const std::string& body, std::span<const std::byte> in,
                                      std::size_t threads, std::size_t result_bytes);
}  // namespace detail

/// Executes `body` for one thread per row. Column i is in %s<i>, %r<i> or %d<i>, by its size; the result is
/// taken from %s7, %r7 or %d7. @throws std::runtime_error with the findings if there are any
template <typename Result, typename... T>
std::vector<Result> evaluate(const std::string& body, const Column<T>&... columns) {
  const std::size_t threads = std::max({columns.size()...});
  if (threads != std::min({columns.size()...})) {
    throw std::invalid_argument{"the columns of a case differ in length"};
  }
  std::vector<std::byte> in;
  std::string loads;
  std::size_t index = 0;
  const auto add = [&](const auto& column) {
    using Value = typename std::remove_cvref_t<decltype(column)>::value_type;
    in.resize((in.size() + 7) / 8 * 8);
    loads += detail::column_load(sizeof(Value), index++, in.size());
    const auto bytes = std::as_bytes(std::span{column});
    in.insert(in.end(), bytes.begin(), bytes.end());
  };
  (add(columns), ...);
  const std::string text = loads + body + detail::column_store(sizeof(Result), 7);
  const std::vector<std::byte> bytes = detail::evaluate_bytes(text, in, threads, sizeof(Result));
  std::vector<Result> results(threads);
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span{results}).begin());
  return results;
}

/// All pairs of `values`, as two columns.
template <typename T>
std::pair<Column<T>, Column<T>> all_pairs(const std::vector<T>& values) {
  std::pair<Column<T>, Column<T>> pairs;
  for (const T& a : values) {
    for (const T& b : values) {
      pairs.first.push_back(a);
      pairs.second.push_back(b);
    }
  }
  return pairs;
}

}  // namespace hcp::ptx
