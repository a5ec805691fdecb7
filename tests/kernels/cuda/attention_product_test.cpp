/// All that the kernels of attention on devices take, crossed with each other: types, masks, head dims, heads
/// of a rank, blocks, dropout, sinks.
///
/// A sample in which every two values of different factors meet. HCP_TEST_EXHAUSTIVE=1 runs the whole
/// product.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kernels/cuda/attention_checks.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"

namespace hcp::test {
namespace {

struct Dims {
  std::int64_t qk;
  std::int64_t v;
};
struct Heads {
  std::int64_t q;
  std::int64_t kv;
  HeadMap map;
};

constexpr DataType types[]{DataType::fp32, DataType::bf16, DataType::fp16};
/// Each tile, filled and with masked columns.
constexpr Dims dims[]{{64, 64},   {40, 56},   {128, 128}, {72, 104},
                      {192, 128}, {136, 120}, {256, 256}, {80, 248}};
constexpr Heads heads[]{{2, 2, {0, 0, 1}}, {3, 1, {0, 0, 3}}, {3, 2, {6, 1, 4}}, {2, 3, {7, 1, 4}}};
constexpr int splits = 4;  // of splits_of

enum Factor : std::size_t { of_type, of_mask, of_dims, of_heads, of_split, of_dropout, of_sinks, factors };
using Choice = std::array<std::size_t, factors>;  ///< an index for each factor
constexpr Choice choices{
    std::size(types), std::size(all_mask_kinds), std::size(dims), std::size(heads), splits, 2, 2};

std::vector<Choice> whole_product() {
  std::vector<Choice> all{Choice{}};
  for (std::size_t factor = 0; factor < factors; ++factor) {
    std::vector<Choice> longer;
    for (Choice choice : all) {
      for (choice[factor] = 0; choice[factor] < choices[factor]; ++choice[factor]) {
        longer.push_back(choice);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Two factors with a value each.
using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

std::vector<Pair> pairs_of(const Choice& choice) {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < factors; ++a) {
    for (std::size_t b = a + 1; b < factors; ++b) {
      pairs.emplace_back(a, choice[a], b, choice[b]);
    }
  }
  return pairs;
}

/// Until no pair is missing: of a few drawn, the choice that brings most new ones.
std::vector<Choice> sample() {
  std::mt19937 random{17};
  const std::vector<Choice> all = whole_product();
  std::set<Pair> missing;
  for (const Choice& choice : all) {
    for (const Pair& pair : pairs_of(choice)) {
      missing.insert(pair);
    }
  }
  std::vector<Choice> taken;
  while (!missing.empty()) {
    Choice best{};
    std::ptrdiff_t most = -1;
    for (int draw = 0; draw < 100; ++draw) {
      const Choice& choice = all[random() % all.size()];
      const auto pairs = pairs_of(choice);
      const auto brings =
          std::ranges::count_if(pairs, [&](const Pair& pair) { return missing.contains(pair); });
      if (brings > most) {
        most = brings;
        best = choice;
      }
    }
    taken.push_back(best);
    for (const Pair& pair : pairs_of(best)) {
      missing.erase(pair);
    }
  }
  return taken;
}

SoftmaxCase case_of(const Choice& choice, std::mt19937& random) {
  const Heads& of_rank = heads[choice[of_heads]];
  const Dims& of_head = dims[choice[of_dims]];
  SoftmaxCase setup{.attention = {.heads_q = of_rank.q,
                                  .heads_kv = of_rank.kv,
                                  .heads = of_rank.map,
                                  .dim_qk = of_head.qk,
                                  .dim_v = of_head.v,
                                  .type = types[choice[of_type]]},
                    .dropout = choice[of_dropout] == 0 ? 0.0 : 0.3};
  setup.attention.any_mask = random_definition(all_mask_kinds[choice[of_mask]], random, 2, 110);
  for (std::int64_t head = 0; choice[of_sinks] == 1 && head < of_rank.q; ++head) {
    setup.sinks.push_back(0.5F * static_cast<float>(head) - 0.5F);
  }
  return setup;
}

std::string text_of(const SoftmaxCase& setup, std::size_t split) {
  const AttentionCase& attention = setup.attention;
  std::ostringstream text;
  text << name_of(attention.type) << ", head dims " << attention.dim_qk << " / " << attention.dim_v << ", "
       << attention.heads_q << " heads on " << attention.heads_kv << " from head "
       << attention.heads.first_query_head << ", split " << split << ", dropout " << setup.dropout << ", "
       << setup.sinks.size() << " sinks, " << text_of(*attention.any_mask);
  return text.str();
}

const std::vector<Choice>& chosen() {
  static const std::vector<Choice> choices_to_run =
      std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr ? whole_product() : sample();
  return choices_to_run;
}

class AttentionProduct : public testing::TestWithParam<std::size_t> {};  // an index of all_mask_kinds
INSTANTIATE_TEST_SUITE_P(Masks, AttentionProduct, testing::Range(std::size_t{0}, choices[of_mask]),
                         [](const auto& info) { return name_of(all_mask_kinds[info.param]); });

TEST_P(AttentionProduct, IsExact) {
  std::mt19937 random{static_cast<unsigned>(GetParam()) + 17};
  const std::unique_ptr<AttentionKernel> kernel = make_kernel_under_test();
  int cases = 0;
  for (const Choice& choice : chosen()) {
    if (choice[of_mask] == GetParam()) {
      const SoftmaxCase setup = case_of(choice, random);
      SCOPED_TRACE(text_of(setup, choice[of_split]));
      expect_exact(*kernel, setup, splits_of(setup.attention).at(choice[of_split]));
      ++cases;
    }
  }
  std::printf("%d cases\n", cases);
  EXPECT_GT(cases, 0);
}

}  // namespace
}  // namespace hcp::test
