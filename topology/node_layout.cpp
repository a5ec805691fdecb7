#include "topology/node_layout.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "topology/host_facts.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {

namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Fills what follows from node_of_rank: local ranks and the numbering node by node.
void number_ranks(NodeLayout& layout) {
  const std::size_t ranks = layout.node_of_rank.size();
  std::vector<std::vector<int>> ranks_of_node(layout.node_names.size());
  layout.local_rank_of_rank.resize(ranks);
  layout.renumbered.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<int>& members = ranks_of_node[index(layout.node_of_rank[rank])];
    layout.local_rank_of_rank[rank] = static_cast<int>(members.size());
    members.push_back(static_cast<int>(rank));
  }
  for (const std::vector<int>& members : ranks_of_node) {
    for (const int rank : members) {
      layout.renumbered[index(rank)] = static_cast<int>(layout.world_rank_of.size());
      layout.world_rank_of.push_back(rank);
    }
  }
}

/// CP ranks of one CP group on each node, [node].
std::vector<int> cp_ranks_on_nodes(const std::vector<int>& cp_group, const NodeLayout& layout) {
  std::vector<int> on_node(index(layout.nodes()), 0);
  for (const int grid_rank : cp_group) {
    ++on_node[index(layout.node_of_grid_rank(grid_rank))];
  }
  return on_node;
}

}  // namespace

int NodeLayout::node_of_grid_rank(int grid_rank) const {
  return node_of_rank.at(index(world_rank_of.at(index(grid_rank))));
}

NodeLayout layout_from_node_ids(std::span<const int> node_id, std::span<const std::string> host_name) {
  if (node_id.size() != host_name.size()) {
    throw std::invalid_argument{std::to_string(node_id.size()) + " node ids but " +
                                std::to_string(host_name.size()) + " host names; each rank must have both"};
  }
  NodeLayout layout;
  std::map<int, int> node_of_id;
  for (std::size_t rank = 0; rank < node_id.size(); ++rank) {
    const auto [at, is_new] = node_of_id.try_emplace(node_id[rank], layout.nodes());
    if (is_new) {
      layout.node_names.push_back(host_name[rank]);
    }
    layout.node_of_rank.push_back(at->second);
  }
  layout.host_of_rank = layout.node_of_rank;
  layout.host_names = layout.node_names;
  number_ranks(layout);
  return layout;
}

NodeLayout simulated_layout(const NodeLayout& hosts, int ranks_per_node) {
  if (ranks_per_node < 1) {
    throw std::invalid_argument{"simulated ranks per node = " + std::to_string(ranks_per_node) +
                                "; it must be at least 1"};
  }
  if (hosts.simulated) {
    throw std::invalid_argument{"nodes are simulated already; only real hosts can be cut into nodes"};
  }
  std::vector<int> ranks_on_host(hosts.host_names.size(), 0);
  for (const int host : hosts.host_of_rank) {
    ++ranks_on_host[index(host)];
  }
  for (std::size_t host = 0; host < ranks_on_host.size(); ++host) {
    if (ranks_on_host[host] % ranks_per_node != 0) {
      throw std::invalid_argument{"simulated ranks per node = " + std::to_string(ranks_per_node) +
                                  " does not divide the " + std::to_string(ranks_on_host[host]) +
                                  " ranks on host " + hosts.host_names[host] +
                                  "; it must divide the ranks of every host"};
    }
  }

  NodeLayout layout;
  layout.host_of_rank = hosts.host_of_rank;
  layout.host_names = hosts.host_names;
  layout.simulated = true;
  layout.node_of_rank.resize(hosts.node_of_rank.size());
  // The ranks of a host are neighbours in grid order, so equal pieces of that order never straddle two hosts.
  for (int grid_rank = 0; grid_rank < hosts.world_size(); ++grid_rank) {
    const int world_rank = hosts.world_rank_of[index(grid_rank)];
    const int node = grid_rank / ranks_per_node;
    layout.node_of_rank[index(world_rank)] = node;
    if (node == layout.nodes()) {
      layout.node_names.push_back("node" + std::to_string(node) + "@" +
                                  hosts.host_names[index(hosts.host_of_rank[index(world_rank)])]);
    }
  }
  number_ranks(layout);
  return layout;
}

NodeLayout simulated_layout(int world_size, int ranks_per_node) {
  if (world_size < 1) {
    throw std::invalid_argument{"number of ranks = " + std::to_string(world_size) +
                                "; it must be at least 1"};
  }
  const std::vector<int> one_host(index(world_size), 0);
  const std::vector<std::string> names(index(world_size), "localhost");
  return simulated_layout(layout_from_node_ids(one_host, names), ranks_per_node);
}

NodeLayout discover_node_layout(const MpiCommunicator& world, int simulate_ranks_per_node) {
  const MpiCommunicator host = world.split_by_host();
  int host_id = world.rank();  // the lowest world rank of a host is its id
  check_mpi(MPI_Bcast(&host_id, 1, MPI_INT, 0, host.get()), "MPI_Bcast");
  std::vector<int> host_ids(index(world.size()));
  check_mpi(MPI_Allgather(&host_id, 1, MPI_INT, host_ids.data(), 1, MPI_INT, world.get()), "MPI_Allgather");
  const NodeLayout hosts = layout_from_node_ids(host_ids, all_gather(world, this_host().host_name));
  return simulate_ranks_per_node == 0 ? hosts : simulated_layout(hosts, simulate_ranks_per_node);
}

int cp_ranks_per_node(const RankGrid& grid, const NodeLayout& layout) {
  std::map<int, std::set<int>> nodes_by_count;
  for (const std::vector<int>& cp_group : grid.groups("cp")) {
    const std::vector<int> on_node = cp_ranks_on_nodes(cp_group, layout);
    for (int node = 0; node < layout.nodes(); ++node) {
      if (on_node[index(node)] > 0) {
        nodes_by_count[on_node[index(node)]].insert(node);
      }
    }
  }
  if (nodes_by_count.size() == 1) {
    return nodes_by_count.begin()->first;
  }
  std::string message = "CP ranks per node differ:";
  for (const auto& [count, nodes] : nodes_by_count) {
    message += (count == nodes_by_count.begin()->first ? " " : "; ") + std::to_string(count) + " on";
    for (const int node : nodes) {
      message += " " + layout.node_names[index(node)];
    }
  }
  throw std::invalid_argument{message +
                              ". A scheme of several levels needs equally many on every node of every CP "
                              "group; place equally many ranks per node or take a scheme of one level"};
}

std::vector<std::string> nodes_that_split_level_0(const RankGrid& grid, const NodeLayout& layout,
                                                  const std::vector<int>& level_sizes) {
  std::vector<int> lasting;
  std::copy_if(level_sizes.begin(), level_sizes.end(), std::back_inserter(lasting),
               [](int size) { return size > 1; });
  if (lasting.size() < 2) {
    return {};
  }
  std::set<int> split_nodes;
  for (const std::vector<int>& cp_group : grid.groups("cp")) {
    for (std::size_t first = 0; first < cp_group.size(); first += index(lasting.front())) {
      std::set<int> nodes;
      for (std::size_t member = 0; member < index(lasting.front()); ++member) {
        nodes.insert(layout.node_of_grid_rank(cp_group.at(first + member)));
      }
      if (nodes.size() > 1) {
        split_nodes.merge(nodes);
      }
    }
  }
  std::vector<std::string> names;
  for (const int node : split_nodes) {
    names.push_back(layout.node_names[index(node)]);
  }
  return names;
}

}  // namespace hcp
