/// Every scheme on this many ranks, forward and backward, against fp64; and its bytes as MPI saw them against
/// the plan.
///
/// A sample: every kind of mask meets every scheme under every partition, each time with other documents, and
/// one head shape; half of the cases pack their messages as devices want them. HCP_TEST_EXHAUSTIVE=1 runs
/// every partition, head shape and gradient type with all documents, every length from 1 to 300 and many more
/// random masks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/attention/case_checks.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

std::int64_t swap_members(const std::vector<Level>& levels) {
  return Scheme{levels}.a2a_size();
}

bool exhaustive() {
  return std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr;
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
  if (exhaustive()) {
    for (std::int64_t length = 1; length <= 300; ++length) {
      lists.push_back({length});
    }
  }
  return lists;
}

struct HeadShape {
  std::int64_t heads_q, heads_kv, dim_qk, dim_v;
};
const std::vector<HeadShape> head_shapes{{8, 8, 8, 8}, {8, 2, 16, 8}, {28, 7, 8, 8}, {8, 1, 8, 24}};

Problem problem_of(const test::MaskDefinition& mask, const HeadShape& shape, DataType type,
                   std::uint64_t seed) {
  return {mask, shape.heads_q, shape.heads_kv, shape.dim_qk, shape.dim_v, type, seed};
}

class AttentionMatrix : public testing::Test {
 protected:
  /// One case, in a form of messages drawn for it: half of them in that of hosts.
  void check(const Problem& problem, Setting setting, const Answer& answer) {
    constexpr std::array forms{MessageForm::scattered, MessageForm::scattered, MessageForm::contiguous,
                               MessageForm::collectives};
    setting.message_form = forms[form_() % forms.size()];
    worst_ = std::max(worst_, check_case(problem, setting, answer, comm_).worst);
    ++cases_;
  }

  /// Every scheme, with one of the partitions and wire types or with all of them. In four turns in a row a
  /// scheme meets four partitions.
  void check_schemes(const Problem& problem, std::size_t turn,
                     const std::vector<DataType>& wires = {DataType::fp32}) {
    const Answer answer = solve(problem, comm_);
    for (const auto& levels : schemes_) {
      ++turn;
      if (swap_members(levels) > problem.heads_q) {
        continue;
      }
      for (const Partition partition :
           chosen(std::vector(all_partitions.begin(), all_partitions.end()), turn)) {
        for (const DataType wire : sampled(wires)) {
          check(problem, {.levels = levels, .partition = partition, .gradient_wire = wire, .delay_seed = {}},
                answer);
        }
      }
    }
  }

  /// One of the values, or all of them.
  template <typename Value>
  [[nodiscard]] static std::vector<Value> chosen(const std::vector<Value>& values, std::size_t which) {
    return exhaustive() ? values : std::vector{values[which % values.size()]};
  }
  template <typename Value>
  [[nodiscard]] std::vector<Value> sampled(const std::vector<Value>& values) {
    return chosen(values, random_());
  }

  void report(const char* what, DataType type) const {
    if (const double worst = all_reduce(comm_, Reduction::max, worst_); comm_.rank() == 0) {
      std::printf("%s, %d ranks: %d cases, worst error %.2e, tolerance %.0e\n", what, comm_.size(), cases_,
                  worst, tolerance_of(type));
    }
  }

  MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const std::vector<std::vector<Level>> schemes_ = schemes_on(comm_.size());
  std::mt19937 random_{4};  // the same on every rank
  std::mt19937 form_{5};    // so that the cases are the same whatever their forms
  int cases_ = 0;
  double worst_ = 0.0;
};

TEST_F(AttentionMatrix, Lengths) {
  std::uint64_t seed = 1;
  std::size_t shape = 0;
  for (const auto& documents : document_lists()) {
    for (const test::MaskKind kind : {test::MaskKind::no_mask, test::MaskKind::causal}) {
      for (std::size_t more = exhaustive() ? head_shapes.size() : 1; more > 0; --more) {
        shape = (shape + 1) % head_shapes.size();
        check_schemes(
            problem_of({.kind = kind, .doc_lengths = documents}, head_shapes[shape], DataType::fp32, seed),
            seed);
        ++seed;
      }
    }
    ++shape;  // so that each mask meets every shape
  }
  report("lengths, fp32", DataType::fp32);
}

TEST_F(AttentionMatrix, EveryMask) {
  const int rounds = exhaustive() ? 20 : std::max(4, 24 / comm_.size());  // four partitions for each scheme
  int with_other_keys = 0;
  std::uint64_t seed = 1;
  for (int round = 0; round < rounds; ++round) {
    for (const test::MaskKind kind : test::all_mask_kinds) {
      const test::MaskDefinition mask = test::random_definition(kind, random_, 5, 300);
      for (const HeadShape& shape : sampled(head_shapes)) {
        check_schemes(problem_of(mask, shape, DataType::fp32, seed++), static_cast<std::size_t>(round));
      }
      with_other_keys += mask.kv_doc_lengths.empty() ? 0 : 1;
    }
  }
  EXPECT_GE(with_other_keys, rounds);
  report("every mask, fp32", DataType::fp32);
}

/// The same elements drop under every scheme, partition and number of ranks.
TEST_F(AttentionMatrix, SinksAndDropout) {
  std::uint64_t seed = 2000;
  for (const test::MaskKind kind : test::all_mask_kinds) {
    for (const bool learnable : {false, true}) {
      const HeadShape& shape = head_shapes[seed % head_shapes.size()];
      Problem problem =
          problem_of(test::random_definition(kind, random_, 5, 150), shape, DataType::fp32, seed);
      for (std::int64_t head = 0; head < shape.heads_q; ++head) {
        problem.sinks.push_back(learnable ? static_cast<float>(random_() % 100) / 10.0F - 7.0F : 0.0F);
      }
      problem.dropout.probability = learnable ? 0.1 : 0.5;
      problem.dropout.seed = seed;
      check_schemes(problem, seed);
      ++seed;
    }
  }
  report("sinks and dropout, fp32", DataType::fp32);
}

TEST_F(AttentionMatrix, ShortStorageTypes) {
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    worst_ = 0.0;
    cases_ = 0;
    std::uint64_t seed = 1000;
    for (const test::MaskKind kind : test::all_mask_kinds) {
      const test::MaskDefinition mask = test::random_definition(kind, random_, 4, 150);
      for (const HeadShape& shape : sampled(head_shapes)) {
        check_schemes(problem_of(mask, shape, type, seed), seed, {DataType::fp32, type});
        ++seed;
      }
    }
    report(name_of(type).data(), type);
  }
}

}  // namespace
}  // namespace hcp
