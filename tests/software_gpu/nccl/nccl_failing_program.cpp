/// Programs that leave behind what only their end can show, and one that does not: check_end.sh runs them one
/// by one. NCCL is loaded as the product loads it.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <stdexcept>

namespace hcp::software_gpu {
namespace {

template <typename Function>
Function* nccl(const char* name) {
  static void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error{dlerror()};
  }
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Two communicators of all ranks, each with a stream and a buffer.
class End : public testing::Test {
 protected:
  End() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    EXPECT_EQ(cudaSetDevice(rank_), cudaSuccess);
    for (Level& level : levels_) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&level.stream, cudaStreamNonBlocking), cudaSuccess);
      EXPECT_EQ(cudaMalloc(&level.sum, sizeof(float)), cudaSuccess);
      const float one = 1.0F;
      EXPECT_EQ(cudaMemcpyAsync(level.sum, &one, sizeof one, cudaMemcpyHostToDevice, level.stream),
                cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(level.stream), cudaSuccess);
      ncclUniqueId id{};
      if (rank_ == 0) {
        EXPECT_EQ(nccl<decltype(ncclGetUniqueId)>("ncclGetUniqueId")(&id), ncclSuccess);
      }
      MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
      EXPECT_EQ(nccl<decltype(ncclCommInitRank)>("ncclCommInitRank")(&level.communicator, size_, id, rank_),
                ncclSuccess);
    }
  }
  ~End() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (Level& level : levels_) {
      EXPECT_EQ(cudaFree(level.sum), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(level.stream), cudaSuccess);
    }
  }

  void sum_up(std::size_t level) {
    const Level& at = levels_[level];
    EXPECT_EQ(nccl<decltype(ncclAllReduce)>("ncclAllReduce")(at.sum, at.sum, 1, ncclFloat32, ncclSum,
                                                             at.communicator, at.stream),
              ncclSuccess);
  }
  void destroy(std::size_t level) {
    EXPECT_EQ(nccl<decltype(ncclCommDestroy)>("ncclCommDestroy")(levels_[level].communicator), ncclSuccess);
  }
  [[nodiscard]] float sum(std::size_t level) const {
    float sum = 0.0F;
    EXPECT_EQ(
        cudaMemcpyAsync(&sum, levels_[level].sum, sizeof sum, cudaMemcpyDeviceToHost, levels_[level].stream),
        cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(levels_[level].stream), cudaSuccess);
    return sum;
  }

  int rank_ = 0;
  int size_ = 0;

 private:
  struct Level {
    cudaStream_t stream = nullptr;
    ncclComm_t communicator = nullptr;
    void* sum = nullptr;
  };
  Level levels_[2];
};

TEST_F(End, Passes) {
  for (const std::size_t level : {0U, 1U}) {
    sum_up(level);
    EXPECT_EQ(sum(level), static_cast<float>(size_));
    destroy(level);
  }
}

TEST_F(End, LeavesACommunicator) {
  destroy(0);
  if (rank_ != 1) {
    destroy(1);
  }
}

TEST_F(End, LaunchesInDifferentOrders) {
  const std::size_t first = rank_ == 1 ? 1 : 0;
  sum_up(first);
  sum_up(1 - first);
  for (const std::size_t level : {0U, 1U}) {
    EXPECT_EQ(sum(level), static_cast<float>(size_));
    destroy(level);
  }
}

}  // namespace
}  // namespace hcp::software_gpu
