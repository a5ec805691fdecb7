#include "src/job/checked_rows.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/reference_attention.hpp"

namespace hcp {

SelectedRows spread_rows(const PositionSet& shard, std::int64_t count) {
  const std::int64_t all = count_of(shard);
  SelectedRows selected;
  for (std::int64_t i = 0; i < std::min(all, count); ++i) {
    selected.rows.push_back(count >= all ? i : i * (all - 1) / (count - 1));
  }
  std::size_t chunk = 0;
  std::int64_t rows_before = 0;
  for (const std::int64_t row : selected.rows) {
    while (row - rows_before >= shard[chunk].size()) {
      rows_before += shard[chunk].size();
      ++chunk;
    }
    const std::int64_t position = shard[chunk].begin + row - rows_before;
    selected.positions.push_back(position);
    selected.chunks.push_back(chunk);
    selected.set.push_back({position, position + 1});
  }
  selected.set = normalised(std::move(selected.set));
  return selected;
}

SelectedRows rows_within(const PositionSet& shard, const PositionSet& part) {
  SelectedRows selected{.rows = {}, .positions = single_positions(part), .chunks = {}, .set = part};
  for (const RowSpan span : rows_of(part, shard)) {
    for (std::int64_t row = span.first; row < span.first + span.count; ++row) {
      selected.rows.push_back(row);
    }
  }
  auto chunk = std::ranges::upper_bound(shard, part.front().begin, {}, &PositionRange::end);
  for (const std::int64_t position : selected.positions) {
    while (chunk->end <= position) {
      ++chunk;
    }
    selected.chunks.push_back(static_cast<std::size_t>(chunk - shard.begin()));
  }
  return selected;
}

AskedTokens::AskedTokens(PositionSet needed, const Lockstep& group)
    : needed_{std::move(needed)}, group_{group} {
  std::vector<double> bounds;
  for (const PositionRange range : needed_) {
    bounds.push_back(static_cast<double>(range.begin));
    bounds.push_back(static_cast<double>(range.end));
  }
  bounds = group_.gather(bounds);
  for (std::size_t i = 0; i < bounds.size(); i += 2) {
    asked_.push_back({static_cast<std::int64_t>(bounds[i]), static_cast<std::int64_t>(bounds[i + 1])});
  }
  asked_ = normalised(std::move(asked_));
}

std::vector<double> AskedTokens::fetch(const PositionSet& held,
                                       const std::function<double(std::int64_t)>& value_of) const {
  constexpr std::int64_t tokens_per_gather = 65536;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count_of(needed_)));
  const std::int64_t tokens = count_of(asked_);
  for (std::int64_t first = 0; first < tokens; first += tokens_per_gather) {
    fetch_part(held, value_of, {first, std::min(tokens_per_gather, tokens - first)}, values);
  }
  return values;
}

std::vector<double> AskedTokens::fetch(const PositionSet& held, const std::vector<double>& values) const {
  return fetch(held, [&](std::int64_t row) { return values[static_cast<std::size_t>(row)]; });
}

/// Appends to `values` those of the needed tokens among the rows `part` of the asked ones. A rank sends the
/// number of its runs of asked rows, first row and length of each run, and the values.
void AskedTokens::fetch_part(const PositionSet& held, const std::function<double(std::int64_t)>& value_of,
                             RowSpan part, std::vector<double>& values) const {
  const PositionSet positions = positions_of(part, asked_);
  const PositionSet mine = set_intersection(positions, held);
  const std::vector<RowSpan> runs = rows_of(mine, asked_);
  std::vector<double> sent{static_cast<double>(runs.size())};
  for (const RowSpan run : runs) {
    sent.push_back(static_cast<double>(run.first));
    sent.push_back(static_cast<double>(run.count));
  }
  for (const RowSpan rows : rows_of(mine, held)) {
    for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      sent.push_back(value_of(row));
    }
  }

  std::vector<double> of_part(static_cast<std::size_t>(part.count), std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> received = group_.gather(sent);
  for (auto header = received.begin(); header != received.end();) {
    const auto runs_sent = static_cast<std::int64_t>(*header++);
    auto value = header + 2 * runs_sent;
    for (const auto end_of_header = value; header != end_of_header; header += 2) {
      const auto first = static_cast<std::int64_t>(header[0]);
      const auto count = static_cast<std::int64_t>(header[1]);
      std::copy_n(value, count, of_part.begin() + first - part.first);
      value += count;
    }
    header = value;
  }
  for (const RowSpan run : rows_of(set_intersection(positions, needed_), asked_)) {
    const auto first = of_part.begin() + run.first - part.first;
    values.insert(values.end(), first, first + run.count);
  }
}

}  // namespace hcp
