/// Who touched which byte last, and whether that was ordered before whoever touches it now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {

/// Of all bytes, in pieces of those that the same operations touched. Independent of the order in which
/// operations happen to run, as far as it is one that their clocks allow.
class AccessHistory {
 public:
  struct Access {
    Stamp stamp;
    int stream = 0;
    const std::string* name = nullptr;
    bool operator==(const Access&) const = default;
  };

  /// Two accesses that nothing orders, one of them a write.
  struct Conflict {
    std::uint64_t address = 0;  ///< the first of them
    Access other;               ///< the one that came before
    AccessMode other_mode = AccessMode::read;
  };

  /// Bytes [begin, end). @return of each other operation one conflict
  [[nodiscard]] std::vector<Conflict> note(const Operation& operation, std::uint64_t begin, std::uint64_t end,
                                           AccessMode mode);

  /// Accesses to [begin, end) that are not done when what `clock` covers is. @return of each operation one
  [[nodiscard]] std::vector<Conflict> open(const Clock& clock, std::uint64_t begin, std::uint64_t end) const;

  void forget(std::uint64_t begin, std::uint64_t end);
  void clear() { pieces_.clear(); }

 private:
  struct Piece {
    std::uint64_t end = 0;
    Access writer;                ///< count 0: nobody
    std::vector<Access> readers;  ///< since then; those that another reader is ordered after are left out
    [[nodiscard]] bool same(const Piece& other) const {
      return writer == other.writer && readers == other.readers;
    }
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by begin

  /// So that a piece that holds it begins there.
  Pieces::iterator cut(std::uint64_t address);
  void merge(std::uint64_t begin, std::uint64_t end);

  /// The operation as an access.
  Access access_of(const Operation& operation);

  Pieces pieces_;
  std::set<std::string> names_;
  Access last_;  ///< operations come with many accesses in a row
};

}  // namespace hcp::software_gpu
