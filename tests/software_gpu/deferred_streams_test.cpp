/// Streams whose operations come late: what may be asked of them, and what the host then knows.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/runtime_case.hpp"

namespace hcp::software_gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::uint32_t>;

constexpr unsigned lazy = 1;  // of Schedule

/// Two streams under the schedule of the parameter, and memory in which the host can wait for results.
class DeferredStreams : public testing::TestWithParam<unsigned> {
 protected:
  DeferredStreams() {
    set_schedule(GetParam());
    for (cudaStream_t* stream : {&first_, &second_}) {
      EXPECT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    for (void** data : {&data_, &other_data_}) {
      EXPECT_EQ(cudaMalloc(data, 8), cudaSuccess);
    }
    EXPECT_EQ(cudaMallocHost(&pinned_, 8), cudaSuccess);
  }
  ~DeferredStreams() override {
    for (const cudaStream_t stream : {first_, second_}) {
      EXPECT_TRUE(stream == nullptr || cudaStreamDestroy(stream) == cudaSuccess);
    }
    EXPECT_TRUE(event_ == nullptr || cudaEventDestroy(event_) == cudaSuccess);
    for (void* data : {data_, other_data_}) {
      EXPECT_EQ(cudaFree(data), cudaSuccess);
    }
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
    set_schedule(0);
    set_patience(60.0);
    static_cast<void>(cudaGetLastError());
  }

  [[nodiscard]] std::uint32_t* host() const { return static_cast<std::uint32_t*>(pinned_); }

  void upload(const Words& values, cudaStream_t stream) {
    std::memcpy(pinned_, values.data(), 8);
    EXPECT_EQ(cudaMemcpyAsync(data_, pinned_, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  void download(void* target, cudaStream_t stream) {
    EXPECT_EQ(cudaMemcpyAsync(target, data_, 8, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  }
  /// An operation that is done once the test says so.
  std::shared_ptr<bool> block(cudaStream_t stream) {
    const auto open = std::make_shared<bool>(false);
    const Call call{"test"};
    call.stream(stream)->submit("something that waits", [open](const Operation&, bool) { return *open; });
    return open;
  }

  cudaStream_t first_ = nullptr;
  cudaStream_t second_ = nullptr;
  cudaEvent_t event_ = nullptr;
  void* data_ = nullptr;
  void* other_data_ = nullptr;
  void* pinned_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeferredStreams, testing::Range(lazy, lazy + 6));

TEST_P(DeferredStreams, HostsThatAskComeToAnEnd) {
  upload({1, 2}, first_);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  int asked = 1;
  for (; cudaEventQuery(event_) == cudaErrorNotReady; ++asked) {
  }
  EXPECT_LT(asked, 10);
  EXPECT_TRUE(GetParam() != lazy || asked > 1);
  static_cast<void>(cudaGetLastError());
  host()[0] = 3;  // allowed now
  std::array<std::uint32_t, 2> values{};
  download(values.data(), first_);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_THAT(values, ElementsAre(1, 2));
  expect_no_misuse();
}

TEST_P(DeferredStreams, ResultsArriveWhenTheHostHasWaited) {
  std::array<std::uint32_t, 2> values{};
  upload({1, 2}, first_);
  download(values.data(), first_);
  EXPECT_THAT(values, ElementsAre(0xffffffff, 0xffffffff));
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);  // of another stream
  EXPECT_THAT(values, ElementsAre(0xffffffff, 0xffffffff));
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second_, event_, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);  // that now comes later
  EXPECT_THAT(values, ElementsAre(1, 2));
  expect_no_misuse();
}

TEST_P(DeferredStreams, CopiesOfOneStreamPassWordsOnInPinnedMemory) {
  std::array<std::uint32_t, 2> values{};
  upload({1, 2}, first_);
  download(pinned_, first_);  // again to where the host has left them
  ASSERT_EQ(cudaMemcpyAsync(other_data_, pinned_, 8, cudaMemcpyHostToDevice, first_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(values.data(), other_data_, 8, cudaMemcpyDeviceToHost, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_THAT(values, ElementsAre(1, 2));
  expect_no_misuse();
}

TEST_P(DeferredStreams, EventsAreThoseOfTheirLastRecordAtTheCall) {
  const std::shared_ptr<bool> open = block(first_);
  ASSERT_EQ(cudaEventRecord(event_, second_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second_, event_, 0), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);  // waits for the record before
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  *open = true;
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  expect_no_misuse();
}

TEST_P(DeferredStreams, WhatIsDestroyedStillDoesItsWork) {
  std::array<std::uint32_t, 2> values{};
  const std::shared_ptr<bool> open = block(first_);
  upload({1, 2}, first_);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second_, event_, 0), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(std::exchange(event_, nullptr)), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(std::exchange(first_, nullptr)), cudaSuccess);
  download(values.data(), second_);
  *open = true;
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_THAT(values, ElementsAre(1, 2));
  expect_no_misuse();
}

TEST_P(DeferredStreams, FreeingWaitsForTheDevice) {
  std::array<std::uint32_t, 2> values{};
  void* unused = nullptr;
  ASSERT_EQ(cudaMalloc(&unused, 4), cudaSuccess);
  upload({1, 2}, first_);
  download(values.data(), first_);
  ASSERT_EQ(cudaFree(unused), cudaSuccess);
  EXPECT_THAT(values, ElementsAre(1, 2));
  expect_no_misuse();
}

TEST_P(DeferredStreams, PinnedMemoryIsNotFreedBeforeItsCopies) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 8), cudaSuccess);
  std::memset(pinned, 1, 8);
  ASSERT_EQ(cudaMemcpyAsync(data_, pinned, 8, cudaMemcpyHostToDevice, first_), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_THAT(take_misuses(),
              ElementsAre(HasSubstr("freed before the host has waited for the read by 'cudaMemcpyAsync of 8 "
                                    "bytes to the device'")));
}

TEST_P(DeferredStreams, HostsThatWriteWhereACopyGoesAreFound) {
  upload({1, 2}, first_);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  download(pinned_, first_);
  host()[1] = 5;
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_THAT(take_misuses(),
              ElementsAre(HasSubstr("the target of 'cudaMemcpyAsync of 8 bytes to the host' has changed")));
}

TEST_P(DeferredStreams, TheHostsOwnAccessesAreInOrder) {
  upload({1, 2}, first_);
  host_access("MPI_Isend", pinned_, 8, AccessMode::read);  // two reads
  expect_no_misuse();
  host_access("MPI_Irecv", pinned_, 8, AccessMode::write);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("'MPI_Irecv' of the host")));
  host_access("MPI_Irecv", pinned_, 8, AccessMode::write);
  download(pinned_, first_);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  host_access("MPI_Isend", pinned_, 8, AccessMode::read);
  expect_no_misuse();
  download(pinned_, first_);
  host_access("MPI_Isend", pinned_, 8, AccessMode::read);
  ASSERT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("'MPI_Isend' of the host")));
}

TEST_P(DeferredStreams, OtherStreamsGoOnWhileOneCannot) {
  std::array<std::uint32_t, 2> values{};
  const std::shared_ptr<bool> open = block(first_);
  upload({1, 2}, second_);
  download(values.data(), second_);
  ASSERT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_THAT(values, ElementsAre(1, 2));
  *open = true;
  expect_no_misuse();
}

TEST_P(DeferredStreams, PatienceEndsWithWhatIsNext) {
  const std::shared_ptr<bool> open = block(first_);
  upload({1, 2}, first_);
  ASSERT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second_, event_, 0), cudaSuccess);
  set_patience(0.01);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaErrorLaunchTimeout);
  const std::vector<std::string> misuses = take_misuses();
  ASSERT_EQ(misuses.size(), 1);
  EXPECT_THAT(misuses[0], HasSubstr("cudaStreamSynchronize: nothing has moved for"));
  EXPECT_THAT(misuses[0], HasSubstr("'something that waits', begun, 2 behind it]"));
  EXPECT_THAT(misuses[0], HasSubstr("'cudaStreamWaitEvent'"));
  *open = true;
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  expect_no_misuse();
}

/// Clocks do not grow with streams that are known to be at their end, and nothing is forgotten with them.
TEST_P(DeferredStreams, StreamsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(data_, pinned_, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  expect_no_misuse();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(data_, pinned_, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(data_, pinned_, 8, cudaMemcpyHostToDevice, first_), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("is not ordered after the write by")));
}

/// A finding, not another: something that never comes is told at the end.
TEST_P(DeferredStreams, WhatCannotBeDoneIsTold) {
  const std::shared_ptr<bool> open = block(first_);
  finish_streams();
  EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("never done: [stream")));
  *open = true;
}

}  // namespace
}  // namespace hcp::software_gpu
