/// Operands and results of micro kernels in a file, so that what hardware once gave can be held against the
/// interpreter wherever there is none.
///
/// Per kernel a line "name threads operands results", then the words of operands and results, little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hcp::ptx {

struct RecordedRun {
  std::string kernel;
  std::size_t threads = 0;
  std::vector<std::uint32_t> operands;  ///< [threads, operands of the kernel]
  std::vector<std::uint32_t> results;   ///< [threads, results of the kernel]
  friend bool operator==(const RecordedRun&, const RecordedRun&) = default;
};

/// @throws std::runtime_error if the file cannot be written
void write_record(const std::filesystem::path& file, const std::vector<RecordedRun>& runs);
/// @throws std::runtime_error if the file cannot be read or is something else
[[nodiscard]] std::vector<RecordedRun> read_record(const std::filesystem::path& file);

}  // namespace hcp::ptx
