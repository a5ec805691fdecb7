/// The real input through every scheme on four ranks and three triples on eight, one scheme per layer, held
/// against what an independent implementation computed from the same tensors: out of all tokens, and dq, dk,
/// dv of a sample of them.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <cstdio>

#include "src/comm/mpi_transport.hpp"
#include "src/job/cell_run.hpp"
#include "src/job/command_line.hpp"
#include "src/job/config_validation.hpp"
#include "src/job/setup.hpp"
#include "src/job/verify_cell.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// One per layer, and the sizes that three levels need.
struct Schemes {
  std::string names;
  int count = 0;
  std::string sizes;
};

/// Four ranks: every single and every pair, sizes from the nodes. Eight: the triples of the attention matrix.
Schemes schemes_on(int ranks) {
  if (ranks == 8) {
    return {"p2p+a2a+p2p,a2a+all_gather+p2p,a2a+p2p+a2a", 3, "2,2,2"};
  }
  return {
      "p2p,all_gather,a2a,p2p+p2p,p2p+all_gather,p2p+a2a,all_gather+p2p,all_gather+all_gather,"
      "all_gather+a2a,a2a+p2p,a2a+all_gather,a2a+a2a",
      12,
      {}};
}

template <typename Value>
std::vector<Value> read_all(const std::string& path, const char* name, hid_t type) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::vector<Value> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  EXPECT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << name;
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  return values;
}

/// ||x - ref|| / ||ref|| over the tokens that both have; all ranks together.
double sampled_error(const HierarchicalCommunicators& communicators, const PositionSet& shard,
                     ConstTensorView computed, const std::vector<std::int64_t>& tokens,
                     const std::vector<float>& reference) {
  std::array<double, 2> sums{0.0, 0.0};
  const auto row_elements = static_cast<std::size_t>(computed.row_elements());
  std::vector<float> values(row_elements);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const PositionSet one{{tokens[i], tokens[i] + 1}};
    if (set_intersection(one, shard).empty()) {
      continue;
    }
    widen(computed.type, computed.row_slice(rows_of(one, shard).front().first, 1).data, values.data(),
          row_elements);
    for (std::size_t e = 0; e < row_elements; ++e) {
      const double ref = reference[i * row_elements + e];
      sums[0] += (values[e] - ref) * (values[e] - ref);
      sums[1] += ref * ref;
    }
  }
  all_reduce(communicators.world(), Reduction::sum, sums);
  return std::sqrt(sums[0] / sums[1]);
}

TEST(RealInput, EverySchemeGivesWhatAnIndependentImplementationComputed) {
  const std::string path = std::string{HCP_SOURCE_DIR} + "/inputs/real/minilm_layer3.h5";
  const auto tokens = read_all<std::int64_t>(path, "sampled_tokens", H5T_NATIVE_INT64);
  const MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const Schemes schemes = schemes_on(world.size());
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    std::vector<std::string> arguments{"run",
                                       "--qkv",
                                       path,
                                       "--num-layers",
                                       std::to_string(schemes.count),
                                       "--cp-comm-type",
                                       schemes.names,
                                       "--dtype",
                                       dtype,
                                       "--simulate-ranks-per-node",
                                       "2",
                                       "--verify",
                                       "full"};
    if (!schemes.sizes.empty()) {
      arguments.insert(arguments.end(), {"--hierarchical-context-parallel-sizes", schemes.sizes});
    }
    const JobConfig config = parse_job_config(arguments);
    validate(config, world.size());
    const Input input = open_input(config);
    const NodeLayout layout = discover_node_layout(world, 2);
    const JobPlan plan{config, input.shape, layout, grid_sizes(config, world.size())};
    ASSERT_EQ(plan.schemes().size(), static_cast<std::size_t>(schemes.count));
    HierarchicalCommunicators communicators{world, layout, plan.grid()};
    CellRun cell{
        config, plan, communicators, make_back_end(config, 1),
        [](const MpiCommunicator& comm, double timeout_s) { return make_mpi_transport(comm, timeout_s); }};
    load_input(input, plan, communicators, cell, [](int) {});
    cell.forward();
    cell.backward();

    const Verified verified =
        verify_cell(config, plan, input, communicators, cell, [](int) {});  // the file's out is part of it
    EXPECT_TRUE(verified.passed) << dtype << ": " << verified.where;
    const std::vector<std::pair<const char*, KnownArray>> gradients{
        {"sampled_dq", array_dq}, {"sampled_dk", array_dk}, {"sampled_dv", array_dv}};
    double worst = 0.0;
    for (const auto& [name, array] : gradients) {
      const auto reference = read_all<float>(path, name, H5T_NATIVE_FLOAT);
      for (int layer = 0; layer < schemes.count; ++layer) {
        const double error =
            sampled_error(communicators, cell.shard(), cell.tensors(layer).view(array), tokens, reference);
        EXPECT_LE(error, verified.tolerance) << dtype << ", " << name << ", layer " << layer;
        worst = std::max(worst, error);
      }
    }
    if (world.rank() == 0) {
      std::printf("%s: %d schemes, largest error %.2e, of sampled gradients %.2e, tolerance %.0e\n", dtype,
                  schemes.count, verified.error, worst, verified.tolerance);
    }
  }
}

}  // namespace
}  // namespace hcp
