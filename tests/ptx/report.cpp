#include "tests/ptx/report.hpp"

#include <sstream>

namespace hcp::ptx {

std::string name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds:
      return "out of bounds";
    case FindingKind::misaligned:
      return "misaligned";
    case FindingKind::read_only_write:
      return "write to read-only memory";
    case FindingKind::race:
      return "race";
    case FindingKind::uninitialised_read:
      return "uninitialised read";
    case FindingKind::divergence:
      return "divergence";
    case FindingKind::async_copy:
      return "asynchronous copy";
    case FindingKind::deadlock:
      return "deadlock";
    case FindingKind::bad_barrier:
      return "barrier";
    case FindingKind::trap:
      return "trap";
  }
  return "";
}

std::string to_string(const Finding& finding) {
  std::ostringstream text;
  text << name_of(finding.kind) << ": " << finding.message << "; kernel " << finding.kernel << ", block ("
       << finding.block[0] << ", " << finding.block[1] << ", " << finding.block[2] << "), warp "
       << finding.warp << ", lane " << finding.lane;
  if (finding.address != 0) {
    text << ", address 0x" << std::hex << finding.address << std::dec;
  }
  text << "; PTX line " << finding.line << ": " << finding.instruction;
  if (!finding.place.file.empty()) {
    text << "; " << finding.place.file << ":" << finding.place.line;
  }
  if (finding.occurrences > 1) {
    text << "; " << finding.occurrences << " times";
  }
  return text.str();
}

void Counters::add(const Counters& other) {
  warp_instructions += other.warp_instructions;
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
    by_kind[kind] += other.by_kind[kind];
  }
  shared_load_bytes += other.shared_load_bytes;
  shared_store_bytes += other.shared_store_bytes;
  global_load_bytes += other.global_load_bytes;
  global_store_bytes += other.global_store_bytes;
  shared_phases += other.shared_phases;
  shared_extra_phases += other.shared_extra_phases;
  global_load_sectors += other.global_load_sectors;
  global_store_sectors += other.global_store_sectors;
}

}  // namespace hcp::ptx
