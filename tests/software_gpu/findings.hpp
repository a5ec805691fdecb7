/// What tests on the software GPU leave behind turns them red.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

namespace hcp::software_gpu {

/// A test fails that leaves findings.
class NoFindings : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override;
};

/// Prints findings and objects that are left after the last test. @return how many
[[nodiscard]] std::size_t print_what_is_left();

}  // namespace hcp::software_gpu
