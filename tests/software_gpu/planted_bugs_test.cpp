/// Bugs planted in a program that is right otherwise: each is found in every schedule.
#include "tests/software_gpu/planted_bugs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/software_gpu/exchange_case.hpp"

namespace hcp::software_gpu {
namespace {

struct Plantable {
  Bug bug;
  std::vector<int> calls;  ///< of the small program, those that may not have it
};

const std::vector<Plantable> plantable{
    {Bug::skip_wait_on_compute, {1, 2}},
    {Bug::skip_wait_on_transport, {1, 2}},
    {Bug::early_record, {1, 2, 3, 5, 6}},  // the second upload is the last: nobody waits for its event
    {Bug::wrong_stream, {1, 2, 3, 4, 5, 6}},
    {Bug::skip_synchronise, {1}},
    {Bug::early_query, {1}},
    {Bug::lost_fill, {1, 2}},
    {Bug::lost_copy, {1, 2, 3, 4, 5, 6}},
};

using Parameter = std::tuple<Plantable, unsigned>;

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  return name_of(std::get<0>(info.param).bug) + "_" + std::to_string(std::get<1>(info.param));
}

class PlantedBug : public testing::TestWithParam<Parameter> {};

INSTANTIATE_TEST_SUITE_P(Schedules, PlantedBug,
                         testing::Combine(testing::ValuesIn(plantable), testing::Range(1U, 9U)),
                         name_of_case);

TEST_P(PlantedBug, IsFoundWhicheverCallHasIt) {
  const auto& [planted, schedule] = GetParam();
  for (const int nth : planted.calls) {
    plant(planted.bug, nth);
    const ExchangeOutcome outcome = exchange_under(schedule);
    EXPECT_TRUE(uproot()) << "no call " << nth;
    EXPECT_TRUE(!outcome.right || !outcome.findings.empty()) << "in call " << nth;
  }
}

TEST(PlantedBugs, OneCallHasTheBug) {
  plant(Bug::lost_copy, 7);  // one more than there are
  EXPECT_TRUE(exchange_under(1).right);
  EXPECT_FALSE(uproot());
}

TEST(PlantedBugs, HaveNames) {
  for (const Plantable& planted : plantable) {
    EXPECT_EQ(bug_from(name_of(planted.bug)), planted.bug);
  }
  EXPECT_THROW(static_cast<void>(bug_from("no_such_bug")), std::invalid_argument);
}

}  // namespace
}  // namespace hcp::software_gpu
