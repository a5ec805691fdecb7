/// Which form of messages a run plans for, and what its header says of it.
#include "src/job/job_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/job/problem_shape.hpp"

namespace hcp {
namespace {

JobConfig config_on(BackendChoice backend, TransportChoice transport) {
  JobConfig config;
  config.backend = backend;
  config.transport = transport;
  return config;
}

TEST(MessageFormOfARun, IsWhatItsTransportNeeds) {
  const auto form = [](BackendChoice backend, TransportChoice transport) {
    return message_form_of(config_on(backend, transport));
  };
  EXPECT_EQ(form(BackendChoice::cpu, TransportChoice::mpi), MessageForm::scattered);
  EXPECT_EQ(form(BackendChoice::cuda, TransportChoice::nccl), MessageForm::collectives);
  EXPECT_EQ(form(BackendChoice::cuda, TransportChoice::staged), MessageForm::contiguous);
}

TEST(MessageFormOfARun, IsThatOfHostsUnlessTheOptionsSayDevices) {
  const auto form = [](BackendChoice backend, TransportChoice transport) {
    return message_form_of(config_on(backend, transport));
  };
  EXPECT_EQ(form(BackendChoice::automatic, TransportChoice::automatic), MessageForm::scattered);
  EXPECT_EQ(form(BackendChoice::cuda, TransportChoice::automatic), MessageForm::collectives);
  EXPECT_EQ(form(BackendChoice::automatic, TransportChoice::staged), MessageForm::contiguous);
  JobConfig with_kernel;
  with_kernel.attention_kernel = KernelChoice::cuda;
  EXPECT_EQ(message_form_of(with_kernel), MessageForm::collectives);
}

/// What the header says of a dense problem of `length` tokens on 2 x 3 ranks.
std::vector<std::string> notes(TransportChoice transport, std::int64_t length) {
  JobConfig config = config_on(BackendChoice::automatic, transport);
  config.seq_length = length;
  config.num_attention_heads = 4;
  config.kv_channels = 8;
  config.context_parallel_size = 6;
  config.cp_comm_type = {{Algorithm::all_gather, Algorithm::p2p}};
  config.hierarchical_context_parallel_sizes = {2, 3};
  const NodeLayout layout = simulated_layout(6, 2);
  return JobPlan{config, shape_from_options(config), layout, {.cp = 6}}.notes();
}

TEST(NoteOnMessages, TellsTheFormAndHowManyGathersAreCollectives) {
  using testing::Contains;
  EXPECT_THAT(notes(TransportChoice::mpi, 96), Contains("messages: rows from where they lie in memory"));
  const std::string in_pieces = "messages: each tensor in one piece, packed where its rows lie apart";
  EXPECT_THAT(notes(TransportChoice::staged, 96), Contains(in_pieces));
  const auto with_collectives = [&](int collectives) {
    return in_pieces + "; collectives: " + std::to_string(collectives) +
           " of 3 gathers of K and V (CP rank 0, a pass of each scheme); gradients are messages, summed in "
           "rank "
           "order";
  };
  EXPECT_THAT(notes(TransportChoice::nccl, 96), Contains(with_collectives(3)));
  EXPECT_THAT(notes(TransportChoice::nccl, 95), Contains(with_collectives(2)));
}

}  // namespace
}  // namespace hcp
