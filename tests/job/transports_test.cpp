// Which transport a run gets: by the devices of its ranks and by the NCCL that they find.

#include "src/job/transports.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "src/job/agreement.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

const NcclSearch nccl_2_28{.version = "2.28.9", .reason = {}};
const NcclSearch no_nccl{.version = {}, .reason = "libnccl.so.2 is on holiday"};

/// Hosts "host0", "host1", ... of `per_host` ranks.
NodeLayout layout_of(int ranks, int per_host) {
  std::vector<int> ids;
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) {
    ids.push_back(rank / per_host);
    names.push_back("host" + std::to_string(rank / per_host));
  }
  return layout_from_node_ids(ids, names);
}

TEST(SharedDevice, IsOneDeviceOfOneHost) {
  const std::vector<std::string> devices{"Abacus 0000:1b:00.0", "Abacus 0000:2c:00.0", "Abacus 0000:1b:00.0",
                                         "Abacus 0000:2c:00.0"};
  EXPECT_EQ(shared_device(devices, layout_of(4, 2)), std::nullopt);
  EXPECT_THAT(shared_device(devices, layout_of(4, 4)),
              Optional(std::string{"world ranks 0 and 2 share Abacus 0000:1b:00.0 on host0"}));
  const std::vector<std::string> of_second_host{"a 1", "a 2", "a 3", "b 1", "b 1", "b 1"};
  EXPECT_THAT(shared_device(of_second_host, layout_of(6, 3)),
              Optional(std::string{"world ranks 3, 4 and 5 share b 1 on host1"}));
}

TEST(SharedDevice, SimulatedNodesAreOneHost) {
  const std::vector<std::string> devices{"a 1", "a 1"};
  EXPECT_THAT(shared_device(devices, simulated_layout(layout_of(2, 2), 1)),
              Optional(HasSubstr("world ranks 0 and 1 share a 1 on host0")));
}

TEST(MissingNccl, NamesTheRankAndWhatItFound) {
  const NodeLayout layout = layout_of(3, 2);
  EXPECT_EQ(missing_nccl(std::vector{nccl_2_28, nccl_2_28, nccl_2_28}, layout), std::nullopt);
  EXPECT_THAT(
      missing_nccl(std::vector{nccl_2_28, nccl_2_28, no_nccl}, layout),
      Optional(std::string{"NCCL cannot be used by world rank 2 on host1: libnccl.so.2 is on holiday"}));
  EXPECT_THAT(
      missing_nccl(std::vector{nccl_2_28, nccl_2_28, NcclSearch{"2.27.1", ""}}, layout),
      Optional(std::string{"world rank 0 on host0 has NCCL 2.28.9, world rank 2 on host1 has 2.27.1"}));
}

/// Of ranks on one host; the device of each is named by its rank, or is the same for all.
class TransportOfRanks : public testing::Test {
 protected:
  [[nodiscard]] ChosenTransport chosen(TransportChoice asked, bool shared, const NcclSearch& nccl,
                                       int cp_size = 2) {
    JobConfig config;
    config.transport = asked;
    const std::string id = shared ? "0000:1b:00.0" : std::to_string(world_.rank());
    const RankDevice device{.index = 0, .name = "Abacus", .pci_bus_id = id};
    return choose_transport(config, device, cp_size, layout_, world_, [&] {
      ++searches_;
      return nccl;
    });
  }

  [[nodiscard]] std::string refusal(bool shared, const NcclSearch& nccl) {
    try {
      static_cast<void>(chosen(TransportChoice::nccl, shared, nccl));
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  MpiCommunicator world_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  NodeLayout layout_ = layout_of(world_.size(), world_.size());
  int searches_ = 0;
};

TEST_F(TransportOfRanks, AutoTakesNcclWhereItCan) {
  const ChosenTransport found = chosen(TransportChoice::automatic, false, nccl_2_28);
  EXPECT_EQ(found.transport, TransportChoice::nccl);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(searches_, 1);
}

TEST_F(TransportOfRanks, AutoSaysWhyItTakesStaged) {
  const ChosenTransport without = chosen(TransportChoice::automatic, false, no_nccl);
  EXPECT_EQ(without.transport, TransportChoice::staged);
  EXPECT_EQ(without.reason, "NCCL cannot be used by world rank 0 on host0: libnccl.so.2 is on holiday");
  searches_ = 0;
  const ChosenTransport crowded = chosen(TransportChoice::automatic, true, nccl_2_28);
  EXPECT_EQ(crowded.transport, TransportChoice::staged);
  EXPECT_THAT(crowded.reason, HasSubstr("share Abacus 0000:1b:00.0 on host0"));
  EXPECT_EQ(searches_, 0) << "nobody needs to load it";
}

TEST_F(TransportOfRanks, OneRankIsEnoughToRuleNcclOut) {
  const bool last = world_.rank() + 1 == world_.size();
  const ChosenTransport found = chosen(TransportChoice::automatic, false, last ? no_nccl : nccl_2_28);
  EXPECT_EQ(found.transport, TransportChoice::staged);
  EXPECT_THAT(found.reason, HasSubstr("by world rank " + std::to_string(world_.size() - 1) + " on host0:"));
}

TEST_F(TransportOfRanks, WhoeverInsistsOnNcclIsToldWhatIsMissing) {
  EXPECT_EQ(chosen(TransportChoice::nccl, false, nccl_2_28).transport, TransportChoice::nccl);
  EXPECT_THAT(
      refusal(false, no_nccl),
      AllOf(HasSubstr("--transport nccl: NCCL cannot be used by world rank 0 on host0: libnccl.so.2 is on"),
            HasSubstr("every rank needs the same NCCL, 2.14 or later, or use staged")));
  EXPECT_THAT(refusal(true, nccl_2_28),
              AllOf(HasSubstr("--transport nccl: world ranks 0"), HasSubstr("share Abacus 0000:1b:00.0"),
                    HasSubstr("start one rank per device, or use staged")));
}

TEST_F(TransportOfRanks, WhoDoesNotNeedNcclDoesNotLookForIt) {
  EXPECT_EQ(chosen(TransportChoice::staged, false, nccl_2_28).transport, TransportChoice::staged);
  EXPECT_EQ(chosen(TransportChoice::automatic, true, nccl_2_28, 1).transport, TransportChoice::automatic);
  EXPECT_EQ(chosen(TransportChoice::nccl, true, nccl_2_28, 1).transport, TransportChoice::automatic);
  const JobConfig config;
  EXPECT_EQ(choose_transport(config, std::nullopt, 2, layout_, world_,
                             [&] {
                               ++searches_;
                               return nccl_2_28;
                             })
                .transport,
            TransportChoice::mpi);
  EXPECT_EQ(searches_, 0);
}

}  // namespace
}  // namespace hcp
