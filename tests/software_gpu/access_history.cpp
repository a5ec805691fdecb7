#include "tests/software_gpu/access_history.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hcp::software_gpu {
namespace {

using Conflicts = std::vector<AccessHistory::Conflict>;

/// The access, unless the clock covers it or the same operation is there already.
void add_uncovered(Conflicts& conflicts, const Clock& clock, std::uint64_t address,
                   const AccessHistory::Access& access, AccessMode mode) {
  const auto known = [&](const AccessHistory::Conflict& other) { return other.other.stamp == access.stamp; };
  if (access.stamp.count > 0 && !clock.covers(access.stamp) && std::ranges::none_of(conflicts, known)) {
    conflicts.push_back({.address = address, .other = access, .other_mode = mode});
  }
}

}  // namespace

AccessHistory::Pieces::iterator AccessHistory::cut(std::uint64_t address) {
  const auto after = pieces_.lower_bound(address);
  if (after == pieces_.begin()) {
    return after;
  }
  const auto before = std::prev(after);
  if (before->second.end <= address) {
    return after;
  }
  Piece rest = before->second;
  before->second.end = address;
  return pieces_.emplace_hint(after, address, std::move(rest));
}

AccessHistory::Access AccessHistory::access_of(const Operation& operation) {
  if (last_.stamp != operation.stamp) {
    last_ = {
        .stamp = operation.stamp, .stream = operation.stream, .name = &*names_.insert(operation.name).first};
  }
  return last_;
}

void AccessHistory::merge(std::uint64_t begin, std::uint64_t end) {
  auto piece = pieces_.lower_bound(begin);
  if (piece != pieces_.begin()) {
    --piece;
  }
  while (piece != pieces_.end() && std::next(piece) != pieces_.end() && piece->first < end) {
    const auto next = std::next(piece);
    if (piece->second.end == next->first && piece->second.same(next->second)) {
      piece->second.end = next->second.end;
      pieces_.erase(next);
    } else {
      piece = next;
    }
  }
}

std::vector<AccessHistory::Conflict> AccessHistory::note(const Operation& operation, std::uint64_t begin,
                                                         std::uint64_t end, AccessMode mode) {
  Conflicts conflicts;
  const Access mine = access_of(operation);
  auto piece = cut(begin);
  cut(end);
  for (std::uint64_t at = begin; at < end; at = std::prev(piece)->second.end) {
    if (piece == pieces_.end() || piece->first > at) {  // nobody was there so far
      const std::uint64_t gap_end = piece == pieces_.end() ? end : std::min(end, piece->first);
      piece = pieces_.emplace_hint(piece, at, Piece{.end = gap_end, .writer = {}, .readers = {}});
    }
    Piece& here = piece->second;
    add_uncovered(conflicts, operation.clock, at, here.writer, AccessMode::write);
    if (mode == AccessMode::read) {
      std::erase_if(here.readers, [&](const Access& reader) { return operation.clock.covers(reader.stamp); });
      here.readers.push_back(mine);
    } else {
      for (const Access& reader : here.readers) {
        add_uncovered(conflicts, operation.clock, at, reader, AccessMode::read);
      }
      here.writer = mine;
      here.readers.clear();
    }
    ++piece;
  }
  merge(begin, end);
  return conflicts;
}

std::vector<AccessHistory::Conflict> AccessHistory::open(const Clock& clock, std::uint64_t begin,
                                                         std::uint64_t end) const {
  Conflicts conflicts;
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.begin()) {
    --piece;
  }
  for (; piece != pieces_.end() && piece->first < end; ++piece) {
    if (piece->second.end <= begin) {
      continue;
    }
    add_uncovered(conflicts, clock, piece->first, piece->second.writer, AccessMode::write);
    for (const Access& reader : piece->second.readers) {
      add_uncovered(conflicts, clock, piece->first, reader, AccessMode::read);
    }
  }
  return conflicts;
}

void AccessHistory::forget(std::uint64_t begin, std::uint64_t end) {
  cut(begin);
  cut(end);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
}

}  // namespace hcp::software_gpu
