#include "tests/ptx/global_memory.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace hcp::ptx {

GlobalMemory::GlobalMemory(DeviceMemory& memory, std::uint32_t granule, bool races, bool footprint)
    : granule_{granule}, races_{races}, footprint_{footprint} {
  for (auto& [base, region] : memory.regions()) {
    watched_[base].region = &region;
  }
}

GlobalMemory::Watched* GlobalMemory::find(const GlobalAccess& access) {
  if (last_ != nullptr && last_->region->contains(access.address, access.bytes)) {
    return last_;
  }
  const auto after = watched_.upper_bound(access.address);
  if (after == watched_.begin() || !std::prev(after)->second.region->contains(access.address, access.bytes)) {
    return nullptr;
  }
  last_ = &std::prev(after)->second;
  return last_;
}

std::optional<Fault> GlobalMemory::note(const GlobalAccess& access) {
  Watched* watched = find(access);
  if (watched == nullptr) {
    return Fault{FindingKind::out_of_bounds, "global access outside of all device memory"};
  }
  DeviceMemory::Region& region = *watched->region;
  if (access.address % access.alignment != 0) {
    return Fault{FindingKind::misaligned,
                 "global access of " + std::to_string(access.bytes) + " bytes in '" + region.name + "'"};
  }
  const bool writes = access.kind != AccessKind::read;
  if (writes && !region.writable) {
    return Fault{FindingKind::read_only_write, "'" + region.name + "'"};
  }
  const std::uint64_t offset = access.address - region.base;
  if (footprint_) {
    watched->footprint.resize(region.bytes);
    const std::span touched{watched->footprint.data() + offset, access.bytes};
    const auto bits = static_cast<std::uint8_t>(access.kind == AccessKind::atomic ? 3 : writes ? 2 : 1);
    std::ranges::for_each(touched, [&](std::uint8_t& byte) { byte |= bits; });
  }
  std::optional<Fault> fault;
  if (!region.written.empty()) {
    const std::span bytes{region.written.data() + offset, access.bytes};
    if (access.kind != AccessKind::write && std::ranges::count(bytes, 0) > 0) {
      fault =
          Fault{FindingKind::uninitialised_read, "'" + region.name + "' is read where nobody has written"};
    }
    if (writes) {
      std::ranges::fill(bytes, std::uint8_t{1});
    }
  }
  if (races_ && region.writable) {
    std::optional<Fault> found = race(*watched, access);
    fault = fault ? fault : found;
  }
  return fault;
}

std::optional<Fault> GlobalMemory::race(Watched& watched, const GlobalAccess& access) {
  if (watched.words.empty()) {
    // An access may begin in the middle of a granule if the region does.
    watched.words.resize(watched.region->bytes / granule_ + 2);
  }
  const std::uint64_t first_granule = watched.region->base / granule_;
  const std::uint64_t begin = access.address / granule_ - first_granule;
  const std::uint64_t end = (access.address + access.bytes - 1) / granule_ - first_granule + 1;
  const char* found = nullptr;
  for (Word& word : std::span{watched.words.data() + begin, end - begin}) {
    const char* here = against_write(word, access);
    if (access.kind == AccessKind::read) {
      note_read(word, access);
    } else {
      here = here != nullptr ? here : against_reads(word, access);
      word.writer_block = access.block;
      word.atomic = access.kind == AccessKind::atomic;
      word.write = {access.clock.now(), access.clock.warp(), access.lane};
    }
    found = found != nullptr ? found : here;
  }
  if (found == nullptr) {
    return std::nullopt;
  }
  return Fault{FindingKind::race, "'" + watched.region->name + "', " + found};
}

const char* GlobalMemory::against_write(const Word& word, const GlobalAccess& access) {
  if (word.writer_block == 0 || (word.atomic && access.kind == AccessKind::atomic)) {
    return nullptr;
  }
  if (word.writer_block != access.block) {
    return "after a write of another block";
  }
  return access.clock.is_ordered(word.write, access.lane) ? nullptr
                                                          : "after a write that no barrier orders before it";
}

const char* GlobalMemory::against_reads(const Word& word, const GlobalAccess& access) {
  if (word.reader_block == 0) {
    return nullptr;
  }
  if (word.reader_block != access.block) {
    return "a write after a read of another block";
  }
  const LaneMask others = word.reader_warps & ~(1U << access.clock.warp());
  const bool one_warp = (word.reader_warps & (word.reader_warps - 1)) == 0;
  const bool in_order = one_warp ? access.clock.is_ordered(word.read, access.lane)
                                 : word.barriers < access.barriers || others == 0;
  return in_order ? nullptr : "a write after a read that no barrier orders before it";
}

void GlobalMemory::note_read(Word& word, const GlobalAccess& access) {
  if (word.reader_block != 0 && word.reader_block != access.block) {
    word.reader_block = several_blocks;
    return;
  }
  const bool fresh = word.reader_block == 0 || word.barriers < access.barriers;
  word.reader_block = access.block;
  word.reader_warps = (fresh ? 0 : word.reader_warps) | 1U << access.clock.warp();
  word.barriers = access.barriers;
  const AccessStamp mine{access.clock.now(), access.clock.warp(), access.lane};
  const std::uint32_t difference = word.read.bits() ^ mine.bits();
  const bool other_lane = !fresh && difference != 0 && difference < 64;
  word.read = other_lane ? AccessStamp{mine.bits() | AccessStamp::several_lanes} : mine;
}

void GlobalMemory::write_footprint(Report& report) const {
  if (!footprint_) {
    return;
  }
  const auto collect = [](const Watched& watched, std::uint8_t bit, std::vector<ByteRange>& ranges) {
    const auto touched = [bit](std::uint8_t bits) { return (bits & bit) != 0; };
    const auto begin = watched.footprint.begin();
    for (auto at = begin; at != watched.footprint.end();) {
      const auto first = std::find_if(at, watched.footprint.end(), touched);
      at = std::find_if_not(first, watched.footprint.end(), touched);
      if (first != at) {
        ranges.push_back({watched.region->base + static_cast<std::uint64_t>(first - begin),
                          watched.region->base + static_cast<std::uint64_t>(at - begin)});
      }
    }
  };
  for (const auto& [base, watched] : watched_) {
    collect(watched, 1, report.reads);
    collect(watched, 2, report.writes);
  }
}

}  // namespace hcp::ptx
