#include "src/job/run_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace hcp {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// The options column of a job over `documents` documents of one token more than the one before.
std::string options_of(std::int64_t documents) {
  JobConfig config;
  config.num_attention_heads = config.num_query_groups = 2;
  config.kv_channels = config.v_channels = 16;
  config.doc_lengths.resize(static_cast<std::size_t>(documents));
  std::iota(config.doc_lengths.begin(), config.doc_lengths.end(), 1);
  config.seq_length = documents * (documents + 1) / 2;
  config.cp_comm_type = {{Algorithm::p2p}};
  const NodeLayout layout = simulated_layout(1, 1);
  const JobPlan plan{config, shape_from_options(config), layout, {.tp = 1, .cp = 1, .dp = 1, .pp = 1}};
  return std::string{cell_row(config, plan, 0).options.view()};
}

TEST(CellRow, ShortListsAreWhole) {
  EXPECT_THAT(options_of(3), HasSubstr(R"("doc-lengths":"1,2,3")"));
  EXPECT_THAT(options_of(64), AllOf(HasSubstr(R"(,62,63,64")"), Not(HasSubstr("values"))));
}

TEST(CellRow, LongListsAreShortened) {
  EXPECT_THAT(options_of(65), HasSubstr(",62,63,64,… (65 values)\""));
  EXPECT_THAT(options_of(10000), AllOf(HasSubstr(R"("doc-lengths":"1,2,)"),
                                       HasSubstr(",63,64,… (10000 values)\""), EndsWith("}")));
}

}  // namespace
}  // namespace hcp
