/// What of the trace needs no reader: text columns, JSON, and refusals. The files themselves are read by
/// trace_reading_test.py.
#include "src/trace/trace_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace hcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// A path in a directory of its own that is removed with everything in it.
class TraceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "hcp_trace_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST(FixedString, HoldsTextUpToItsCapacity) {
  EXPECT_EQ(FixedString<4>{"abcd"}.view(), "abcd");
  EXPECT_EQ(FixedString<4>{""}.view(), "");
  EXPECT_THAT([] { FixedString<4>{"abcde"}; },
              ThrowsMessage<std::invalid_argument>(HasSubstr("5 bytes does not fit the 4 bytes")));
}

TEST(FixedString, TruncatesBetweenCharacters) {
  EXPECT_EQ(FixedString<8>::truncated("12345678").view(), "12345678");
  EXPECT_EQ(FixedString<8>::truncated("123456789").view(), "12345...");
  EXPECT_EQ(FixedString<8>::truncated("1234\u00e9789").view(), "1234...");  // é is bytes 4 and 5
}

TEST(Json, EscapesWhatJsonWantsEscaped) {
  EXPECT_EQ(to_json({}), "{}");
  EXPECT_EQ(to_json({{"a", "1"}, {"b", ""}}), R"({"a":"1","b":""})");
  EXPECT_EQ(to_json({{"q\"", "back\\slash\nline\ttab\x01"}}), R"({"q\"":"back\\slash\nline\ttab\u0001"})");
}

TEST_F(TraceFileTest, NeverOverwrites) {
  const auto path = directory_ / "run.h5";
  std::ofstream{path} << "precious";
  EXPECT_THAT([&] { const auto trace = TraceFile::create(path, {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("exists and is never overwritten")));
  std::string content;
  std::ifstream{path} >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(TraceFileTest, WantsAnExistingDirectory) {
  EXPECT_THAT([&] { const auto trace = TraceFile::create(directory_ / "missing" / "run.h5", {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("does not exist; create it first")));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "missing"));
}

TEST_F(TraceFileTest, RewritesOnlyRanksThatExist) {
  auto trace = TraceFile::create(directory_ / "run.h5", {});
  trace.append(std::vector<RankRow>(2));
  trace.rewrite(std::vector<RankRow>(2));
  EXPECT_THAT([&] { trace.rewrite(std::vector<RankRow>(3)); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("3 rows to rewrite in /ranks")));
}

TEST_F(TraceFileTest, TakesNoRowsAtAll) {
  auto trace = TraceFile::create(directory_ / "run.h5", {{"empty", ""}});
  trace.append(std::vector<EventRow>{});
  trace.flush();
  EXPECT_EQ(trace.path(), directory_ / "run.h5");
}

}  // namespace
}  // namespace hcp
