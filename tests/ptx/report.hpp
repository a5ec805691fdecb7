/// What a run of a kernel tells: findings of the checks, counters, and the memory that it touched.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/instruction.hpp"
#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

enum class FindingKind {
  out_of_bounds,       ///< memcheck: outside of every allocation, of shared memory or of the thread's frame
  misaligned,          ///< memcheck
  read_only_write,     ///< memcheck
  race,                ///< racecheck: two accesses, one of them a write, that no barrier orders
  uninitialised_read,  ///< initcheck
  divergence,          ///< synccheck: lanes that an instruction needs do not come
  async_copy,          ///< synccheck: data of a cp.async touched before its wait, or never waited for
  deadlock,            ///< warps that wait for ever, or more instructions than RunOptions allows
  bad_barrier,         ///< synccheck: counts that do not fit each other
  trap                 ///< the kernel itself gives up
};

[[nodiscard]] std::string name_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::out_of_bounds;
  std::string message;
  std::string kernel;
  std::array<std::uint32_t, 3> block{};
  int warp = 0;
  int lane = 0;
  std::uint64_t address = 0;  ///< 0 where none belongs to it
  int line = 0;               ///< in the PTX text
  std::string instruction;
  SourcePlace place;              ///< of the line in the CUDA source
  std::uint64_t occurrences = 1;  ///< of the same kind at the same line
};

/// One line with everything in it.
[[nodiscard]] std::string to_string(const Finding& finding);

/// Deterministic: the same for every schedule and number of threads.
struct Counters {
  std::uint64_t warp_instructions = 0;
  std::array<std::uint64_t, instruction_kinds> by_kind{};  ///< warp instructions, by InstructionKind
  // Bytes are summed over lanes; cp.async counts as global load and shared store.
  std::uint64_t shared_load_bytes = 0;
  std::uint64_t shared_store_bytes = 0;
  std::uint64_t global_load_bytes = 0;
  std::uint64_t global_store_bytes = 0;
  std::uint64_t shared_phases = 0;        ///< passes over the 32 banks of 4 bytes
  std::uint64_t shared_extra_phases = 0;  ///< beyond those that the bytes need: bank conflicts
  std::uint64_t global_load_sectors = 0;  ///< 32 bytes each, different ones of each warp instruction
  std::uint64_t global_store_sectors = 0;

  [[nodiscard]] std::uint64_t of(InstructionKind kind) const {
    return by_kind.at(static_cast<std::size_t>(kind));
  }
  void add(const Counters& other);
  bool operator==(const Counters&) const = default;
};

/// Bytes [begin, end) of device memory.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

struct Report {
  std::vector<Finding> findings;  ///< in the order of blocks; at most RunOptions::max_findings
  Counters counters;
  // Exact, disjoint and ascending; only with RunOptions::footprint.
  std::vector<ByteRange> reads;
  std::vector<ByteRange> writes;
};

}  // namespace hcp::ptx
