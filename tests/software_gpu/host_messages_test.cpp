/// Messages from and to pinned memory while copies of the device use it.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// This rank sends to itself.
class HostMessages : public testing::TestWithParam<unsigned> {
 protected:
  HostMessages() {
    set_schedule(GetParam());
    MPI_Comm_dup(MPI_COMM_SELF, &self_);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device_, bytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned_, bytes), cudaSuccess);
    std::vector<char> values(bytes, 1);
    EXPECT_EQ(cudaMemcpyAsync(device_, values.data(), bytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  ~HostMessages() override {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(device_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
    MPI_Comm_free(&self_);
    set_schedule(0);
  }

  void copy(void* target, const void* source, cudaMemcpyKind kind) {
    EXPECT_EQ(cudaMemcpyAsync(target, source, bytes, kind, stream_), cudaSuccess);
  }

  /// From and to memory that may be pinned.
  void exchange(const void* source, void* target) {
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Irecv(target, bytes, MPI_BYTE, 0, 0, self_, &receive);
    MPI_Isend(source, bytes, MPI_BYTE, 0, 0, self_, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }

  static constexpr int bytes = 64;
  MPI_Comm self_ = MPI_COMM_NULL;
  cudaStream_t stream_ = nullptr;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  std::vector<char> host_ = std::vector<char>(bytes, 2);
};

INSTANTIATE_TEST_SUITE_P(Seeds, HostMessages, testing::Range(1U, 7U));

TEST_P(HostMessages, AfterTheirCopiesAreRight) {
  copy(pinned_, device_, cudaMemcpyDeviceToHost);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  exchange(pinned_, host_.data());
  EXPECT_EQ(host_, std::vector<char>(bytes, 1));
  exchange(host_.data(), pinned_);
  copy(device_, pinned_, cudaMemcpyHostToDevice);
  EXPECT_THAT(take_misuses(), IsEmpty());
}

TEST_P(HostMessages, SentBeforeTheirCopyIsKnownToBeDone) {
  copy(pinned_, device_, cudaMemcpyDeviceToHost);
  exchange(pinned_, host_.data());
  finish_streams();
  EXPECT_THAT(take_misuses(), Contains(HasSubstr("'MPI_Isend' of the host")));
}

TEST_P(HostMessages, ReceivedWhereACopyStillReads) {
  exchange(host_.data(), pinned_);
  copy(device_, pinned_, cudaMemcpyHostToDevice);
  exchange(host_.data(), pinned_);
  finish_streams();
  EXPECT_THAT(take_misuses(), Contains(HasSubstr("'MPI_Irecv' of the host")));
}

}  // namespace
}  // namespace hcp::software_gpu
