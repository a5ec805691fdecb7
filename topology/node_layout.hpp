/// Where the ranks live, and the order in which the grid numbers them.
///
///   cyclic placement on 2 nodes:   world rank   0  1  2  3  4  5
///                                  node         0  1  0  1  0  1
///                                  grid rank    0  3  1  4  2  5
///
/// Grid ranks run node by node, nodes ordered by their lowest world rank, so block and cyclic placements give
/// the same groups.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/mpi_environment.hpp"
#include "topology/rank_grid.hpp"

namespace hcp {

struct NodeLayout {
  std::vector<int> node_of_rank;        ///< [world rank]
  std::vector<int> local_rank_of_rank;  ///< [world rank], counted inside the node
  std::vector<int> renumbered;          ///< [world rank] -> grid rank
  std::vector<int> world_rank_of;       ///< [grid rank] -> world rank
  std::vector<std::string> node_names;  ///< [node]: the host's name, or "node0@host" where simulated
  std::vector<int> host_of_rank;        ///< [world rank]; the node, except where nodes are simulated
  std::vector<std::string> host_names;  ///< [host]
  bool simulated = false;

  [[nodiscard]] int world_size() const { return static_cast<int>(node_of_rank.size()); }
  [[nodiscard]] int nodes() const { return static_cast<int>(node_names.size()); }
  [[nodiscard]] int node_of_grid_rank(int grid_rank) const;
};

/// The layout of ranks that are known by the id of their host; equal ids are one node.
/// @param node_id [world rank], any numbers
/// @param host_name [world rank]; a node takes the name of its lowest rank
[[nodiscard]] NodeLayout layout_from_node_ids(std::span<const int> node_id,
                                              std::span<const std::string> host_name);

/// Cuts every host of a real layout into simulated nodes of `ranks_per_node` ranks, neighbours in grid order.
/// @throws std::invalid_argument if ranks_per_node is below 1 or does not divide the ranks of each host, or
/// if
///         `hosts` is itself simulated
[[nodiscard]] NodeLayout simulated_layout(const NodeLayout& hosts, int ranks_per_node);

/// The same for `world_size` ranks on one host whose name does not matter: no MPI needed.
[[nodiscard]] NodeLayout simulated_layout(int world_size, int ranks_per_node);

/// Collective over `world`. Hosts are told apart by shared memory (MPI_COMM_TYPE_SHARED).
/// @param simulate_ranks_per_node cut the hosts into nodes of that many ranks; 0: the hosts are the nodes
/// @throws std::invalid_argument on every rank as simulated_layout does, MpiError
[[nodiscard]] NodeLayout discover_node_layout(const MpiCommunicator& world, int simulate_ranks_per_node);

/// CP ranks that every CP group has on every node it touches: the size of level 0 where none is given.
/// Needed by schemes of two or more levels only.
/// @throws std::invalid_argument that names the nodes if the number differs
[[nodiscard]] int cp_ranks_per_node(const RankGrid& grid, const NodeLayout& layout);

/// Names of the nodes where a level-0 group lies partly on another node: reason for a warning, not an error.
/// Levels of size 1 are passed over; with fewer than two others there is nothing to fit, and the answer is
/// empty.
[[nodiscard]] std::vector<std::string> nodes_that_split_level_0(const RankGrid& grid,
                                                                const NodeLayout& layout,
                                                                const std::vector<int>& level_sizes);

}  // namespace hcp
