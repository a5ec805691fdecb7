/// Every scheme on devices, forward and backward: the product's plans, transports and kernels under schedules
/// of the software GPU that are drawn at random, against fp64 and against the CPU back end, with the bytes
/// that NCCL or MPI really saw.
///
/// A sample: under both transports every scheme meets every mask in both types, each time under another
/// schedule; on 8 ranks each mask in one of the types, so under four schedules. HCP_TEST_EXHAUSTIVE=1 runs
/// every case, under eight schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/devices.hpp"
#include "src/comm/nccl_transport.hpp"
#include "src/comm/staged_transport.hpp"
#include "tests/attention/case_checks.hpp"
#include "tests/harness/pmpi_counter.hpp"
#include "tests/software_gpu/software_gpu.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

constexpr double timeout_s = 120.0;  // a deadlock is the software GPU's finding, and comes sooner

enum class Carrier { nccl, staged };

std::string name_of(Carrier carrier) {
  return carrier == Carrier::nccl ? "nccl" : "staged";
}

/// The software GPU has a device for every rank (HCP_SOFTWARE_GPU_DEVICES).
Platform device_platform(Carrier carrier, int rank) {
  Platform platform{.back_end = make_cuda_back_end(find_devices().indices.at(static_cast<std::size_t>(rank))),
                    .make_transport = {}};
  if (carrier == Carrier::nccl) {
    platform.make_transport = [transports = std::make_shared<NcclTransports>(
                                   platform.back_end.stream, false)](const MpiCommunicator& group) {
      return transports->make(group, timeout_s);
    };
  } else {
    platform.make_transport =
        [transports = std::make_shared<StagedTransports>(platform.back_end.stream, DevicePath::pinned)](
            const MpiCommunicator& group) { return transports->make(group, timeout_s); };
  }
  return platform;
}

/// By world rank of the receiver.
std::map<int, std::int64_t> bytes_seen(Carrier carrier) {
  if (carrier == Carrier::nccl) {
    return software_gpu::take_nccl_bytes();
  }
  std::map<int, std::int64_t> bytes;
  for (const auto& [rank, traffic] : mpi_traffic_seen().sent) {
    bytes[rank] = traffic.bytes;
  }
  return bytes;
}

std::map<int, std::int64_t> bytes_to_ranks(const TrafficLedger& ledger) {
  std::map<int, std::int64_t> bytes;
  for (const auto& [key, traffic] : ledger) {
    bytes[key.peer_cp_rank] += traffic.bytes;
  }
  return bytes;
}

/// ||a - b|| / ||b|| of one tensor, or 0 where both are zero.
double distance(DataType type, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const std::size_t count = a.size() / size_of(type);
  std::vector<float> x(count);
  std::vector<float> y(count);
  widen(type, a.data(), x.data(), count);
  widen(type, b.data(), y.data(), count);
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    if (x[i] == y[i]) {  // -inf of rows that see nothing, too
      size += std::isfinite(y[i]) ? static_cast<double>(y[i]) * y[i] : 0.0;
      continue;
    }
    const double apart = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    difference += apart * apart;
    size += static_cast<double>(y[i]) * y[i];
  }
  return difference == 0.0 ? 0.0 : std::sqrt(difference / size);
}

/// The masks of one problem: documents of uneven lengths, some empty, so that shards are uneven, too.
std::vector<test::MaskDefinition> masks(std::int64_t length) {
  using test::MaskKind;
  return {{.kind = MaskKind::causal, .doc_lengths = {length}},
          {.kind = MaskKind::causal, .doc_lengths = {length / 3, 0, 5, length / 2}},
          {.kind = MaskKind::sliding_window, .doc_lengths = {length - 3}, .window = {.left = 11, .right = 2}},
          {.kind = MaskKind::no_mask, .doc_lengths = {7, length - 9}}};
}

class DeviceMatrix : public testing::Test {
 protected:
  ~DeviceMatrix() override { software_gpu::set_schedule(0); }

  void check(const Problem& problem, const Setting& setting, const Answer& answer, const LocalResult& on_host,
             Carrier carrier, unsigned schedule) {
    SCOPED_TRACE(problem.describe() + "; " + setting.describe() + "; " + name_of(carrier) + ", schedule " +
                 std::to_string(schedule));
    software_gpu::set_schedule(schedule * 64 + static_cast<unsigned>(comm_.rank()) + 1);
    static_cast<void>(software_gpu::take_nccl_bytes());
    const LocalResult result =
        run_case(problem, setting, answer, comm_, device_platform(carrier, comm_.rank()), reset_mpi_traffic);
    const TrafficLedger planned = planned_ledger(result.plan);
    EXPECT_EQ(bytes_seen(carrier), bytes_to_ranks(planned));
    EXPECT_EQ(result.counted, planned);

    CaseErrors errors = errors_of(problem, answer, result);
    errors.include(errors_of(answer, head_terms(result, comm_)));
    const double tolerance = tolerance_of(problem, setting);
    EXPECT_LE(errors.worst, tolerance) << errors.where;
    worst_ = std::max(worst_, errors.worst);
    for (std::size_t i = 0; i < result.tensors.size(); ++i) {
      const DataType type =
          i + 1 == result.tensors.size() ? DataType::fp32 : problem.type;  // lse is the last
      EXPECT_LE(distance(type, result.tensors[i], on_host.tensors[i]), 2 * tolerance) << "tensor " << i;
    }

    const ExchangePlan* const plan = &result.plan;
    const MemoryPeaks peaks = planned_memory({&plan, 1}, PassSelection::both);
    EXPECT_EQ(result.peaks, peaks.by_category);
    EXPECT_EQ(result.peak_total, peaks.total);
    ++cases_;
  }

  /// Every scheme of a carrier with this problem.
  void check_schemes(Carrier carrier, const Problem& problem, std::uint64_t turn) {
    const Answer answer = solve(problem, comm_);
    const bool exhaustive = std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr;
    std::uint64_t scheme = 0;
    for (const std::vector<Level>& levels : schemes_on(comm_.size())) {
      // Turns of the second type begin with the other half.
      const bool other_half = (scheme++ + turn + (problem.type == DataType::fp32 ? 1 : 0)) % 2 == 0;
      if (comm_.size() == 8 && other_half && !exhaustive) {
        continue;
      }
      Setting setting{.levels = levels, .delay_seed = {}};
      setting.partition = turn % 3 == 2 ? Partition::contiguous : Partition::zigzag;
      const LocalResult on_host = run_case(problem, setting, answer, comm_, host_platform(setting));
      setting.message_form = carrier == Carrier::nccl ? MessageForm::collectives : MessageForm::contiguous;
      for (unsigned schedule = 0; schedule < (exhaustive ? 8 : 1); ++schedule) {
        check(problem, setting, answer, on_host, carrier, ++drawn_);
      }
    }
  }

  void check_all(Carrier carrier) {
    const std::int64_t length = 20 + 12 * comm_.size();
    std::uint64_t turn = 0;
    for (const DataType type : {DataType::bf16, DataType::fp32}) {
      worst_ = 0.0;
      for (const test::MaskDefinition& mask : masks(length)) {
        ++turn;
        check_schemes(carrier,
                      {.mask = mask,
                       .heads_q = 8,
                       .heads_kv = turn % 2 == 0 ? 4 : 2,
                       .dim_qk = 16,
                       .dim_v = 16,
                       .type = type,
                       .seed = turn},
                      turn);
      }
      const double worst = all_reduce(comm_, Reduction::max, worst_);
      if (comm_.rank() == 0) {
        std::printf("%s, %s, %d ranks: %d cases so far, worst error %.2e, tolerance %.0e\n",
                    name_of(carrier).c_str(), hcp::name_of(type).data(), comm_.size(), cases_, worst,
                    tolerance_of(type));
      }
    }
  }

  MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  unsigned drawn_ = 0;  ///< schedules
  int cases_ = 0;
  double worst_ = 0.0;
};

TEST_F(DeviceMatrix, Staged) {
  check_all(Carrier::staged);
}

TEST_F(DeviceMatrix, Nccl) {
  check_all(Carrier::nccl);
}

}  // namespace
}  // namespace hcp
