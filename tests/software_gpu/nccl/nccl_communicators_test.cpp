/// How communicators begin and end, also where a rank does not take part.
#include <chrono>
#include <thread>

#include "tests/software_gpu/nccl/nccl_case.hpp"
#include "tests/software_gpu/nccl/rendezvous.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t count = 64;

class NcclCommunicators : public NcclCase {
 protected:
  /// Made by rank 0.
  static ncclUniqueId common_id() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ncclUniqueId id{};
    if (rank == 0) {
      EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    return id;
  }
};

TEST_P(NcclCommunicators, KnowTheirRanksAndDevice) {
  ncclComm_t reversed = nullptr;
  const ncclUniqueId id = common_id();
  const int rank = size_ - 1 - rank_;
  ASSERT_EQ(ncclCommInitRank(&reversed, size_, id, rank), ncclSuccess);
  int answer = -1;
  EXPECT_EQ(ncclCommUserRank(reversed, &answer), ncclSuccess);
  EXPECT_EQ(answer, rank);
  EXPECT_EQ(ncclCommCount(reversed, &answer), ncclSuccess);
  EXPECT_EQ(answer, size_);
  EXPECT_EQ(ncclCommCuDevice(reversed, &answer), ncclSuccess);
  EXPECT_EQ(answer, rank_);
  EXPECT_EQ(ncclCommDestroy(reversed), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&reversed, size_, id, rank), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("used before"));
}

/// Whatever the host calls it: another rank has it already.
TEST_P(NcclCommunicators, TwoRanksWithOneDevice) {
  if (rank_ == 1) {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  ncclComm_t none = nullptr;
  EXPECT_EQ(ncclCommInitRank(&none, size_, common_id(), rank_), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr),
              HasSubstr("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device"));
  EXPECT_EQ(none, nullptr);
  ASSERT_EQ(cudaSetDevice(rank_), cudaSuccess);
}

TEST_P(NcclCommunicators, DestructionWaitsForWhatIsUnderWay) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  float* mine = upload(values_of(rank_, 0, count));
  float* all = device(count * static_cast<std::size_t>(size_));
  ASSERT_EQ(ncclAllGather(mine, all, count, ncclFloat32, everyone, network_), ncclSuccess);
  const cudaEvent_t end = mark(network_);
  forget(everyone);
  ASSERT_EQ(ncclCommDestroy(everyone), ncclSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
}

/// The last rank never comes. The others say so, and the one that made the id knows whom they wait for.
TEST_P(NcclCommunicators, ARankThatNeverComes) {
  set_patience(0.3);
  const ncclUniqueId id = common_id();
  if (rank_ + 1 < size_) {
    ncclComm_t none = nullptr;
    EXPECT_EQ(ncclCommInitRank(&none, size_, id, rank_), ncclRemoteError);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("never came")));
    if (rank_ == 0) {
      EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("never came: " + std::to_string(size_ - 1)));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  set_patience(60);
}

/// Rank 0 does not take part in an exchange; the others give it up.
TEST_P(NcclCommunicators, AbortEndsWhatIsUnderWay) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  float* mine = upload(values_of(rank_, 0, count));
  float* all = device(count * static_cast<std::size_t>(size_));
  order(compute_, network_);
  if (rank_ != 0) {
    ASSERT_EQ(ncclAllGather(mine, all, count, ncclFloat32, everyone, network_), ncclSuccess);
    const cudaEvent_t end = mark(network_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{50};
    while (std::chrono::steady_clock::now() < deadline) {
      ASSERT_EQ(cudaEventQuery(end), cudaErrorNotReady);
    }
    ncclResult_t error = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(everyone, &error), ncclSuccess);
    EXPECT_EQ(error, ncclSuccess);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  forget(everyone);
  ASSERT_EQ(ncclCommAbort(everyone), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(network_), cudaSuccess);
  EXPECT_THAT(take_misuses(), IsEmpty());
  EXPECT_EQ(ncclCommDestroy(everyone), ncclInvalidArgument);
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("does not exist")));
  EXPECT_THAT(live_objects(), testing::Not(Contains(HasSubstr("NCCL"))));
  if (rank_ != 0) {  // nothing has arrived
    static_cast<void>(download(all, count));
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("nobody has written")));
  }
  static_cast<void>(take_nccl_bytes());
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclCommunicators, testing::Range(0U, 9U));

}  // namespace
}  // namespace hcp::software_gpu
