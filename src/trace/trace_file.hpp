/// The record of a run: one HDF5 file, written by rank 0, readable while the job runs.
///
///   rows of all ranks ─► append(rows) ─► flush() ─► on disk: survives SIGKILL, seen by readers
///
/// The file is in HDF5's single-writer-multiple-reader mode from the end of create(). After a kill, a reader
/// that opens it in that mode (h5py: swmr=True) gets every flushed row; `h5clear -s --increment=0 FILE`
/// repairs it for all others. The tables and their columns are in trace_rows.hpp.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace_rows.hpp"

namespace hcp {

/// HDF5 or the disk refused; the message names the file, the call and the reason.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Names with their values, in order: root attributes, or options before they become JSON.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// {"name":"value",...} with everything escaped that JSON wants escaped.
[[nodiscard]] std::string to_json(const NamedTexts& values);

/// Move-only owner of the open file. The destructor closes it and never throws, also after an error.
class TraceFile {
 public:
  /// Creates the file with all its tables empty and `provenance` as text attributes of the root group
  /// (git revision, library versions, host, command line, environment, start time, ...). The attributes
  /// "format" and "schema_version" are added. Also makes the process ignore SIGXFSZ, so that a file-size
  /// limit is an error like a full disk and does not end the process.
  ///
  /// @throws std::invalid_argument if `path` exists or its directory does not; TraceError
  [[nodiscard]] static TraceFile create(const std::filesystem::path& path, const NamedTexts& provenance);

  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) noexcept;
  ~TraceFile();

  /// Adds rows at the end of their table. They are safe only after flush().
  /// @throws TraceError, after which the file takes no more rows
  void append(std::span<const CellRow> rows);
  void append(std::span<const RankRow> rows);
  void append(std::span<const PlacementRow> rows);
  void append(std::span<const EventRow> rows);
  void append(std::span<const MemoryRow> rows);
  void append(std::span<const BytesRow> rows);
  void append(std::span<const ResultRow> rows);

  /// Writes `rows` over the first rows of /ranks: at the end of the job the clocks are compared once more.
  /// @throws std::invalid_argument if /ranks has fewer rows; TraceError
  void rewrite(std::span<const RankRow> rows);

  /// Hands everything appended so far to the operating system.
  /// @throws TraceError, for example if the disk is full
  void flush();

  [[nodiscard]] const std::filesystem::path& path() const;

 private:
  struct Hdf5;
  explicit TraceFile(std::unique_ptr<Hdf5> hdf5);
  std::unique_ptr<Hdf5> hdf5_;
};

}  // namespace hcp
