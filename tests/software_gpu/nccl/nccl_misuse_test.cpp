/// Calls of NCCL that are wrong, on one rank or between ranks: each is found in every schedule.
#include <array>
#include <functional>

#include "tests/software_gpu/nccl/nccl_case.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t count = 64;

class NcclMisuse : public NcclCase {
 protected:
  NcclMisuse()
      : everyone_{communicator(MPI_COMM_WORLD, "everyone")}, values_{upload(values_of(rank_, 0, count))} {}

  [[nodiscard]] int next() const { return (rank_ + 1) % size_; }
  [[nodiscard]] int previous() const { return (rank_ - 1 + size_) % size_; }

  /// The call fails on each rank, with these words.
  void expect_refused(ncclResult_t result, const std::string& words) {
    EXPECT_NE(result, ncclSuccess);
    EXPECT_THAT(ncclGetLastError(everyone_), HasSubstr(words));
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr(words)));
  }

  ncclComm_t everyone_;
  float* values_;
};

TEST_P(NcclMisuse, OfStreams) {
  expect_refused(ncclSend(values_, count, ncclFloat32, next(), everyone_, nullptr), "the default stream");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(values_, count / 2, ncclFloat32, next(), everyone_, network_), ncclSuccess);
  expect_refused(ncclSend(values_, count / 2, ncclFloat32, next(), everyone_, compute_), "several streams");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);  // nothing of it is launched
  float* received = device(count * static_cast<std::size_t>(size_));
  ASSERT_EQ(ncclAllGather(values_, received, count, ncclFloat32, everyone_, network_), ncclSuccess);
  expect_refused(ncclAllGather(values_, received, count, ncclFloat32, everyone_, compute_), "another stream");
}

TEST_P(NcclMisuse, OfDevices) {
  ASSERT_EQ(cudaSetDevice(next()), cudaSuccess);
  expect_refused(ncclSend(values_, count, ncclFloat32, next(), everyone_, network_), "the current one is");
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(rank_), cudaSuccess);
  expect_refused(ncclSend(values_, count, ncclFloat32, next(), everyone_, stream), "the stream of");
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_P(NcclMisuse, OfBuffers) {
  std::array<float, count> host{};
  expect_refused(ncclSend(host.data(), count, ncclFloat32, next(), everyone_, network_),
                 "a buffer should be");
  expect_refused(ncclSend(values_, count + 1, ncclFloat32, next(), everyone_, network_),
                 "a buffer should be");
  expect_refused(ncclAllGather(values_, values_, count, ncclFloat32, everyone_, network_),
                 "a buffer should be");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclRecv(values_, count, ncclFloat32, next(), everyone_, network_), ncclSuccess);
  expect_refused(ncclSend(values_ + count - 1, 1, ncclFloat32, next(), everyone_, network_),
                 "another call of the group");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
}

TEST_P(NcclMisuse, OfArguments) {
  expect_refused(ncclSend(values_, 0, ncclFloat32, next(), everyone_, network_), "without a byte");
  expect_refused(ncclSend(values_, count, ncclFloat32, size_, everyone_, network_),
                 "of " + std::to_string(size_));
  expect_refused(ncclSend(values_, count, ncclFloat32, rank_, everyone_, network_), "to itself");
  expect_refused(ncclSend(values_, count, ncclNumTypes, next(), everyone_, network_), "no type");
  expect_refused(ncclAllReduce(values_, values_, count, ncclBfloat16, ncclSum, everyone_, network_),
                 "bfloat16");
  expect_refused(ncclAllReduce(values_, values_, count, ncclFloat32, ncclMax, everyone_, network_),
                 "sums only");
  ncclConfig_t config{};
  ncclComm_t none = nullptr;
  expect_refused(ncclCommInitRankConfig(&none, size_, {}, rank_, &config), "NCCL_CONFIG_INITIALIZER");
  expect_refused(ncclCommInitRank(&none, size_, {}, rank_), "ncclGetUniqueId");
  expect_refused(ncclCommInitRank(&none, size_, {}, size_), "rank " + std::to_string(size_));
}

TEST_P(NcclMisuse, OfGroups) {
  expect_refused(ncclGroupEnd(), "no group was begun");
  constexpr int most = 2048;
  float* many = device(most + 1);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i <= most; ++i) {
    ASSERT_EQ(ncclRecv(many + i, 1, ncclFloat32, next(), everyone_, network_), ncclSuccess);
  }
  expect_refused(ncclGroupEnd(), "2048");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  check_launch_order();
  EXPECT_THAT(take_misuses(), rank_ == 0 ? testing::Matcher<std::vector<std::string>>(
                                               ElementsAre(HasSubstr("begun and not ended")))
                                         : ElementsAre(HasSubstr("begun and not ended")));
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST_P(NcclMisuse, OfCommunicatorsThatAreGone) {
  ASSERT_EQ(ncclCommFinalize(everyone_), ncclSuccess);
  expect_refused(ncclSend(values_, count, ncclFloat32, next(), everyone_, network_), "was finalized");
  forget(everyone_);
  ASSERT_EQ(ncclCommDestroy(everyone_), ncclSuccess);
  expect_refused(ncclSend(values_, count, ncclFloat32, next(), everyone_, network_), "does not exist");
  expect_refused(ncclCommDestroy(everyone_), "does not exist");
  ncclResult_t error = ncclSuccess;
  expect_refused(ncclCommGetAsyncError(everyone_, &error), "does not exist");
}

/// Rank 0 says something else than what the others expect.
TEST_P(NcclMisuse, BetweenTheEndsOfAMessage) {
  float* received = device(count);
  const auto exchange = [&](std::size_t size, ncclDataType_t type) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(values_, rank_ == 0 ? size : count, rank_ == 0 ? type : ncclFloat32, next(), everyone_,
                       network_),
              ncclSuccess);
    ASSERT_EQ(ncclRecv(received, count, ncclFloat32, previous(), everyone_, network_), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    ASSERT_EQ(cudaStreamSynchronize(network_), cudaSuccess);
  };
  exchange(count / 2, ncclFloat32);
  EXPECT_THAT(findings_of_all_ranks(),
              ElementsAre(HasSubstr("of 256 bytes of float32 meets ncclSend of 128 bytes")));
  exchange(count, ncclInt32);
  EXPECT_THAT(findings_of_all_ranks(), ElementsAre(HasSubstr("meets ncclSend of 256 bytes of int32")));
}

TEST_P(NcclMisuse, DifferentCollectives) {
  float* received = device(count);
  ASSERT_EQ(rank_ == 0 ? ncclAllReduce(values_, received, count, ncclFloat32, ncclSum, everyone_, network_)
                       : ncclReduceScatter(values_, received, count / static_cast<std::size_t>(size_),
                                           ncclFloat32, ncclSum, everyone_, network_),
            ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(network_), cudaSuccess);
  EXPECT_THAT(findings_of_all_ranks(),
              testing::AllOf(Contains(HasSubstr("ncclAllReduce of 256 bytes")), Each(HasSubstr("meets"))));
}

/// Small enough to leave without a receiver, if the double let it.
TEST_P(NcclMisuse, AMessageThatNobodyAsksFor) {
  set_patience(0.1);
  if (rank_ == 0) {
    ASSERT_EQ(ncclSend(values_, 1, ncclFloat32, next(), everyone_, network_), ncclSuccess);
    EXPECT_NE(cudaStreamSynchronize(network_), cudaSuccess);
  }
  EXPECT_THAT(findings_of_all_ranks(), ElementsAre(HasSubstr("launch 0 of 'everyone'")));
  check_launch_order();
  EXPECT_THAT(findings_of_all_ranks(), ElementsAre(HasSubstr("of which 0 are asked for")));
  forget(everyone_);
  ASSERT_EQ(ncclCommAbort(everyone_), ncclSuccess);
  set_patience(60);
}

/// All waits are there and the data is right: only the order on the ranks differs.
TEST_P(NcclMisuse, CommunicatorsInDifferentOrders) {
  ncclComm_t others = communicator(MPI_COMM_WORLD, "others");
  const std::size_t all = count * static_cast<std::size_t>(size_);
  float* received[] = {device(all), device(all)};
  const auto gather = [&](bool first) {
    ASSERT_EQ(ncclAllGather(values_, received[first ? 0 : 1], count, ncclFloat32, first ? everyone_ : others,
                            first ? network_ : compute_),
              ncclSuccess);
  };
  gather(rank_ == 0);
  gather(rank_ != 0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(findings_of_all_ranks(), IsEmpty());
  check_launch_order();
  EXPECT_THAT(findings_of_all_ranks(), ElementsAre(HasSubstr("launches that wait for each other")));
}

TEST_P(NcclMisuse, ACommunicatorThatIsNeverDestroyed) {
  forget(everyone_);
  EXPECT_THAT(live_objects(), Contains("NCCL's 'everyone'"));
  ASSERT_EQ(ncclCommDestroy(everyone_), ncclSuccess);
  EXPECT_THAT(live_objects(), testing::Not(Contains(HasSubstr("NCCL"))));
}

/// Nothing orders the next use of a buffer after the call that receives in it.
TEST_P(NcclMisuse, ReadBeforeItHasArrived) {
  float* received = device(count * static_cast<std::size_t>(size_));
  float* copied = device(count);
  ASSERT_EQ(ncclAllGather(values_, received, count, ncclFloat32, everyone_, network_), ncclSuccess);
  ASSERT_EQ(cudaMemcpyAsync(copied, received, count * sizeof(float), cudaMemcpyDeviceToDevice, compute_),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_misuses(), Contains(testing::AllOf(HasSubstr("is not ordered after"),
                                                      HasSubstr("launch 0 of 'everyone'"))));
}

/// And of one that is sent.
TEST_P(NcclMisuse, WrittenBeforeItHasLeft) {
  float* received = device(count);
  const float* others = upload(values_of(rank_, 1, count));
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(values_, count, ncclFloat32, next(), everyone_, network_), ncclSuccess);
  ASSERT_EQ(ncclRecv(received, count, ncclFloat32, previous(), everyone_, network_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  ASSERT_EQ(cudaMemcpyAsync(values_, others, count * sizeof(float), cudaMemcpyDeviceToDevice, compute_),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_misuses(), ElementsAre(testing::AllOf(HasSubstr("is not ordered after"),
                                                         HasSubstr("launch 0 of 'everyone'"))));
}

/// What is sent has to be there.
TEST_P(NcclMisuse, SentBeforeItIsWritten) {
  float* all = device(count * static_cast<std::size_t>(size_));
  float* nothing = device(count);
  ASSERT_EQ(ncclAllGather(nothing, all, count, ncclFloat32, everyone_, network_), ncclSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("256 bytes that nobody has written")));
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclMisuse, testing::Range(1U, 9U));

}  // namespace
}  // namespace hcp::software_gpu
