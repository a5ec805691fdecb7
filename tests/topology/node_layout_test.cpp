#include "topology/node_layout.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <stdexcept>

namespace hcp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Ranks on hosts "h<id>".
NodeLayout layout_of(const std::vector<int>& node_ids) {
  std::vector<std::string> names;
  for (const int id : node_ids) {
    names.push_back("h" + std::to_string(id));
  }
  return layout_from_node_ids(node_ids, names);
}

std::string refusal(const auto& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NodeLayout, InterleavedHostsGetOneNodeEach) {
  const NodeLayout layout = layout_of({7, 3, 7, 3, 7, 3});
  EXPECT_THAT(layout.node_of_rank, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(layout.local_rank_of_rank, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(layout.node_names, ElementsAre("h7", "h3"));
  EXPECT_THAT(layout.renumbered, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(layout.world_rank_of, ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_FALSE(layout.simulated);
  EXPECT_EQ(layout.host_of_rank, layout.node_of_rank);
}

TEST(NodeLayout, BlockAndCyclicPlacementGiveTheSameNodesInGridOrder) {
  for (const auto& placement :
       {std::vector{0, 0, 0, 1, 1, 1, 2, 2, 2}, std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2},
        std::vector{5, 5, 1, 3, 1, 3, 5, 1, 3}}) {
    const NodeLayout layout = layout_of(placement);
    std::vector<int> node_of_grid_rank;
    for (int grid_rank = 0; grid_rank < layout.world_size(); ++grid_rank) {
      node_of_grid_rank.push_back(layout.node_of_grid_rank(grid_rank));
      EXPECT_EQ(layout.renumbered.at(
                    static_cast<std::size_t>(layout.world_rank_of.at(static_cast<std::size_t>(grid_rank)))),
                grid_rank);
    }
    EXPECT_THAT(node_of_grid_rank, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  }
}

TEST(NodeLayout, RefusesRanksWithoutName) {
  const std::vector<int> ids{0, 1};
  const std::vector<std::string> names{"a"};
  EXPECT_THAT(refusal([&] { return layout_from_node_ids(ids, names); }),
              HasSubstr("2 node ids but 1 host names"));
}

TEST(SimulatedLayout, CutsOneHost) {
  const NodeLayout layout = simulated_layout(6, 2);
  EXPECT_TRUE(layout.simulated);
  EXPECT_THAT(layout.node_of_rank, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(layout.local_rank_of_rank, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(layout.renumbered, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(layout.host_of_rank, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(layout.node_names, ElementsAre("node0@localhost", "node1@localhost", "node2@localhost"));
  EXPECT_EQ(simulated_layout(5, 5).nodes(), 1);
  EXPECT_EQ(simulated_layout(5, 1).nodes(), 5);
}

TEST(SimulatedLayout, KeepsEveryNodeInsideOneHost) {
  // Two hosts of four ranks, dealt cyclically, cut into nodes of two.
  const NodeLayout layout = simulated_layout(layout_of({0, 1, 0, 1, 0, 1, 0, 1}), 2);
  EXPECT_THAT(layout.node_of_rank, ElementsAre(0, 2, 0, 2, 1, 3, 1, 3));
  EXPECT_THAT(layout.renumbered, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(layout.node_names, ElementsAre("node0@h0", "node1@h0", "node2@h1", "node3@h1"));
  EXPECT_THAT(layout.host_of_rank, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(layout.host_names, ElementsAre("h0", "h1"));
}

TEST(SimulatedLayout, RefusesNodesThatDoNotFit) {
  EXPECT_THAT(refusal([] { return simulated_layout(6, 0); }),
              HasSubstr("per node = 0; it must be at least 1"));
  EXPECT_THAT(refusal([] { return simulated_layout(6, -1); }), HasSubstr("at least 1"));
  EXPECT_THAT(refusal([] { return simulated_layout(6, 4); }), HasSubstr("4 does not divide the 6 ranks"));
  EXPECT_THAT(refusal([] { return simulated_layout(2, 4); }), HasSubstr("4 does not divide the 2 ranks"));
  EXPECT_THAT(refusal([] { return simulated_layout(0, 1); }), HasSubstr("number of ranks = 0"));
  EXPECT_THAT(refusal([] {
                return simulated_layout(layout_of({0, 0, 0, 0, 1, 1, 1}), 2);
              }),
              AllOf(HasSubstr("3 ranks on host h1"), HasSubstr("divide the ranks of every host")));
  EXPECT_THAT(refusal([] { return simulated_layout(simulated_layout(4, 2), 1); }),
              HasSubstr("simulated already"));
}

TEST(CpRanksPerNode, IsTheSizeOfLevelZero) {
  EXPECT_EQ(cp_ranks_per_node(RankGrid::over_world(8, 1, 8, 1), simulated_layout(8, 2)), 2);
  EXPECT_EQ(cp_ranks_per_node(RankGrid::over_world(8, 2, 4, 1), simulated_layout(8, 4)), 2);
  EXPECT_EQ(cp_ranks_per_node(RankGrid::over_world(8, 1, 4, 1), simulated_layout(8, 8)), 4);
  EXPECT_EQ(cp_ranks_per_node(RankGrid::over_world(8, 4, 2, 1), simulated_layout(8, 4)), 1);
  EXPECT_EQ(cp_ranks_per_node(RankGrid::over_world(6, 1, 6, 1), layout_of({0, 1, 0, 1, 0, 1})), 3);
}

TEST(CpRanksPerNode, RefusesUnequalNodesByName) {
  EXPECT_THAT(refusal([] {
                return cp_ranks_per_node(RankGrid::over_world(4, 1, 4, 1), layout_of({0, 0, 0, 1}));
              }),
              AllOf(HasSubstr("1 on h1"), HasSubstr("3 on h0")));
  // The first CP group lies on one node, the second on two: no single level size fits both.
  EXPECT_THAT(
      refusal([] {
        return cp_ranks_per_node(RankGrid::over_world(8, 1, 4, 1), layout_of({0, 0, 0, 0, 0, 0, 1, 1}));
      }),
      AllOf(HasSubstr("2 on h0 h1"), HasSubstr("4 on h0")));
}

TEST(NodesThatSplitLevelZero, NamesThem) {
  const RankGrid grid = RankGrid::over_world(8, 1, 8, 1);
  const NodeLayout layout = layout_of({0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {2, 4}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {4, 2}), ElementsAre("h0", "h1", "h2", "h3"));
  EXPECT_THAT(nodes_that_split_level_0(grid, layout_of({0, 0, 0, 0, 1, 1, 2, 2}), {4, 2}),
              ElementsAre("h1", "h2"));
}

TEST(NodesThatSplitLevelZero, PassesOverLevelsOfSizeOne) {
  const RankGrid grid = RankGrid::over_world(8, 1, 8, 1);
  const NodeLayout layout = layout_of({0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {8}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {1, 8}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {8, 1, 1}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {1, 2, 4}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, layout, {1, 4, 2}), Not(IsEmpty()));
}

TEST(NodesThatSplitLevelZero, CountsTensorParallelRanks) {
  // TP 2: four ranks per node are two CP ranks per node.
  const RankGrid grid = RankGrid::over_world(8, 2, 4, 1);
  EXPECT_THAT(nodes_that_split_level_0(grid, simulated_layout(8, 4), {2, 2}), IsEmpty());
  EXPECT_THAT(nodes_that_split_level_0(grid, simulated_layout(8, 2), {2, 2}), Not(IsEmpty()));
}

}  // namespace
}  // namespace hcp
