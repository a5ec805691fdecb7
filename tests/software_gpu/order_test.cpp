/// Deferred streams: programs that are right stay so in every schedule, and what is missing is found in every
/// one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/software_gpu/exchange_case.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class EverySchedule : public testing::TestWithParam<unsigned> {
 protected:
  static void expect_found(const ExchangeSteps& steps, const std::string& words) {
    EXPECT_THAT(exchange_under(GetParam(), steps).findings, Contains(HasSubstr(words)));
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, EverySchedule, testing::Range(1U, 9U));

TEST_P(EverySchedule, LeavesARightProgramRight) {
  const ExchangeOutcome outcome = exchange_under(GetParam());
  EXPECT_TRUE(outcome.right);
  EXPECT_THAT(outcome.findings, IsEmpty());
}

TEST_P(EverySchedule, FindsATransportThatDoesNotWait) {
  expect_found({.transport_waits_for_compute = false}, "is not ordered after");
}

TEST_P(EverySchedule, FindsAKernelThatDoesNotWait) {
  expect_found({.compute_waits_for_transport = false}, "is not ordered after");
}

TEST_P(EverySchedule, FindsAResultReadTooEarly) {
  EXPECT_FALSE(exchange_under(GetParam(), {.host_waits_before_reading = false}).right);
}

TEST_P(EverySchedule, FindsAnUploadBufferUsedAgainTooEarly) {
  expect_found({.host_waits_before_uploading_again = false},
               "the source of 'cudaMemcpyAsync of 128 bytes to the device' has changed");
}

}  // namespace
}  // namespace hcp::software_gpu
