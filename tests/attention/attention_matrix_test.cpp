/// Every scheme on this many ranks, forward and backward, against fp64; and its bytes as MPI saw them against
/// the plan.
///
/// HCP_TEST_EXHAUSTIVE=1 adds every length from 1 to 300.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/attention/attention_case.hpp"
#include "tests/harness/pmpi_counter.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

double tolerance(DataType type) {
  switch (type) {
    case DataType::fp32:
      return 2e-6;
    case DataType::bf16:
      return 1e-2;
    case DataType::fp16:
      return 2e-3;
  }
  return 0.0;
}

std::int64_t swap_members(const std::vector<Level>& levels) {
  return Scheme{levels}.a2a_size();
}

/// Lengths that divide nothing, shards without tokens, documents without tokens, many short documents.
std::vector<std::vector<std::int64_t>> document_lists() {
  std::vector<std::vector<std::int64_t>> lists{{1},
                                               {2, 1},
                                               {7},
                                               {64},
                                               {4, 3},
                                               {11},
                                               {13},
                                               {33},
                                               {16, 24, 0, 0, 57},
                                               {137, 41, 89},
                                               {250},
                                               {301},
                                               {0, 5, 0, 1, 1, 30, 2, 0, 64},
                                               {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}};
  if (std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr) {
    for (std::int64_t length = 1; length <= 300; ++length) {
      lists.push_back({length});
    }
  }
  return lists;
}

struct HeadShape {
  std::int64_t heads_q, heads_kv, dim_qk, dim_v;
};

class AttentionMatrix : public testing::Test {
 protected:
  void check(const Problem& problem, const Setting& setting, const Answer& answer) {
    SCOPED_TRACE(problem.describe() + "; " + setting.describe());
    const LocalResult result = run_case(problem, setting, answer, comm_, reset_mpi_traffic);
    const MpiTrafficSeen seen = mpi_traffic_seen();

    const CaseErrors errors = errors_of(problem, answer, result);
    EXPECT_LE(errors.worst, tolerance(problem.type)) << errors.where;
    worst_ = std::max(worst_, errors.worst);

    const TrafficLedger planned = planned_ledger(result.plan);
    EXPECT_EQ(result.counted, planned);
    std::map<int, MpiTraffic> planned_to;
    for (const auto& [key, traffic] : planned) {
      MpiTraffic& to = planned_to[key.peer_cp_rank];
      to.bytes += traffic.bytes;
      to.messages += traffic.messages;
    }
    EXPECT_EQ(seen.sent, planned_to);
    EXPECT_THAT(seen.other_calls, testing::IsEmpty());

    const ExchangePlan* const plan = &result.plan;
    const MemoryPeaks peaks = planned_memory({&plan, 1}, PassSelection::both);
    EXPECT_EQ(result.peaks, peaks.by_category);
    EXPECT_EQ(result.peak_total, peaks.total);
    ++cases_;
  }

  void report(const char* what, DataType type) const {
    if (const double worst = all_reduce(comm_, Reduction::max, worst_); comm_.rank() == 0) {
      std::printf("%s, %d ranks: %d cases, worst error %.2e, tolerance %.0e\n", what, comm_.size(), cases_,
                  worst, tolerance(type));
    }
  }

  MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  int cases_ = 0;
  double worst_ = 0.0;
};

TEST_F(AttentionMatrix, Fp32) {
  const std::vector<HeadShape> shapes{{8, 8, 8, 8}, {8, 2, 16, 8}, {28, 7, 8, 8}, {8, 1, 8, 24}};
  const auto schemes = schemes_on(comm_.size());
  std::uint64_t seed = 1;
  for (const auto& documents : document_lists()) {
    for (const bool causal : {false, true}) {
      for (const HeadShape& shape : shapes) {
        const Problem problem{documents,    causal,      shape.heads_q,  shape.heads_kv,
                              shape.dim_qk, shape.dim_v, DataType::fp32, seed++};
        const Answer answer = solve(problem, comm_);
        for (const auto& levels : schemes) {
          if (swap_members(levels) > problem.heads_q) {
            continue;
          }
          for (const Partition partition : {Partition::zigzag, Partition::contiguous}) {
            check(problem, {.levels = levels, .partition = partition, .delay_seed = {}}, answer);
          }
        }
      }
    }
  }
  report("fp32", DataType::fp32);
}

TEST_F(AttentionMatrix, ShortStorageTypes) {
  const std::vector<HeadShape> shapes{{8, 2, 16, 8}, {28, 7, 8, 8}};
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    worst_ = 0.0;
    cases_ = 0;
    std::uint64_t seed = 1000;
    for (const auto& documents :
         std::vector<std::vector<std::int64_t>>{{137, 41, 89}, {33}, {250}, {0, 3, 1}}) {
      for (const HeadShape& shape : shapes) {
        const bool causal = seed % 2 == 0;
        const Problem problem{documents,    causal,      shape.heads_q, shape.heads_kv,
                              shape.dim_qk, shape.dim_v, type,          seed++};
        const Answer answer = solve(problem, comm_);
        for (const auto& levels : schemes_on(comm_.size())) {
          if (swap_members(levels) > problem.heads_q) {
            continue;
          }
          for (const DataType wire : {DataType::fp32, type}) {
            check(problem, {.levels = levels, .gradient_wire = wire, .delay_seed = {}}, answer);
          }
        }
      }
      ++seed;  // so that each shape meets both masks
    }
    report(name_of(type).data(), type);
  }
}

}  // namespace
}  // namespace hcp
