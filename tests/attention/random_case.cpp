#include "tests/attention/random_case.hpp"

#include <cmath>

#include "tests/exchange/random_plans.hpp"

namespace hcp {
namespace {

constexpr int most_ranks = 64;
constexpr std::int64_t most_heads = 24;

/// Any factorisation of `ranks`, any algorithms whose head swap leaves every rank a query head.
std::vector<Level> random_levels(RandomPlans& random, int ranks, std::int64_t heads_q) {
  const std::vector algorithms{Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a};
  while (true) {
    Scheme scheme;
    for (int left = ranks; left > 1; left /= scheme.levels.back().size) {
      std::vector<int> sizes;
      for (int size = 2; size <= left; ++size) {
        if (left % size == 0) {
          sizes.push_back(size);
        }
      }
      scheme.levels.push_back({random.one_of(algorithms), random.one_of(sizes)});
    }
    if (scheme.a2a_size() <= heads_q) {
      return scheme.levels;
    }
  }
}

DataType random_type(RandomPlans& random) {
  return random.one_of(std::vector{DataType::fp32, DataType::fp32, DataType::bf16, DataType::fp16});
}

std::vector<float> random_sinks(RandomPlans& random, std::int64_t heads) {
  std::vector<float> sinks;
  const std::int64_t softmax = random.below(3);  // vanilla, off by one, learnable
  for (std::int64_t head = 0; softmax > 0 && head < heads; ++head) {
    sinks.push_back(softmax == 1 ? 0.0F : static_cast<float>(random.below(161)) / 10.0F - 12.0F);
  }
  return sinks;
}

Dropout random_dropout(RandomPlans& random, std::int64_t documents) {
  Dropout dropout;
  dropout.probability = random.one_of(std::vector{0.0, 0.0, 0.1, 0.5, 0.9});
  dropout.seed = static_cast<std::uint64_t>(random.below(1 << 30)) << 32 |
                 static_cast<std::uint64_t>(random.below(1 << 30));
  dropout.layer = random.below(200);
  dropout.first_head = random.below(100);
  std::vector<std::int64_t> rows;
  for (std::int64_t in_a_row = 1; in_a_row <= documents; ++in_a_row) {
    if (documents % in_a_row == 0) {
      rows.push_back(in_a_row);
    }
  }
  dropout.documents_per_row = random.one_of(rows);
  return dropout;
}

Problem random_problem(RandomPlans& random, std::uint32_t seed) {
  const std::vector<std::int64_t> dims{8, 16, 24, 32, 40, 64, 72, 128};
  Problem problem{.mask = random.mask(random.one_of(std::vector<std::int64_t>{4, 20, 60, 150, 300}))};
  problem.heads_kv = random.one_of(std::vector<std::int64_t>{1, 1, 2, 3, 4, 7, 8});
  problem.heads_q = problem.heads_kv * (1 + random.below(most_heads / problem.heads_kv));
  problem.dim_qk = random.one_of(dims);
  problem.dim_v = random.one_of(dims);
  problem.type = random_type(random);
  problem.seed = seed;
  problem.sinks = random_sinks(random, problem.heads_q);
  if (random.below(2) == 0) {
    problem.softmax_scale =
        static_cast<float>(1 + random.below(100)) / 50.0F / std::sqrt(static_cast<float>(problem.dim_qk));
  }
  problem.dropout = random_dropout(random, std::ssize(problem.mask.doc_lengths));
  return problem;
}

Setting random_setting(RandomPlans& random, int ranks, const Problem& problem) {
  Setting setting{.levels = random_levels(random, ranks, problem.heads_q), .delay_seed = {}};
  setting.partition = random.partition();
  setting.stripe_size = random.one_of(std::vector<std::int64_t>{1, 2, 7, 16, 500});
  setting.gradient_wire = random_type(random);
  setting.threads = 1 + static_cast<int>(random.below(3));
  if (random.below(4) == 0) {
    setting.delay_seed = random.below(1 << 30);
  }
  setting.message_form = random.one_of(std::vector(all_message_forms.begin(), all_message_forms.end()));
  return setting;
}

}  // namespace

RandomCase random_case(std::uint32_t seed, int ranks) {
  RandomPlans random{seed * most_ranks + static_cast<std::uint32_t>(ranks)};
  RandomCase drawn;
  drawn.problem = random_problem(random, seed);
  drawn.setting = random_setting(random, ranks, drawn.problem);
  return drawn;
}

}  // namespace hcp
