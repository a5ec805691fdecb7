/// The configurations with which TransformerEngine tests context parallelism, under every scheme.
///
/// Its two suites are tests/pytorch/attention/test_attention_with_cp.py's flash and fused ones; FP8 and dense
/// biases are left out. Sequences of 4096 (of 1024 where the head dimension is 256) and windows are shortened
/// by the same factor. Formats bshd and sbhd are batch rows here, thd is two packed documents of random
/// lengths, with padding between them where there is no window. Inputs are normal and cut off at 1, as there.
/// Every chunk of a rank is held against fp64 by itself.
///
/// A sample: every scheme that TransformerEngine runs, and others drawn for the configuration, in one storage
/// type; beyond 2 ranks one format for each configuration, 4 and 8 ranks in turn. HCP_TEST_EXHAUSTIVE=1 runs
/// everything, and longer sequences too.
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

enum class Softmax { vanilla, off_by_one, learnable };

/// The schemes of TransformerEngine; it tests the first three on 2 ranks and the last on 2 x 2.
constexpr unsigned p2p = 1;
constexpr unsigned all_gather = 2;
constexpr unsigned a2a = 4;
constexpr unsigned a2a_p2p = 8;
constexpr unsigned all_four = p2p | all_gather | a2a | a2a_p2p;

constexpr bool causal = true;
constexpr bool full = false;
constexpr Window unbounded{};

struct Configuration {
  const char* name;  ///< in TransformerEngine's suites
  std::int64_t heads_q, heads_kv, dim_qk, dim_v;
  std::int64_t length;
  bool is_causal;
  Window window;  ///< for this length
  Softmax softmax;
  unsigned valid;  ///< schemes that TransformerEngine takes
};

constexpr Configuration configurations[] = {
    // name                    heads     dims      length mask    window      softmax              valid there
    {"flash 1_0, fused 1_0", 12, 12, 128, 128, 4096, causal, unbounded, Softmax::vanilla, all_four},
    {"flash 1_1, fused 1_1", 12, 12, 128, 128, 4096, full, unbounded, Softmax::vanilla, all_four},
    {"flash 1_2, fused 1_5", 12, 12, 128, 128, 4096, causal, {512, 0}, Softmax::vanilla, all_gather | a2a},
    {"flash 1_3", 12, 12, 128, 128, 4096, full, {512, 512}, Softmax::vanilla, all_gather | a2a},
    {"flash 2_0, fused 2_0", 32, 4, 128, 128, 4096, causal, unbounded, Softmax::vanilla, all_four},
    {"flash 2_1", 12, 2, 128, 128, 4096, full, unbounded, Softmax::vanilla, all_four},
    {"flash 2_2, fused 2_1", 32, 32, 128, 128, 4096, causal, {128, 0}, Softmax::vanilla, all_gather | a2a},
    {"flash 2_3", 12, 2, 128, 128, 4096, full, {512, 512}, Softmax::vanilla, all_gather | a2a},
    {"flash 3_0, fused 3_1", 128, 128, 192, 128, 4096, causal, unbounded, Softmax::vanilla, all_four},
    {"flash 3_1", 12, 12, 192, 128, 4096, full, unbounded, Softmax::vanilla, p2p | a2a_p2p},
    {"flash 3_2", 12, 12, 192, 128, 4096, causal, {512, 0}, Softmax::vanilla, 0},
    {"flash 3_3", 12, 12, 192, 128, 4096, full, {512, 512}, Softmax::vanilla, 0},
    {"fused 2_6", 12, 2, 128, 128, 4096, causal, {512, 0}, Softmax::vanilla, all_gather | a2a},
    {"fused 3_0", 12, 12, 128, 64, 4096, causal, unbounded, Softmax::vanilla, all_four},
    {"fused 4_0", 64, 8, 64, 64, 4096, causal, unbounded, Softmax::vanilla, all_four},
    {"fused 4_1", 64, 8, 64, 64, 4096, causal, unbounded, Softmax::off_by_one, a2a},
    {"fused 4_2", 64, 8, 64, 64, 4096, causal, unbounded, Softmax::learnable, a2a},
    {"fused 4_3", 64, 64, 64, 64, 4096, causal, {128, 0}, Softmax::learnable, a2a},
    {"fused 5_0", 16, 16, 256, 256, 1024, causal, unbounded, Softmax::vanilla, p2p | all_gather},
    {"fused 5_1", 16, 16, 256, 256, 1024, causal, {128, 0}, Softmax::vanilla, all_gather},
};

enum class Format { batch_rows, packed };
constexpr int batch = 2;

bool exhaustive() {
  return std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr;
}

/// Of 0, 1, ... most.
std::int64_t up_to(std::int64_t most, std::mt19937& random) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most + 1));
}

test::MaskDefinition mask_of(const Configuration& c, Format format, std::int64_t length, int ranks,
                             std::mt19937& random) {
  const bool has_window = c.window.left >= 0;
  test::MaskDefinition mask{.kind = c.is_causal  ? test::MaskKind::causal
                                    : has_window ? test::MaskKind::sliding_window
                                                 : test::MaskKind::no_mask,
                            .doc_lengths = {}};
  if (has_window) {
    mask.window = {c.window.left * length / c.length, c.window.right * length / c.length};
  }
  for (int row = 0; row < batch; ++row) {
    if (format == Format::batch_rows) {
      mask.doc_lengths.push_back(length);
      continue;
    }
    const std::int64_t valid = up_to(length, random);
    if (has_window) {
      mask.doc_lengths.push_back(valid);
      continue;
    }
    mask.kind = c.is_causal ? test::MaskKind::padding_causal : test::MaskKind::padding;
    mask.doc_lengths.push_back((valid + 2 * ranks - 1) / (2 * ranks) * (2 * ranks));
    mask.special_lengths.push_back(valid);
  }
  return mask;
}

std::vector<float> sinks_of(const Configuration& c, std::mt19937& random) {
  std::vector<float> sinks;
  if (c.softmax != Softmax::vanilla) {
    sinks.assign(static_cast<std::size_t>(c.heads_q), 0.0F);
  }
  if (c.softmax == Softmax::learnable) {
    for (float& sink : sinks) {
      sink = static_cast<float>(up_to(4000, random)) / 1000.0F - 2.0F;
    }
  }
  return sinks;
}

/// Element by element, atol = rtol.
double tolerance_there(const Problem& problem) {
  switch (problem.type) {
    case DataType::fp32:
      break;  // not tested there
    case DataType::bf16:
      return problem.heads_q == problem.heads_kv ? 2.5e-2 : 3.5e-2;
    case DataType::fp16:
      return 5e-3;
  }
  return std::numeric_limits<double>::infinity();
}

bool runs_there(const Configuration& c, DataType type, const std::vector<Level>& levels) {
  const std::array<std::vector<Level>, 4> schemes{{{{Algorithm::p2p, 2}},
                                                   {{Algorithm::all_gather, 2}},
                                                   {{Algorithm::a2a, 2}},
                                                   {{Algorithm::a2a, 2}, {Algorithm::p2p, 2}}}};
  const auto found = std::ranges::find(schemes, levels);
  return type != DataType::fp32 && found != schemes.end() &&
         ((c.valid >> (found - schemes.begin())) & 1U) != 0;
}

class AcceptanceMatrix : public testing::Test {
 protected:
  void check_schemes(const Configuration& c, const Problem& problem) {
    const Answer answer = solve(problem, comm_);
    int drawn = 0;
    std::vector<std::vector<Level>> schemes = schemes_on(comm_.size());
    std::ranges::shuffle(schemes, random_);
    for (const std::vector<Level>& levels : schemes) {
      const bool there = runs_there(c, problem.type, levels);
      if (!there && !exhaustive() && drawn++ >= schemes_drawn) {
        continue;
      }
      const CaseErrors errors = check_case(problem, {.levels = levels, .delay_seed = {}}, answer, comm_);
      EXPECT_LE(errors.element, tolerance_there(problem)) << problem.describe();
      worst_ = std::max(worst_, errors.worst);
      worst_element_ = std::max(worst_element_, errors.element);
      ++cases_;
      cases_there_ += there ? 1 : 0;
    }
  }

  [[nodiscard]] std::vector<Format> formats_of(std::size_t configuration) const {
    if (exhaustive() || comm_.size() == 2) {
      return {Format::batch_rows, Format::packed};
    }
    return {(configuration % 2 == 0) == (comm_.size() == 4) ? Format::batch_rows : Format::packed};
  }

  static constexpr int schemes_drawn = 2;
  MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  std::mt19937 random_{7};  // the same on every rank
  int cases_ = 0;
  int cases_there_ = 0;
  double worst_ = 0.0;
  double worst_element_ = 0.0;
};

TEST_F(AcceptanceMatrix, EveryConfiguration) {
  const std::vector<std::int64_t> lengths =
      exhaustive() ? std::vector<std::int64_t>{256, 512} : std::vector<std::int64_t>{256};
  const std::vector<DataType> types{DataType::fp32, DataType::bf16, DataType::fp16};
  std::array<std::array<double, 2>, 3> worst{};  // [type]: in norm, of an element
  std::uint64_t seed = 1;
  for (std::size_t i = 0; i < std::size(configurations); ++i) {
    const Configuration& c = configurations[i];
    for (const Format format : formats_of(i)) {
      for (const std::int64_t length : lengths) {
        const std::size_t drawn = random_() % types.size();
        for (std::size_t t = 0; t < types.size(); ++t) {
          if (t != drawn && !exhaustive()) {
            continue;
          }
          SCOPED_TRACE(c.name);
          worst_ = worst_element_ = 0.0;
          check_schemes(c, {.mask = mask_of(c, format, length, comm_.size(), random_),
                            .heads_q = c.heads_q,
                            .heads_kv = c.heads_kv,
                            .dim_qk = c.dim_qk,
                            .dim_v = c.dim_v,
                            .type = types[t],
                            .seed = seed++,
                            .largest_input = 1.0F,
                            .sinks = sinks_of(c, random_)});
          worst[t] = {std::max(worst[t][0], worst_), std::max(worst[t][1], worst_element_)};
        }
      }
    }
  }
  for (std::size_t t = 0; t < types.size(); ++t) {
    const double in_norm = all_reduce(comm_, Reduction::max, worst[t][0]);
    const double of_element = all_reduce(comm_, Reduction::max, worst[t][1]);
    if (comm_.rank() == 0) {
      std::printf("%s, %d ranks: worst error %.2e in norm (tolerance %.0e), %.2e of an element\n",
                  name_of(types[t]).data(), comm_.size(), in_norm, tolerance_of(types[t]), of_element);
    }
  }
  if (comm_.rank() == 0) {
    std::printf("%d cases that TransformerEngine runs too, %d in all\n", cases_there_, cases_);
  }
}

}  // namespace
}  // namespace hcp
