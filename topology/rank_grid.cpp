#include "topology/rank_grid.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace hcp {

namespace {

constexpr std::array<std::string_view, 4> axis_names{"tp", "cp", "dp", "pp"};

std::array<int, 4> as_array(const GridSizes& sizes) {
  return {sizes.tp, sizes.cp, sizes.dp, sizes.pp};
}

void check_at_least_one(std::string_view what, int size) {
  if (size < 1) {
    throw std::invalid_argument{std::string{what} + " = " + std::to_string(size) + "; it must be at least 1"};
  }
}

/// The product of sizes that are at least 1.
std::int64_t checked_product(const std::array<int, 4>& sizes) {
  std::int64_t product = 1;
  for (const int size : sizes) {
    product *= size;  // below 2^31 before, so below 2^62 after
    if (product > std::numeric_limits<int>::max()) {
      throw std::invalid_argument{"tp·cp·dp·pp = " + std::to_string(sizes[0]) + "·" +
                                  std::to_string(sizes[1]) + "·" + std::to_string(sizes[2]) + "·" +
                                  std::to_string(sizes[3]) +
                                  " overflows; the number of ranks must stay below 2^31"};
    }
  }
  return product;
}

/// Which axes a hyphen list names.
std::array<bool, 4> axis_mask(std::string_view axes) {
  std::array<bool, 4> mask{};
  std::string_view rest = axes;
  while (true) {
    const std::size_t hyphen = rest.find('-');
    const std::string_view name = rest.substr(0, hyphen);
    std::size_t axis = 0;
    while (axis < axis_names.size() && axis_names[axis] != name) {
      ++axis;
    }
    if (axis == axis_names.size() || mask[axis]) {
      throw std::invalid_argument{"axes \"" + std::string{axes} +
                                  "\"; must be a hyphen list of tp, cp, dp, pp, each at most once"};
    }
    mask[axis] = true;
    if (hyphen == std::string_view::npos) {
      return mask;
    }
    rest.remove_prefix(hyphen + 1);
  }
}

/// A rank's group among all groups of a mask, and its place in that group: two mixed-radix numbers.
std::pair<int, int> group_and_place(const std::array<int, 4>& sizes, const std::array<bool, 4>& mask,
                                    int rank) {
  int group = 0;
  int group_stride = 1;
  int place = 0;
  int place_stride = 1;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const int digit = rank % sizes[axis];
    rank /= sizes[axis];
    int& number = mask[axis] ? place : group;
    int& stride = mask[axis] ? place_stride : group_stride;
    number += digit * stride;
    stride *= sizes[axis];
  }
  return {group, place};
}

}  // namespace

RankGrid::RankGrid(const GridSizes& sizes) : sizes_{sizes} {
  const std::array<int, 4> extents = as_array(sizes);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    check_at_least_one(std::string{axis_names[axis]} + " size", extents[axis]);
  }
  checked_product(extents);
}

RankGrid RankGrid::over_world(int world_size, int tp, int cp, int pp) {
  check_at_least_one("number of ranks", world_size);
  const RankGrid replica{{.tp = tp, .cp = cp, .dp = 1, .pp = pp}};
  if (world_size % replica.world_size() != 0) {
    throw std::invalid_argument{"number of ranks = " + std::to_string(world_size) +
                                " is not divisible by tp·cp·pp = " + std::to_string(tp) + "·" +
                                std::to_string(cp) + "·" + std::to_string(pp) + " = " +
                                std::to_string(replica.world_size()) +
                                "; start a multiple of that many ranks or choose other sizes"};
  }
  return RankGrid{{.tp = tp, .cp = cp, .dp = world_size / replica.world_size(), .pp = pp}};
}

int RankGrid::rank_of(const GridCoordinates& at) const noexcept {
  return at.tp + sizes_.tp * (at.cp + sizes_.cp * (at.dp + sizes_.dp * at.pp));
}

GridCoordinates RankGrid::coordinates_of(int rank) const noexcept {
  return {.tp = rank % sizes_.tp,
          .cp = rank / sizes_.tp % sizes_.cp,
          .dp = rank / sizes_.tp / sizes_.cp % sizes_.dp,
          .pp = rank / sizes_.tp / sizes_.cp / sizes_.dp};
}

std::vector<std::vector<int>> RankGrid::groups(std::string_view axes) const {
  const std::array<bool, 4> mask = axis_mask(axes);
  const std::array<int, 4> extents = as_array(sizes_);
  int group_size = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    group_size *= mask[axis] ? extents[axis] : 1;
  }
  std::vector<std::vector<int>> all(static_cast<std::size_t>(world_size() / group_size),
                                    std::vector<int>(static_cast<std::size_t>(group_size)));
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto [group, place] = group_and_place(extents, mask, rank);
    all[static_cast<std::size_t>(group)][static_cast<std::size_t>(place)] = rank;
  }
  return all;
}

std::vector<int> RankGrid::group_of(int rank, std::string_view axes) const {
  const auto [group, place] = group_and_place(as_array(sizes_), axis_mask(axes), rank);
  return groups(axes).at(static_cast<std::size_t>(group));
}

}  // namespace hcp
