#include "topology/hierarchical_communicators.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "topology/level_digits.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;

/// `value` of every rank of `comm`, in rank order.
std::vector<int> values_in(const MpiCommunicator& comm, int value) {
  const double mine = value;
  std::vector<int> values;
  for (const std::vector<double>& of_rank : all_gather(comm, std::span{&mine, 1})) {
    values.push_back(static_cast<int>(of_rank.at(0)));
  }
  return values;
}

/// World ranks dealt to two nodes in turn, so that grid order differs from world order.
NodeLayout cyclic_on_two_nodes(int ranks) {
  std::vector<int> node_ids;
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) {
    node_ids.push_back(rank % 2);
    names.push_back(rank % 2 == 0 ? "even" : "odd");
  }
  return layout_from_node_ids(node_ids, names);
}

class Communicators : public ::testing::Test {
 protected:
  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  int ranks = world.size();
  NodeLayout layout = cyclic_on_two_nodes(ranks);
};

TEST_F(Communicators, WorldIsInGridOrder) {
  const HierarchicalCommunicators comms{world, layout, RankGrid::over_world(ranks, 1, ranks, 1)};
  EXPECT_EQ(comms.world().rank(), comms.grid_rank());
  EXPECT_EQ(values_in(comms.world(), world.rank()), layout.world_rank_of);
}

TEST_F(Communicators, CpGroupsAreThoseOfTheGrid) {
  for (int tp = 1; tp <= ranks; ++tp) {
    for (int cp = 1; tp * cp <= ranks; ++cp) {
      if (ranks % (tp * cp) != 0) {
        continue;
      }
      const RankGrid grid = RankGrid::over_world(ranks, tp, cp, 1);
      const HierarchicalCommunicators comms{world, layout, grid};
      EXPECT_EQ(comms.coordinates(), grid.coordinates_of(comms.grid_rank()));
      EXPECT_EQ(comms.cp_size(), cp);
      ASSERT_EQ(comms.cp().has_value(), cp > 1);
      if (comms.cp()) {
        EXPECT_EQ(comms.cp()->rank(), comms.cp_rank());
        EXPECT_EQ(values_in(*comms.cp(), comms.grid_rank()), grid.group_of(comms.grid_rank(), "cp"));
      }
    }
  }
}

TEST_F(Communicators, LevelGroupsAreThoseOfTheArithmetic) {
  const RankGrid grid = RankGrid::over_world(ranks, 1, ranks, 1);
  HierarchicalCommunicators comms{world, layout, grid};
  for (int inner = 1; inner <= ranks; ++inner) {
    for (int middle = 1; inner * middle <= ranks; ++middle) {
      if (ranks % (inner * middle) != 0) {
        continue;
      }
      const std::vector<int> sizes{inner, middle, ranks / inner / middle};
      for (const std::vector<int>& levels : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 2}, {2, 1}}) {
        const LevelPlace place = level_place(comms.cp_rank(), sizes, levels);
        const std::optional<MpiCommunicator> group = comms.level_group(sizes, levels);
        ASSERT_EQ(group.has_value(), place.size > 1);
        if (group) {
          EXPECT_EQ(group->rank(), place.rank);
          EXPECT_EQ(values_in(*group, comms.cp_rank()),
                    level_groups(sizes, levels).at(static_cast<std::size_t>(place.group)));
        }
      }
    }
  }
}

TEST_F(Communicators, ListsWhatWasCreatedAndNothingOfSizeOne) {
  HierarchicalCommunicators comms{world, layout, RankGrid::over_world(ranks, 1, ranks, 1)};
  const auto single = comms.level_group({1, ranks}, {0});
  const auto whole = comms.level_group({1, ranks}, {1, 0});
  EXPECT_FALSE(single.has_value());
  if (ranks == 1) {
    EXPECT_FALSE(whole.has_value());
    EXPECT_THAT(comms.created(), ElementsAre(Eq(CommunicatorRecord{"world", 1})));
  } else {
    EXPECT_THAT(comms.created(),
                ElementsAre(Eq(CommunicatorRecord{"world", ranks}), Eq(CommunicatorRecord{"cp", ranks}),
                            Eq(CommunicatorRecord{"levels 0,1", ranks})));
  }
}

TEST_F(Communicators, RefuseWhatDoesNotFit) {
  EXPECT_THROW((HierarchicalCommunicators{world, cyclic_on_two_nodes(ranks + 1), RankGrid{{.cp = ranks}}}),
               std::invalid_argument);
  EXPECT_THROW((HierarchicalCommunicators{world, layout, RankGrid{{.cp = ranks + 1}}}),
               std::invalid_argument);
  HierarchicalCommunicators comms{world, layout, RankGrid{{.cp = ranks}}};
  EXPECT_THROW(static_cast<void>(comms.level_group({ranks, 2}, {0})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(comms.level_group({ranks}, {1})), std::invalid_argument);
}

}  // namespace
}  // namespace hcp
