#include <gmock/gmock.h>

#include <stdexcept>

#include "topology/host_facts.hpp"
#include "topology/mpi_environment.hpp"
#include "topology/node_layout.hpp"

namespace hcp {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(DiscoverNodeLayout, OneHostIsOneNode) {
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const NodeLayout layout = discover_node_layout(world, 0);
  EXPECT_EQ(layout.world_size(), world.size());
  EXPECT_EQ(layout.nodes(), 1);
  EXPECT_THAT(layout.node_names, ::testing::ElementsAre(this_host().host_name));
  EXPECT_THAT(layout.node_of_rank, Each(0));
  EXPECT_EQ(layout.local_rank_of_rank.at(static_cast<std::size_t>(world.rank())), world.rank());
  EXPECT_FALSE(layout.simulated);
}

TEST(DiscoverNodeLayout, SimulatesNodes) {
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const int ranks_per_node = world.size() % 2 == 0 ? 2 : 1;
  const NodeLayout layout = discover_node_layout(world, ranks_per_node);
  EXPECT_TRUE(layout.simulated);
  EXPECT_EQ(layout.nodes(), world.size() / ranks_per_node);
  EXPECT_EQ(layout.node_of_rank.at(static_cast<std::size_t>(world.rank())), world.rank() / ranks_per_node);
  EXPECT_THAT(layout.host_of_rank, Each(0));
  EXPECT_THAT(layout.node_names.back(), HasSubstr("@" + this_host().host_name));
}

TEST(DiscoverNodeLayout, EveryRankRefusesNodesThatDoNotFit) {
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  EXPECT_THROW(static_cast<void>(discover_node_layout(world, world.size() + 1)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(discover_node_layout(world, -1)), std::invalid_argument);
}

}  // namespace
}  // namespace hcp
