#include "tests/ptx/conformance/record.hpp"

#include <bit>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hcp::ptx {
namespace {

static_assert(std::endian::native == std::endian::little, "words go to the file as they are");

void write_words(std::ostream& stream, const std::vector<std::uint32_t>& words) {
  stream.write(reinterpret_cast<const char*>(words.data()),
               static_cast<std::streamsize>(words.size() * sizeof(std::uint32_t)));
}

std::vector<std::uint32_t> read_words(std::istream& stream, std::size_t count) {
  std::vector<std::uint32_t> words(count);
  stream.read(reinterpret_cast<char*>(words.data()),
              static_cast<std::streamsize>(count * sizeof(std::uint32_t)));
  return words;
}

}  // namespace

void write_record(const std::filesystem::path& file, const std::vector<RecordedRun>& runs) {
  std::ofstream stream{file, std::ios::binary};
  for (const RecordedRun& run : runs) {
    stream << run.kernel << ' ' << run.threads << ' ' << run.operands.size() / run.threads << ' '
           << run.results.size() / run.threads << '\n';
    write_words(stream, run.operands);
    write_words(stream, run.results);
  }
  if (!stream.flush()) {
    throw std::runtime_error{file.string() + " cannot be written"};
  }
}

std::vector<RecordedRun> read_record(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  std::vector<RecordedRun> runs;
  for (std::string line; std::getline(stream, line);) {
    RecordedRun run;
    std::size_t operands = 0;
    std::size_t results = 0;
    constexpr std::size_t most = 1 << 20;  // a kernel has thousands of words
    std::istringstream fields{line};
    if (!(fields >> run.kernel >> run.threads >> operands >> results) || run.threads > most ||
        operands > most / (run.threads + 1) || results > most / (run.threads + 1)) {
      throw std::runtime_error{file.string() + " is no record of micro kernels: '" + line + "'"};
    }
    run.operands = read_words(stream, run.threads * operands);
    run.results = read_words(stream, run.threads * results);
    if (!stream) {
      throw std::runtime_error{file.string() + " ends within " + run.kernel};
    }
    runs.push_back(std::move(run));
  }
  if (runs.empty()) {
    throw std::runtime_error{file.string() + " cannot be read, or is empty"};
  }
  return runs;
}

}  // namespace hcp::ptx
