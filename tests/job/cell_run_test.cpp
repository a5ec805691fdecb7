/// From options to gradients: levels of one rank vanish, whoever gave the sizes.
#include "src/job/cell_run.hpp"

#include <gtest/gtest.h>

#include "src/comm/mpi_transport.hpp"
#include "src/job/command_line.hpp"
#include "src/job/config_validation.hpp"
#include "src/job/setup.hpp"

namespace hcp {
namespace {

// clang-format off
const std::vector<std::string> problem{"run", "--seq-length", "71", "--doc-lengths", "33,0,38",
                                       "--num-attention-heads", "8", "--num-query-groups", "2",
                                       "--kv-channels", "16", "--attention-mask-type", "causal"};
// clang-format on

/// out, dq, dk and dv of this rank as they lie in memory, and the communicators that were made for them.
struct Computed {
  std::vector<std::vector<std::byte>> tensors;
  std::vector<CommunicatorRecord> communicators;
};

class CellOfOptions : public testing::Test {
 protected:
  [[nodiscard]] Computed run(const std::string& scheme, const std::string& sizes) const {
    std::vector<std::string> words{problem};
    words.insert(words.end(), {"--cp-comm-type", scheme});
    if (!sizes.empty()) {
      words.insert(words.end(), {"--hierarchical-context-parallel-sizes", sizes});
    }
    const JobConfig config = parse_job_config(words);
    validate(config, world_.size());
    const Input input = open_input(config);
    const NodeLayout layout = discover_node_layout(world_, 0);
    const JobPlan plan{config, input.shape, layout, grid_sizes(config, world_.size())};
    HierarchicalCommunicators communicators{world_, layout, plan.grid()};
    CellRun cell{
        config, plan, communicators, make_back_end(config, 1),
        [](const MpiCommunicator& comm, double timeout_s) { return make_mpi_transport(comm, timeout_s); }};
    const LayerTensors& tensors = cell.tensors(0);
    for (const auto& [tensor, array] : {std::pair{InputTensor::q, array_q},
                                        {InputTensor::k, array_k},
                                        {InputTensor::v, array_v},
                                        {InputTensor::dout, array_dout}}) {
      input.source->fill(tensor, cell.shard(), 0, 0, tensors.view(array));
    }
    cell.forward();
    cell.backward();
    Computed computed{.tensors = {}, .communicators = communicators.created()};
    for (const KnownArray array : {array_out, array_dq, array_dk, array_dv}) {
      const TensorView view = tensors.view(array);
      computed.tensors.emplace_back(view.data, view.data + view.bytes());
    }
    return computed;
  }

  const MpiCommunicator world_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
};

TEST_F(CellOfOptions, LevelsOfOneRankVanish) {
  const std::string ranks = std::to_string(world_.size());
  for (const std::string inner : {"p2p", "all_gather", "a2a"}) {
    for (const std::string outer : {"p2p", "all_gather", "a2a"}) {
      for (const bool inner_vanishes : {true, false}) {
        const std::string sizes = inner_vanishes ? "1," + ranks : ranks + ",1";
        SCOPED_TRACE(inner + "+" + outer + " " + sizes);
        const Computed pair = run(inner + "+" + outer, sizes);
        const Computed single = run(inner_vanishes ? outer : inner, "");
        EXPECT_EQ(pair.tensors, single.tensors);
        EXPECT_EQ(pair.communicators, single.communicators);
      }
    }
  }
}

TEST_F(CellOfOptions, TheNodeLayoutOfOneNodeMakesOneLevel) {
  EXPECT_EQ(run("p2p+a2a", "").tensors, run("p2p", "").tensors);
}

}  // namespace
}  // namespace hcp
