#include "src/exchange/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "src/exchange/nearest_name.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum Algorithm;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(SchemeName, IsReadPerLevelAndPrintedCanonically) {
  EXPECT_THAT(parse_scheme_name("p2p"), ElementsAre(p2p));
  EXPECT_THAT(parse_scheme_name("p2p+a2a"), ElementsAre(p2p, a2a));
  EXPECT_THAT(parse_scheme_name("a2a+allgather+p2p"), ElementsAre(a2a, all_gather, p2p));
  EXPECT_EQ(scheme_name(parse_scheme_name("a2a+allgather+p2p")), "a2a+all_gather+p2p");
}

TEST(SchemeName, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_THAT(refusal([] { (void)parse_scheme_name("p2p+a2b"); }),
              AllOf(HasSubstr("'a2b' in 'p2p+a2b' is not an algorithm"), HasSubstr("did you mean a2a?"),
                    HasSubstr("p2p, all_gather or a2a")));
  EXPECT_THAT(refusal([] { (void)parse_scheme_name("all-gather"); }), HasSubstr("did you mean all_gather?"));
  EXPECT_THAT(refusal([] { (void)parse_scheme_name("ulysses"); }),
              AllOf(HasSubstr("'ulysses' is not an algorithm"), testing::Not(HasSubstr("did you mean"))));
}

TEST(SchemeName, MissingNamesAreRefused) {
  for (const char* text : {"", "+", "p2p+", "+p2p", "p2p++a2a"}) {
    EXPECT_THAT(refusal([&] { (void)parse_scheme_name(text); }), HasSubstr("a name is missing")) << text;
  }
}

TEST(ResolveScheme, OneNameSpansTheGroup) {
  const ResolvedScheme resolved = resolve_scheme({p2p}, 6, {}, CpNodes{.ranks_per_node = 2, .nodes = 3});
  EXPECT_THAT(resolved.requested.levels, ElementsAre(Level{p2p, 6}));
  EXPECT_EQ(resolved.effective, resolved.requested);
  EXPECT_EQ(resolved.source, SizesSource::whole_group);
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST(ResolveScheme, TwoNamesTakeTheirSizesFromTheNodes) {
  const ResolvedScheme resolved = resolve_scheme({p2p, a2a}, 6, {}, CpNodes{.ranks_per_node = 2, .nodes = 3});
  EXPECT_THAT(resolved.effective.levels, ElementsAre(Level{p2p, 2}, Level{a2a, 3}));
  EXPECT_EQ(resolved.source, SizesSource::node_layout);
  EXPECT_EQ(resolved.effective.sizes(), "2,3");
  EXPECT_EQ(resolved.effective.size(), 6);
  EXPECT_EQ(resolved.effective.a2a_size(), 3);
}

TEST(ResolveScheme, OneNameWithSizesStandsForThatManyLevels) {
  const ResolvedScheme resolved = resolve_scheme({a2a}, 4, {2, 2}, std::nullopt);
  EXPECT_EQ(resolved.effective.name(), "a2a+a2a");
  EXPECT_EQ(resolved.effective.a2a_size(), 4);
  EXPECT_THAT(resolved.notes, ElementsAre("a2a with sizes 2,2 is a2a+a2a"));
}

TEST(ResolveScheme, LevelsOfSizeOneVanishAndTheNoteSaysWhy) {
  const ResolvedScheme one_node = resolve_scheme({p2p, a2a}, 4, {}, CpNodes{.ranks_per_node = 4, .nodes = 1});
  EXPECT_THAT(one_node.effective.levels, ElementsAre(Level{p2p, 4}));
  EXPECT_THAT(one_node.requested.levels, ElementsAre(Level{p2p, 4}, Level{a2a, 1}));
  EXPECT_THAT(one_node.notes, ElementsAre("p2p+a2a runs as p2p: one node"));

  const ResolvedScheme spread = resolve_scheme({p2p, a2a}, 4, {}, CpNodes{.ranks_per_node = 1, .nodes = 4});
  EXPECT_THAT(spread.effective.levels, ElementsAre(Level{a2a, 4}));
  EXPECT_THAT(spread.notes, ElementsAre("p2p+a2a runs as a2a: one context-parallel rank per node"));

  const ResolvedScheme given = resolve_scheme({a2a, p2p, p2p}, 6, {3, 1, 2}, std::nullopt);
  EXPECT_THAT(given.effective.levels, ElementsAre(Level{a2a, 3}, Level{p2p, 2}));
  EXPECT_THAT(given.notes, ElementsAre("a2a+p2p+p2p runs as a2a+p2p: sizes 3,1,2"));
}

TEST(ResolveScheme, OneRankHasNoLevel) {
  const ResolvedScheme resolved = resolve_scheme({p2p, a2a}, 1, {}, CpNodes{});
  EXPECT_THAT(resolved.effective.levels, IsEmpty());
  EXPECT_EQ(resolved.effective.name(), "none");
  EXPECT_EQ(resolved.effective.sizes(), "1");
  EXPECT_EQ(resolved.effective.size(), 1);
  EXPECT_THAT(resolved.notes, ElementsAre("p2p+a2a exchanges nothing: one rank"));
}

TEST(ResolveScheme, RefusesProductsThatAreNotTheGroup) {
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 2, {2, 4}, std::nullopt);
              }),
              AllOf(HasSubstr("sizes 2,4"), HasSubstr("product of the sizes is 8"), HasSubstr("size is 2")));
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 8, {2, 2}, std::nullopt);
              }),
              AllOf(HasSubstr("is 4"), HasSubstr("size is 8")));
  // 65536 * 65536 wraps to 0 and 65537 * 65536 to 65536 in 32 bits.
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 65536, {65537, 65536}, std::nullopt);
              }),
              HasSubstr("more than 2147483647"));
}

TEST(ResolveScheme, RefusesSizesThatAreNoRanks) {
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 4, {0, 4}, std::nullopt);
              }),
              AllOf(HasSubstr("size 0"), HasSubstr("at least 1")));
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 4, {-2, -2}, std::nullopt);
              }),
              HasSubstr("size -2"));
}

TEST(ResolveScheme, RefusesJoinedNamesWithAnotherNumberOfSizes) {
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 8, {2, 2, 2}, std::nullopt);
              }),
              AllOf(HasSubstr("p2p+a2a has 2 levels"), HasSubstr("2,2,2 has 3 sizes")));
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 4, {4}, std::nullopt);
              }),
              HasSubstr("has 1 size;"));
}

TEST(ResolveScheme, RefusesThreeNamesWithoutSizes) {
  EXPECT_THAT(
      refusal([] {
        (void)resolve_scheme({a2a, p2p, p2p}, 8, {}, CpNodes{4, 2});
      }),
      AllOf(HasSubstr("a2a+p2p+p2p has 3 levels"), HasSubstr("--hierarchical-context-parallel-sizes")));
}

TEST(ResolveScheme, RefusesNodesThatDoNotHoldTheGroup) {
  EXPECT_THAT(refusal([] { (void)resolve_scheme({p2p, a2a}, 6, {}, CpNodes{2, 2}); }), HasSubstr("size 6"));
  EXPECT_THAT(refusal([] {
                (void)resolve_scheme({p2p, a2a}, 6, {}, std::nullopt);
              }),
              HasSubstr("every node"));
}

TEST(CheckQueryHeads, OnlyTheHeadSwapNeedsHeads) {
  EXPECT_NO_THROW(check_query_heads(Scheme{{{p2p, 8}, {a2a, 4}}}, 4));
  EXPECT_THAT(refusal([] {
                check_query_heads(Scheme{{{a2a, 2}, {p2p, 3}, {a2a, 4}}}, 7);
              }),
              AllOf(HasSubstr("over 8 ranks"), HasSubstr("only 7 query heads")));
}

TEST(NearestName, IsTheSmallestEditDistanceOrNothing) {
  const std::vector<std::string> names{"seq-length", "seed", "warmup"};
  EXPECT_EQ(nearest_name("seq-lenght", names), "seq-length");
  EXPECT_EQ(nearest_name("sed", names), "seed");
  EXPECT_EQ(nearest_name("optimizer", names), "");
}

}  // namespace
}  // namespace hcp
