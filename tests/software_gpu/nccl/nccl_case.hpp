/// What tests of NCCL's double have in common.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hcp::software_gpu {

/// All ranks, each with a device of its own and two streams, under the schedule that is the parameter.
/// Everything is destroyed at the end, when the order of all launches is looked at.
class NcclCase : public testing::TestWithParam<unsigned> {
 protected:
  NcclCase();
  ~NcclCase() override;

  /// Collective over `ranks`. Destroyed at the end, unless forget() was called.
  ncclComm_t communicator(MPI_Comm ranks, const char* name);
  /// It is destroyed or aborted already, or shall stay.
  void forget(ncclComm_t communicator);

  /// [count], not initialised. Freed at the end.
  float* device(std::size_t count);
  /// By the compute stream.
  float* upload(const std::vector<float>& values);
  /// By the compute stream; the host waits.
  [[nodiscard]] std::vector<float> download(const float* values, std::size_t count);

  /// An event that passes when all is done that the stream was asked for so far. Destroyed at the end.
  cudaEvent_t mark(cudaStream_t stream);
  /// What `after` is asked for from now on begins after what `before` was asked for.
  void order(cudaStream_t before, cudaStream_t after);

  int rank_ = 0;
  int size_ = 0;
  cudaStream_t compute_ = nullptr;
  cudaStream_t network_ = nullptr;

 private:
  std::vector<ncclComm_t> communicators_;
  std::vector<float*> memory_;
  std::vector<cudaEvent_t> events_;
};

/// [count], of which no two are equal on any ranks or for any `block`.
[[nodiscard]] std::vector<float> values_of(int rank, int block, std::size_t count);

/// Findings since the last look, of all ranks together. Collective.
[[nodiscard]] std::vector<std::string> findings_of_all_ranks();

}  // namespace hcp::software_gpu
