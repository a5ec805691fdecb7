/// A small program of a ring and a collective on a second communicator, with bugs planted on one of its
/// ranks: each is found in every schedule.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "tests/software_gpu/nccl/nccl_case.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/planted_bugs.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t count = 48;
constexpr double long_patience_s = 60;
constexpr double short_patience_s = 0.1;  ///< where something is waited for that will not come

class NcclPlanted : public NcclCase {
 protected:
  NcclPlanted() { EXPECT_EQ(cudaStreamCreateWithFlags(&gathering_, cudaStreamNonBlocking), cudaSuccess); }
  ~NcclPlanted() override {
    EXPECT_EQ(cudaStreamSynchronize(gathering_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(gathering_), cudaSuccess);
    set_patience(long_patience_s);
  }

  /// Two turns: blocks travel once around the ring, meanwhile all blocks are gathered. As a program that is
  /// not to be trusted: what fails is not asked for again. Whatever happens, both communicators are gone
  /// then.
  /// @return whether every call succeeded and all data is right, on all ranks
  bool run_program() {
    right_ = true;
    ring_ = communicator(MPI_COMM_WORLD, "ring");
    gather_ = communicator(MPI_COMM_WORLD, "gather");
    blocks_[0] = upload(values_of(rank_, 0, count));
    blocks_[1] = device(count);
    all_ = device(count * static_cast<std::size_t>(size_));
    for (int turn = 0; turn < 2; ++turn) {
      order(compute_, network_);
      order(compute_, gathering_);
      const std::size_t here = static_cast<std::size_t>(turn) % 2;
      exchange(blocks_[here], blocks_[1 - here]);
      require(ncclAllGather(blocks_[here], all_, count, ncclFloat32, gather_, gathering_) == ncclSuccess);
      order(network_, compute_);
      order(gathering_, compute_);
    }
    set_patience(patience_s_);
    require(cudaStreamSynchronize(compute_) == cudaSuccess);
    if (right_on_all_ranks()) {
      check_data();
    }
    end_communicators();
    return right_on_all_ranks();
  }

  /// `words` stand in a finding or in the name of an object that is left.
  void expect_found(Bug bug, int nth, const std::string& words) {
    if (rank_ == size_ - 1) {
      plant(bug, nth);
    }
    static_cast<void>(run_program());
    check_launch_order();
    expect_in_findings(words);
  }

  void expect_in_findings(const std::string& words) {
    if (rank_ == size_ - 1) {
      EXPECT_TRUE(uproot());
    }
    const std::vector<std::string> objects = live_objects();
    std::vector<std::string> found = findings_of_all_ranks();
    std::ranges::copy(objects, std::back_inserter(found));
    if (rank_ == size_ - 1) {
      EXPECT_THAT(found, Contains(HasSubstr(words)));
    }
  }

  [[nodiscard]] int next() const { return (rank_ + 1) % size_; }
  [[nodiscard]] int previous() const { return (rank_ - 1 + size_) % size_; }

  double patience_s_ = long_patience_s;  ///< of the wait for all that was asked for
  cudaStream_t gathering_ = nullptr;
  ncclComm_t ring_ = nullptr;
  ncclComm_t gather_ = nullptr;

 private:
  void require(bool success) { right_ = right_ && success; }

  void exchange(const float* sent, float* received) {
    require(ncclGroupStart() == ncclSuccess);
    require(ncclSend(sent, count, ncclFloat32, next(), ring_, network_) == ncclSuccess);
    require(ncclRecv(received, count, ncclFloat32, previous(), ring_, network_) == ncclSuccess);
    require(ncclGroupEnd() == ncclSuccess);
  }

  [[nodiscard]] bool right_on_all_ranks() const {
    int right = right_ ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return right == 1;
  }

  void check_data() {
    require(download(blocks_[0], count) == values_of((rank_ - 2 + size_) % size_, 0, count));
    for (int rank = 0; rank < size_; ++rank) {
      require(download(all_ + static_cast<std::size_t>(rank) * count, count) ==
              values_of((rank - 1 + size_) % size_, 0, count));
    }
  }

  void end_communicators() {
    const bool abort = !right_on_all_ranks();
    for (ncclComm_t communicator : {ring_, gather_}) {
      require((abort ? ncclCommAbort(communicator) : ncclCommDestroy(communicator)) == ncclSuccess);
      forget(communicator);
    }
  }

  bool right_ = true;
  float* blocks_[2] = {};
  float* all_ = nullptr;
};

TEST_P(NcclPlanted, Nothing) {
  EXPECT_TRUE(run_program());
  check_launch_order();
  EXPECT_THAT(findings_of_all_ranks(), IsEmpty());
}

TEST_P(NcclPlanted, WrongPeerOfASend) {
  patience_s_ = short_patience_s;
  expect_found(Bug::wrong_peer, 1, size_ == 2 ? "to itself" : "of 'ring'");
}

TEST_P(NcclPlanted, WrongPeerOfAReceive) {
  patience_s_ = short_patience_s;
  expect_found(Bug::wrong_peer, 4, size_ == 2 ? "to itself" : "of 'ring'");
}

TEST_P(NcclPlanted, HalfCountOfASend) {
  expect_found(Bug::half_count, 1, "bytes of float32 meets ncclSend of 96 bytes");
}

TEST_P(NcclPlanted, HalfCountOfAReceive) {
  expect_found(Bug::half_count, 5, "ncclRecv of 96 bytes of float32 meets");
}

TEST_P(NcclPlanted, HalfCountOfACollective) {
  expect_found(Bug::half_count, 3, "meets ncclAllGather of 96 bytes");
}

TEST_P(NcclPlanted, SwappedGroups) {
  expect_found(Bug::swapped_groups, 1, "launches that wait for each other");
}

TEST_P(NcclPlanted, TwoStreamsInAGroup) {
  patience_s_ = short_patience_s;
  expect_found(Bug::two_streams, 2, "several streams");
}

TEST_P(NcclPlanted, TwoStreamsOfACommunicator) {
  patience_s_ = short_patience_s;
  expect_found(Bug::two_streams, 6, "another stream");
}

TEST_P(NcclPlanted, LeakedCommunicator) {
  expect_found(Bug::leaked_communicator, 2, "NCCL's 'gather'");
  if (rank_ == size_ - 1) {
    EXPECT_EQ(ncclCommDestroy(gather_), ncclSuccess);
  }
}

/// Rank 0 does not take part, and the others give up; but the last one does not say so.
TEST_P(NcclPlanted, IgnoredAbort) {
  ncclComm_t ring = communicator(MPI_COMM_WORLD, "ring");
  float* sent = upload(values_of(rank_, 0, count));
  if (rank_ != 0) {
    ASSERT_EQ(ncclSend(sent, count, ncclFloat32, next(), ring, network_), ncclSuccess);
  }
  if (rank_ == size_ - 1) {
    plant(Bug::ignored_abort, 1);
  }
  forget(ring);
  ASSERT_EQ(ncclCommAbort(ring), ncclSuccess);
  if (rank_ == size_ - 1) {
    set_patience(short_patience_s);
    EXPECT_NE(cudaStreamSynchronize(network_), cudaSuccess);
    EXPECT_THAT(live_objects(), Contains("NCCL's 'ring'"));
  }
  expect_in_findings("nothing has moved");
  if (rank_ == size_ - 1) {
    EXPECT_EQ(ncclCommAbort(ring), ncclSuccess);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclPlanted, testing::Range(1U, 9U));

}  // namespace
}  // namespace hcp::software_gpu
