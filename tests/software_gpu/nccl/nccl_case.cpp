#include "tests/software_gpu/nccl/nccl_case.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {

NcclCase::NcclCase() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  set_schedule(GetParam());
  EXPECT_EQ(cudaSetDevice(rank_), cudaSuccess);
  for (cudaStream_t* stream : {&compute_, &network_}) {
    EXPECT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
  }
}

NcclCase::~NcclCase() {
  for (ncclComm_t communicator : communicators_) {
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (cudaEvent_t event : events_) {
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
  for (cudaStream_t stream : {compute_, network_}) {
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  for (float* values : memory_) {
    EXPECT_EQ(cudaFree(values), cudaSuccess);
  }
  check_launch_order();
}

ncclComm_t NcclCase::communicator(MPI_Comm ranks, const char* name) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  ncclUniqueId id{};
  if (rank == 0) {
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, ranks);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name;
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&communicator, size, id, rank, &config), ncclSuccess)
      << ncclGetLastError(nullptr);
  communicators_.push_back(communicator);
  return communicator;
}

void NcclCase::forget(ncclComm_t communicator) {
  std::erase(communicators_, communicator);
}

float* NcclCase::device(std::size_t count) {
  void* values = nullptr;
  EXPECT_EQ(cudaMalloc(&values, count * sizeof(float)), cudaSuccess);
  memory_.push_back(static_cast<float*>(values));
  return memory_.back();
}

float* NcclCase::upload(const std::vector<float>& values) {
  float* target = device(values.size());
  EXPECT_EQ(
      cudaMemcpyAsync(target, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, compute_),
      cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  return target;
}

std::vector<float> NcclCase::download(const float* values, std::size_t count) {
  std::vector<float> target(count);
  EXPECT_EQ(cudaMemcpyAsync(target.data(), values, count * sizeof(float), cudaMemcpyDeviceToHost, compute_),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  return target;
}

cudaEvent_t NcclCase::mark(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  events_.push_back(event);
  return event;
}

void NcclCase::order(cudaStream_t before, cudaStream_t after) {
  EXPECT_EQ(cudaStreamWaitEvent(after, mark(before), 0), cudaSuccess);
}

std::vector<float> values_of(int rank, int block, std::size_t count) {
  constexpr float ranks_apart = 1 << 16;
  constexpr float blocks_apart = 1 << 10;
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(),
            static_cast<float>(rank) * ranks_apart + static_cast<float>(block) * blocks_apart);
  return values;
}

std::vector<std::string> findings_of_all_ranks() {
  std::string mine;
  for (const std::string& finding : take_misuses()) {
    mine += finding + '\n';
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(size));
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<int> begins(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
  std::string all(static_cast<std::size_t>(begins.back() + lengths.back()), '\0');
  MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR,
                 MPI_COMM_WORLD);
  std::vector<std::string> findings;
  std::istringstream lines{all};
  for (std::string line; std::getline(lines, line);) {
    findings.push_back(line);
  }
  return findings;
}

}  // namespace hcp::software_gpu
