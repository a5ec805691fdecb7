#include "tests/ptx/conformance/agreement.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <limits>
#include <sstream>

namespace hcp::ptx {
namespace {

/// Neighbouring floating-point numbers have neighbouring places; both zeros have place 0.
std::int64_t place_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffU);
  return bits >> 31 == 0 ? magnitude : -magnitude;
}

struct Distance {
  double ulp = 0.0;
  double absolute = 0.0;
  bool nan_payload = false;
};

Distance distance_of(Values kind, std::uint32_t expected, std::uint32_t result) {
  constexpr double infinitely = std::numeric_limits<double>::infinity();
  if (expected == result) {
    return {};
  }
  const auto a = std::bit_cast<float>(expected);
  const auto b = std::bit_cast<float>(result);
  if (kind != Values::fp32 || std::isnan(a) != std::isnan(b)) {
    return {.ulp = infinitely, .absolute = infinitely};
  }
  if (std::isnan(a)) {
    return {.nan_payload = true};
  }
  // Zeros of different signs are one apart: they are not the same.
  const double ulp = std::max(1.0, std::abs(static_cast<double>(place_of(a) - place_of(b))));
  return {.ulp = ulp, .absolute = std::abs(static_cast<double>(a) - static_cast<double>(b))};
}

void write_words(std::ostream& stream, std::span<const std::uint32_t> words) {
  for (const std::uint32_t word : words) {
    stream << ' ' << std::setw(8) << std::setfill('0') << std::hex << word;
  }
}

std::string text_of_thread(std::span<const std::uint32_t> operands, std::uint32_t expected,
                           std::uint32_t result) {
  std::ostringstream text;
  text << "of";
  write_words(text, operands);
  text << ": expected";
  write_words(text, {&expected, 1});
  text << ", got";
  write_words(text, {&result, 1});
  return text.str();
}

}  // namespace

Agreement agreement_of(const MicroKernel& kernel, std::span<const std::uint32_t> operands,
                       std::span<const std::uint32_t> expected, std::span<const std::uint32_t> results) {
  Agreement agreement;
  agreement.kernel = kernel.name;
  agreement.instruction = kernel.instruction;
  agreement.results = static_cast<std::int64_t>(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Distance distance = distance_of(kernel.result, expected[i], results[i]);
    agreement.equal += expected[i] == results[i] ? 1 : 0;
    agreement.nan_payloads += distance.nan_payload ? 1 : 0;
    agreement.largest_ulp = std::max(agreement.largest_ulp, distance.ulp);
    if (distance.ulp > kernel.tolerance.ulp && distance.absolute > kernel.tolerance.absolute) {
      if (agreement.beyond_tolerance++ == 0) {
        const std::size_t thread = i / static_cast<std::size_t>(kernel.results);
        const std::size_t count = kernel.operands.size();
        agreement.first_beyond =
            text_of_thread(operands.subspan(thread * count, count), expected[i], results[i]);
      }
    }
  }
  return agreement;
}

std::string table_of(const std::vector<Agreement>& agreements) {
  std::ostringstream table;
  table << "kernel\tinstruction\tresults\tequal\tnan_payloads\tlargest_ulp\tbeyond_tolerance\tfirst_beyond\n";
  for (const Agreement& row : agreements) {
    table << row.kernel << '\t' << row.instruction << '\t' << row.results << '\t' << row.equal << '\t'
          << row.nan_payloads << '\t' << row.largest_ulp << '\t' << row.beyond_tolerance << '\t'
          << row.first_beyond << '\n';
  }
  return table.str();
}

}  // namespace hcp::ptx
