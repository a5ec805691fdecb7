/// Rings, all-to-alls and collectives as transports use them: right data and no finding in any schedule.
#include <algorithm>
#include <functional>
#include <utility>

#include "tests/software_gpu/nccl/nccl_case.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Each;
using testing::ElementsAreArray;
using testing::Pair;

constexpr std::size_t count = 67;

class NcclMessages : public NcclCase {
 protected:
  [[nodiscard]] int ahead(int steps) const { return (rank_ + steps) % size_; }
  [[nodiscard]] int behind(int steps) const { return (rank_ - steps + size_) % size_; }
};

/// Every block visits every rank; two buffers, of which one is computed with while the other is received in.
TEST_P(NcclMessages, RingWithTwoBuffers) {
  ncclComm_t ring = communicator(MPI_COMM_WORLD, "ring");
  float* buffers[] = {upload(values_of(rank_, 0, count)), device(count)};
  float* visited = device(count * static_cast<std::size_t>(size_));
  order(compute_, network_);
  for (int step = 0; step < size_; ++step) {
    float* here = buffers[step % 2];
    float* next = buffers[(step + 1) % 2];
    const bool last = step + 1 == size_;
    if (!last) {
      order(compute_, network_);  // `next` is free again
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclSend(here, count, ncclFloat32, ahead(1), ring, network_), ncclSuccess);
      ASSERT_EQ(ncclRecv(next, count, ncclFloat32, behind(1), ring, network_), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    ASSERT_EQ(cudaMemcpyAsync(visited + static_cast<std::size_t>(behind(step)) * count, here,
                              count * sizeof(float), cudaMemcpyDeviceToDevice, compute_),
              cudaSuccess);
    order(network_, compute_);
  }
  for (int owner = 0; owner < size_; ++owner) {
    EXPECT_EQ(download(visited + static_cast<std::size_t>(owner) * count, count), values_of(owner, 0, count));
  }
  for (const auto& [peer, bytes] : take_nccl_bytes()) {
    EXPECT_EQ(peer, ahead(1));
    EXPECT_EQ(bytes, static_cast<std::int64_t>(count * sizeof(float)) * (size_ - 1));
  }
}

/// Rank r sends rank p (r + 1) * (p + 1) values.
TEST_P(NcclMessages, AllToAllOfUnevenSizes) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  const auto size_between = [](int from, int to) { return static_cast<std::size_t>((from + 1) * (to + 1)); };
  std::vector<float*> sent;
  std::vector<float*> received;
  for (int peer = 0; peer < size_; ++peer) {
    sent.push_back(upload(values_of(rank_, peer, size_between(rank_, peer))));
    received.push_back(device(size_between(peer, rank_)));
  }
  order(compute_, network_);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int distance = 1; distance < size_; ++distance) {
    const int to = ahead(distance);
    const int from = behind(distance);
    ASSERT_EQ(ncclSend(sent.at(static_cast<std::size_t>(to)), size_between(rank_, to), ncclFloat32, to,
                       everyone, network_),
              ncclSuccess);
    ASSERT_EQ(ncclRecv(received.at(static_cast<std::size_t>(from)), size_between(from, rank_), ncclFloat32,
                       from, everyone, network_),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  order(network_, compute_);
  std::map<int, std::int64_t> planned;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) {
      const float* values = received.at(static_cast<std::size_t>(peer));
      EXPECT_EQ(download(values, size_between(peer, rank_)),
                values_of(peer, rank_, size_between(peer, rank_)));
      planned[peer] = static_cast<std::int64_t>(size_between(rank_, peer) * sizeof(float));
    }
  }
  EXPECT_EQ(take_nccl_bytes(), planned);
}

TEST_P(NcclMessages, AllGather) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  const float* mine = upload(values_of(rank_, 0, count));
  float* all = device(count * static_cast<std::size_t>(size_));
  order(compute_, network_);
  ASSERT_EQ(ncclAllGather(mine, all, count, ncclFloat32, everyone, network_), ncclSuccess);
  order(network_, compute_);
  for (int owner = 0; owner < size_; ++owner) {
    EXPECT_EQ(download(all + static_cast<std::size_t>(owner) * count, count), values_of(owner, 0, count));
  }
  EXPECT_THAT(take_nccl_bytes(), Each(Pair(testing::Ne(rank_), count * sizeof(float))));
}

/// This rank's own part may be read meanwhile.
TEST_P(NcclMessages, AllGatherInPlace) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  std::vector<float> initial(count * static_cast<std::size_t>(size_), -1.0F);
  const std::vector<float> own = values_of(rank_, 0, count);
  std::ranges::copy(own, initial.begin() + rank_ * static_cast<std::ptrdiff_t>(count));
  float* all = upload(initial);
  float* mine = all + static_cast<std::size_t>(rank_) * count;
  float* copied = device(count);
  order(compute_, network_);
  ASSERT_EQ(ncclAllGather(mine, all, count, ncclFloat32, everyone, network_), ncclSuccess);
  ASSERT_EQ(cudaMemcpyAsync(copied, mine, count * sizeof(float), cudaMemcpyDeviceToDevice, compute_),
            cudaSuccess);
  order(network_, compute_);
  for (int owner = 0; owner < size_; ++owner) {
    EXPECT_EQ(download(all + static_cast<std::size_t>(owner) * count, count), values_of(owner, 0, count));
  }
  EXPECT_EQ(download(copied, count), own);
}

TEST_P(NcclMessages, Reductions) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  const auto sum_of_block = [this](int block) {
    std::vector<float> sum(count, 0.0F);
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<float> values = values_of(rank, block, count);
      std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus{});
    }
    return sum;
  };
  std::vector<float> blocks;
  for (int block = 0; block < size_; ++block) {
    const std::vector<float> values = values_of(rank_, block, count);
    blocks.insert(blocks.end(), values.begin(), values.end());
  }
  const float* scattered = upload(blocks);
  float* own_sum = device(count);
  float* sum = upload(values_of(rank_, 1, count));
  order(compute_, network_);
  ASSERT_EQ(ncclReduceScatter(scattered, own_sum, count, ncclFloat32, ncclSum, everyone, network_),
            ncclSuccess);
  ASSERT_EQ(ncclAllReduce(sum, sum, count, ncclFloat32, ncclSum, everyone, network_), ncclSuccess);
  order(network_, compute_);
  EXPECT_EQ(download(own_sum, count), sum_of_block(rank_));
  EXPECT_EQ(download(sum, count), sum_of_block(1));
  static_cast<void>(take_nccl_bytes());
}

TEST_P(NcclMessages, Broadcasts) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  const float* mine = upload(values_of(rank_, 0, count));
  for (int root = 0; root < size_; ++root) {
    float* target = device(count);
    ASSERT_EQ(ncclBroadcast(mine, target, count, ncclFloat32, root, everyone, network_), ncclSuccess);
    order(network_, compute_);
    EXPECT_EQ(download(target, count), values_of(root, 0, count));
  }
  static_cast<void>(take_nccl_bytes());
}

/// Whatever the order of a rank's own calls: the collective comes first.
TEST_P(NcclMessages, CollectiveAndMessagesInOneGroup) {
  ncclComm_t everyone = communicator(MPI_COMM_WORLD, "everyone");
  const float* mine = upload(values_of(rank_, 0, count));
  float* all = device(count * static_cast<std::size_t>(size_));
  float* received = device(count);
  const auto gather = [&] {
    ASSERT_EQ(ncclAllGather(mine, all, count, ncclFloat32, everyone, network_), ncclSuccess);
  };
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  if (rank_ % 2 == 0) {
    gather();
  }
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);  // part of the one around it
  ASSERT_EQ(ncclSend(mine, count, ncclFloat32, ahead(1), everyone, network_), ncclSuccess);
  ASSERT_EQ(ncclRecv(received, count, ncclFloat32, behind(1), everyone, network_), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  if (rank_ % 2 != 0) {
    gather();
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  order(network_, compute_);
  EXPECT_EQ(download(received, count), values_of(behind(1), 0, count));
  EXPECT_EQ(download(all + static_cast<std::size_t>(ahead(1)) * count, count), values_of(ahead(1), 0, count));
  static_cast<void>(take_nccl_bytes());
}

/// Pairs of neighbours, and the ranks of the same place in all pairs; each with a stream of its own.
TEST_P(NcclMessages, TwoCommunicators) {
  MPI_Comm ranks[2];
  MPI_Comm_split(MPI_COMM_WORLD, rank_ / 2, rank_, &ranks[0]);
  MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, rank_, &ranks[1]);
  ncclComm_t levels[] = {communicator(ranks[0], "inner"), communicator(ranks[1], "outer")};
  cudaStream_t streams[] = {network_, nullptr};
  ASSERT_EQ(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking), cudaSuccess);
  float* mine = upload(values_of(rank_, 0, count));
  float* gathered[] = {device(2 * count), device(count * static_cast<std::size_t>(size_))};
  int sizes[2];
  for (const std::size_t level : {std::size_t{0}, std::size_t{1}}) {
    ASSERT_EQ(ncclCommCount(levels[level], &sizes[level]), ncclSuccess);
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::size_t level : {std::size_t{0}, std::size_t{1}}) {
      if (sizes[level] > 1) {
        order(compute_, streams[level]);
        ASSERT_EQ(ncclAllGather(mine, gathered[level], count, ncclFloat32, levels[level], streams[level]),
                  ncclSuccess);
      }
    }
    for (const std::size_t level : {std::size_t{0}, std::size_t{1}}) {
      if (sizes[level] > 1) {
        order(streams[level], compute_);
        for (int i = 0; i < sizes[level]; ++i) {
          const int owner = level == 0 ? rank_ / 2 * 2 + i : i * 2 + rank_ % 2;
          EXPECT_EQ(download(gathered[level] + static_cast<std::size_t>(i) * count, count),
                    values_of(owner, turn, count));
        }
      }
    }
    const std::vector<float> values = values_of(rank_, turn + 1, count);
    ASSERT_EQ(cudaMemcpyAsync(mine, values.data(), count * sizeof(float), cudaMemcpyHostToDevice, compute_),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(streams[1]), cudaSuccess);
  for (MPI_Comm& each : ranks) {
    MPI_Comm_free(&each);
  }
  static_cast<void>(take_nccl_bytes());
}

/// A group may hold calls of several communicators.
TEST_P(NcclMessages, TwoCommunicatorsInOneGroup) {
  ncclComm_t communicators[] = {communicator(MPI_COMM_WORLD, "first"),
                                communicator(MPI_COMM_WORLD, "second")};
  cudaStream_t streams[] = {network_, compute_};
  float* received[] = {device(count), device(count)};
  float* sent[] = {upload(values_of(rank_, 0, count)), upload(values_of(rank_, 1, count))};
  constexpr std::size_t half = count / 2;
  std::size_t begins[] = {0, 0};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{0}, std::size_t{1}}) {
    const std::size_t begin = std::exchange(begins[i], half);
    ASSERT_EQ(ncclSend(sent[i] + begin, half, ncclFloat32, ahead(1), communicators[i], streams[i]),
              ncclSuccess);
    ASSERT_EQ(ncclRecv(received[i] + begin, half, ncclFloat32, behind(1), communicators[i], streams[i]),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  order(network_, compute_);
  for (const int i : {0, 1}) {
    std::vector<float> expected = values_of(behind(1), i, count);
    expected.resize(2 * half);
    EXPECT_EQ(download(received[i], expected.size()), expected);
  }
  static_cast<void>(take_nccl_bytes());
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclMessages, testing::Range(0U, 9U));

}  // namespace
}  // namespace hcp::software_gpu
