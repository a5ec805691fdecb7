#include "tests/software_gpu/checks.hpp"

#include <string>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

std::string name_of(AccessMode mode) {
  return mode == AccessMode::read ? "read" : "write";
}

std::string name_of(const std::string& operation, int stream) {
  return "'" + operation + "' of " + (stream == 0 ? "the host" : "stream " + std::to_string(stream));
}

std::string place_name(std::uint64_t address) {
  const Memory::Piece piece = gpu().memory.piece_at(address);
  return ", at byte " + std::to_string(piece.offset) + " of '" + piece.name + "'";
}

}  // namespace

void check_order(const Operation& operation, const void* begin, std::size_t bytes, AccessMode mode) {
  if (!gpu().engine.deferred()) {
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  for (const AccessHistory::Conflict& conflict :
       gpu().history.note(operation, address, address + bytes, mode)) {
    report("the " + name_of(mode) + " by " + name_of(operation.name, operation.stream) +
               " is not ordered after the " + name_of(conflict.other_mode) + " by " +
               name_of(*conflict.other.name, conflict.other.stream),
           place_name(conflict.address));
  }
}

void check_unused(const Clock& known, const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  for (const AccessHistory::Conflict& conflict : gpu().history.open(known, address, address + bytes)) {
    report("freed before the host has waited for the " + name_of(conflict.other_mode) + " by " +
               name_of(*conflict.other.name, conflict.other.stream),
           place_name(conflict.address));
  }
}

}  // namespace hcp::software_gpu
