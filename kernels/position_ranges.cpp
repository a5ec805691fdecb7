#include "kernels/position_ranges.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

std::string text_of(PositionRange range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

void append_rows(std::vector<RowSpan>& spans, RowSpan next) {
  if (!spans.empty() && spans.back().first + spans.back().count == next.first) {
    spans.back().count += next.count;
  } else {
    spans.push_back(next);
  }
}

}  // namespace

PositionSet normalised(std::vector<PositionRange> ranges) {
  std::erase_if(ranges, [](PositionRange range) { return range.empty(); });
  std::ranges::sort(ranges, {}, &PositionRange::begin);
  PositionSet set;
  for (const PositionRange range : ranges) {
    if (!set.empty() && range.begin <= set.back().end) {
      set.back().end = std::max(set.back().end, range.end);
    } else {
      set.push_back(range);
    }
  }
  return set;
}

PositionSet set_union(const PositionSet& a, const PositionSet& b) {
  std::vector<PositionRange> ranges = a;
  ranges.insert(ranges.end(), b.begin(), b.end());
  return normalised(std::move(ranges));
}

PositionSet set_intersection(const PositionSet& a, const PositionSet& b) {
  PositionSet set;
  for (auto left = a.begin(), right = b.begin(); left != a.end() && right != b.end();) {
    const PositionRange common{std::max(left->begin, right->begin), std::min(left->end, right->end)};
    if (!common.empty()) {
      set.push_back(common);
    }
    if (left->end < right->end) {
      ++left;
    } else {
      ++right;
    }
  }
  return set;
}

PositionSet set_difference(const PositionSet& a, const PositionSet& b) {
  PositionSet set;
  auto removed = b.begin();
  for (const PositionRange range : a) {
    while (removed != b.end() && removed->end <= range.begin) {
      ++removed;
    }
    std::int64_t kept_from = range.begin;
    for (auto next = removed; next != b.end() && next->begin < range.end; ++next) {
      if (kept_from < next->begin) {
        set.push_back({kept_from, next->begin});
      }
      kept_from = next->end;
    }
    if (kept_from < range.end) {
      set.push_back({kept_from, range.end});
    }
  }
  return set;
}

std::int64_t count_of(std::span<const PositionRange> set) {
  std::int64_t count = 0;
  for (const PositionRange range : set) {
    count += range.size();
  }
  return count;
}

std::vector<RowSpan> rows_of(const PositionSet& part, const PositionSet& whole) {
  std::vector<RowSpan> spans;
  auto holder = whole.begin();
  std::int64_t rows_before = 0;
  for (const PositionRange range : part) {
    while (holder != whole.end() && holder->end <= range.begin) {
      rows_before += holder->size();
      ++holder;
    }
    if (holder == whole.end() || range.begin < holder->begin || range.end > holder->end) {
      throw std::logic_error{"positions " + text_of(range) + " are not all in the tensor"};
    }
    append_rows(spans, {rows_before + range.begin - holder->begin, range.size()});
  }
  return spans;
}

PositionSet positions_of(RowSpan rows, const PositionSet& whole) {
  if (rows.first < 0 || rows.count < 0 || rows.first + rows.count > count_of(whole)) {
    throw std::logic_error{"rows " + text_of({rows.first, rows.first + rows.count}) + " of a tensor of " +
                           std::to_string(count_of(whole))};
  }
  PositionSet set;
  std::int64_t rows_before = 0;
  for (const PositionRange range : whole) {
    const std::int64_t to_position = range.begin - rows_before;
    const PositionRange held{std::max(rows.first + to_position, range.begin),
                             std::min(rows.first + rows.count + to_position, range.end)};
    if (!held.empty()) {
      set.push_back(held);
    }
    rows_before += range.size();
  }
  return set;
}

}  // namespace hcp
