// The options of masks: who needs and who refuses them, and which keys every query then sees, by hand.

#include "src/job/mask_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "src/job/command_line.hpp"
#include "src/job/config_validation.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

/// Two documents of 3 and 5 tokens, 2 rows, and `words`.
JobConfig config_of(const Words& words) {
  Words all{"run",
            "--seq-length=8",
            "--doc-lengths=3,5",
            "--micro-batch-size=2",
            "--num-attention-heads=2",
            "--kv-channels=16"};
  all.insert(all.end(), words.begin(), words.end());
  return parse_job_config(all);
}

std::string refusal(const Words& words) {
  try {
    const JobConfig config = config_of(words);
    validate(config, 4);
    static_cast<void>(mask_of(config, shape_from_options(config)));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// One line per query, 'x' where it sees a key.
std::vector<std::string> drawn(const JobConfig& config) {
  const ProblemShape shape = shape_from_options(config);
  const AttentionMask mask = mask_of(config, shape);
  std::vector<std::string> lines;
  for (std::int64_t query = 0; query < shape.tokens(); ++query) {
    std::string line(static_cast<std::size_t>(shape.kv_tokens()), '.');
    for (const PositionRange range : mask.visible(query)) {
      for (std::int64_t key = range.begin; key < range.end; ++key) {
        line.at(static_cast<std::size_t>(key)) = 'x';
      }
    }
    lines.push_back(line);
  }
  return lines;
}

/// The drawing of two rows that see only themselves.
std::vector<std::string> two_rows(const std::vector<std::string>& of_row) {
  const std::string nothing(of_row.front().size(), '.');
  std::vector<std::string> lines;
  for (const std::string& line : of_row) {
    lines.push_back(line + nothing);
  }
  for (const std::string& line : of_row) {
    lines.push_back(nothing + line);
  }
  return lines;
}

void expect_mask(const Words& words, const std::vector<std::string>& of_row) {
  const JobConfig config = config_of(words);
  ASSERT_NO_THROW(validate(config, 4));
  EXPECT_EQ(drawn(config), two_rows(of_row)) << testing::PrintToString(words);
}

TEST(MaskOf, DocumentsAndCausalOrder) {
  expect_mask(
      {}, {"xxx.....", "xxx.....", "xxx.....", "...xxxxx", "...xxxxx", "...xxxxx", "...xxxxx", "...xxxxx"});
  expect_mask({"--attention-mask-type=causal"}, {"x.......", "xx......", "xxx.....", "...x....", "...xx...",
                                                 "...xxx..", "...xxxx.", "...xxxxx"});
  const std::vector<std::string> window_of_two{"x.......", "xx......", ".xx.....", "...x....",
                                               "...xx...", "....xx..", ".....xx.", "......xx"};
  expect_mask({"--attention-mask-type=causal", "--window-size=1,0"}, window_of_two);
  expect_mask({"--attention-mask-type=causal", "--window-size=1,-1"}, window_of_two);
}

TEST(MaskOf, SlidingWindows) {
  expect_mask(
      {"--attention-mask-type=sliding_window", "--window-size=0,1"},
      {"xx......", ".xx.....", "..x.....", "...xx...", "....xx..", ".....xx.", "......xx", ".......x"});
  expect_mask(
      {"--attention-mask-type=sliding_window", "--window-size=-1,1"},
      {"xx......", "xxx.....", "xxx.....", "...xx...", "...xxx..", "...xxxx.", "...xxxxx", "...xxxxx"});
}

TEST(MaskOf, Padding) {
  expect_mask(
      {"--attention-mask-type=padding", "--doc-valid-lengths=2,3"},
      {"xx......", "xx......", "........", "...xxx..", "...xxx..", "...xxx..", "........", "........"});
  expect_mask(
      {"--attention-mask-type=padding_causal", "--doc-valid-lengths=3,0"},
      {"x.......", "xx......", "xxx.....", "........", "........", "........", "........", "........"});
}

TEST(MaskOf, PrefixesAndBlocks) {
  expect_mask(
      {"--attention-mask-type=prefix_lm", "--prefix-lengths=0,2"},
      {"x.......", "xx......", "xxx.....", "...xx...", "...xx...", "...xxx..", "...xxxx.", "...xxxxx"});
  expect_mask(
      {"--attention-mask-type=block_causal", "--mask-block-size=2"},
      {"xx......", "xx......", "xxx.....", "...xx...", "...xx...", "...xxxx.", "...xxxx.", "...xxxxx"});
}

TEST(MaskOf, BlockDiffusion) {  // two tokens, and three in blocks of two; noised, then clean
  const JobConfig config =
      parse_job_config({"run", "--seq-length=10", "--doc-lengths=4,6", "--num-attention-heads=2",
                        "--kv-channels=16", "--attention-mask-type=block_diffusion", "--mask-block-size=2"});
  ASSERT_NO_THROW(validate(config, 4));
  EXPECT_EQ(drawn(config),
            (std::vector<std::string>{"xx........", "xx........", "..xx......", "..xx......", "....xx....",
                                      "....xx....", "......xxx.", ".......xx.", ".......xx.", ".......xxx"}));
}

TEST(MaskOf, KeysOfOtherTokens) {
  const Words keys{"--kv-seq-length=5", "--kv-doc-lengths=4,1"};
  const auto with = [&](Words words) {
    words.insert(words.end(), keys.begin(), keys.end());
    return words;
  };
  expect_mask(with({}), {"xxxx.", "xxxx.", "xxxx.", "....x", "....x", "....x", "....x", "....x"});
  expect_mask(with({"--attention-mask-type=causal"}),
              {"x....", "xx...", "xxx..", "....x", "....x", "....x", "....x", "....x"});
  expect_mask(with({"--attention-mask-type=causal_bottom_right"}),
              {"xx...", "xxx..", "xxxx.", ".....", ".....", ".....", ".....", "....x"});
  expect_mask(with({"--attention-mask-type=causal_bottom_right", "--window-size=1,0"}),
              {"xx...", ".xx..", "..xx.", ".....", ".....", ".....", ".....", "....x"});
  expect_mask(with({"--attention-mask-type=sliding_window", "--window-size=0,1"}),
              {"xx...", ".xx..", "..xx.", "....x", ".....", ".....", ".....", "....."});
}

TEST(CheckMaskOptions, NeededOnesAreNamed) {
  for (const auto& [mask, option] : {std::pair{"sliding_window", "--window-size LEFT,RIGHT"},
                                     {"padding", "--doc-valid-lengths N,N,..."},
                                     {"padding_causal", "--doc-valid-lengths N,N,..."},
                                     {"prefix_lm", "--prefix-lengths N,N,..."},
                                     {"block_causal", "--mask-block-size N"},
                                     {"block_diffusion", "--mask-block-size N"},
                                     {"intervals", "--mask-file FILE"}}) {
    EXPECT_EQ(refusal({"--attention-mask-type", mask}),
              std::string{"--attention-mask-type "} + mask + " needs " + option);
  }
}

TEST(CheckMaskOptions, OthersAreRefused) {
  const std::vector<std::pair<Words, std::string>> options{
      {{"--window-size", "3,0"}, "sliding_window,causal,causal_bottom_right"},
      {{"--doc-valid-lengths", "3,5"}, "padding,padding_causal"},
      {{"--prefix-lengths", "1,1"}, "prefix_lm"},
      {{"--mask-block-size", "4"}, "block_causal,block_diffusion"},
      {{"--mask-file", "mask.h5"}, "intervals"}};
  for (const auto& [words, masks] : options) {
    EXPECT_EQ(refusal(words),
              words[0] + " " + words[1] +
                  " does not belong to --attention-mask-type no_mask; leave it out, or take " + masks);
  }
  EXPECT_THAT(refusal({"--attention-mask-type=prefix_lm", "--prefix-lengths=1,1", "--mask-block-size=4"}),
              HasSubstr("--mask-block-size 4 does not belong to --attention-mask-type prefix_lm"));
}

TEST(CheckMaskOptions, CausalWindowsEndAtTheQuery) {
  for (const std::string mask : {"causal", "causal_bottom_right"}) {
    EXPECT_THAT(
        refusal({"--attention-mask-type", mask, "--window-size", "3,2"}),
        AllOf(HasSubstr("--attention-mask-type " + mask + ": window 3,2"), HasSubstr("must be 0 or -1")));
  }
}

TEST(CheckMaskShape, OneValuePerDocument) {
  EXPECT_EQ(refusal({"--attention-mask-type=padding", "--doc-valid-lengths=3"}),
            "--doc-valid-lengths has 1 values, but a row has 2 documents; give one for each");
  EXPECT_EQ(refusal({"--attention-mask-type=prefix_lm", "--prefix-lengths=1,1,1"}),
            "--prefix-lengths has 3 values, but a row has 2 documents; give one for each");
}

TEST(CheckMaskShape, MasksOfTokensWithThemselves) {
  for (const Words& words : {Words{"--attention-mask-type=padding", "--doc-valid-lengths=1,1"},
                             {"--attention-mask-type=padding_causal", "--doc-valid-lengths=1,1"},
                             {"--attention-mask-type=prefix_lm", "--prefix-lengths=1,1"},
                             {"--attention-mask-type=block_causal", "--mask-block-size=2"},
                             {"--attention-mask-type=block_diffusion", "--mask-block-size=2"}}) {
    Words with_keys{words};
    with_keys.insert(with_keys.end(), {"--kv-seq-length=9", "--kv-doc-lengths=4,5"});
    EXPECT_THAT(
        refusal(with_keys),
        AllOf(HasSubstr(words.front().substr(words.front().find('=') + 1) + " is of tokens with themselves"),
              HasSubstr("--kv-seq-length 9, --seq-length 8"), HasSubstr("sliding_window,intervals")));
  }
}

TEST(MaskOf, ValuesThatDoNotFitTheirDocuments) {
  EXPECT_THAT(refusal({"--attention-mask-type=padding", "--doc-valid-lengths=3,6"}),
              AllOf(HasSubstr("--attention-mask-type padding: "), HasSubstr("length 6 of document 1"),
                    HasSubstr("5")));
  EXPECT_THAT(refusal({"--attention-mask-type=prefix_lm", "--prefix-lengths=4,5"}),
              HasSubstr("length 4 of document 0"));
  EXPECT_THAT(refusal({"--attention-mask-type=block_diffusion", "--mask-block-size=2"}), HasSubstr("even"));
}

TEST(ShapeFromOptions, DocumentsOfKeys) {
  EXPECT_THAT(refusal({"--kv-seq-length=9"}), AllOf(HasSubstr("--kv-doc-lengths is missing"),
                                                    HasSubstr("9 keys for 8 queries in 2 documents")));
  EXPECT_EQ(refusal({"--kv-seq-length=9", "--kv-doc-lengths=4,4"}),
            "--kv-doc-lengths sum to 8, but --kv-seq-length is 9; they have to be equal");
  EXPECT_THAT(refusal({"--kv-doc-lengths=4,3"}), HasSubstr("--kv-seq-length is 8"));
  EXPECT_THAT(refusal({"--kv-seq-length=9", "--kv-doc-lengths=4,4,1"}),
              HasSubstr("--kv-doc-lengths are of 3 documents, but --doc-lengths of 2"));
  EXPECT_THAT(refusal({"--kv-seq-length=4611686018427387904", "--kv-doc-lengths=4611686018427387904,0"}),
              HasSubstr("do not fit in 64 bits"));

  const ProblemShape shape = shape_from_options(config_of({"--kv-seq-length=9", "--kv-doc-lengths=9,0"}));
  EXPECT_THAT(shape.kv_document_offsets(), testing::ElementsAre(0, 9, 9, 18, 18));
  EXPECT_EQ(shape.kv_tokens(), 18);
  EXPECT_EQ(shape_from_options(config_of({})).kv_doc_lengths, (std::vector<std::int64_t>{3, 5}));
  JobConfig one_document = config_of({"--kv-seq-length=9"});
  one_document.doc_lengths.clear();
  EXPECT_EQ(shape_from_options(one_document).kv_doc_lengths, (std::vector<std::int64_t>{9}));
}

TEST(SetShape, TellsKeysWhereTheyAreOthers) {
  JobConfig config = config_of({"--kv-seq-length=9", "--kv-doc-lengths=9,0", "--softmax-scale=0.3"});
  const ProblemShape shape = shape_from_options(config);
  EXPECT_EQ(shape.softmax_scale(), 0.3F);
  config.kv_seq_length.reset();
  config.kv_doc_lengths.clear();
  set_shape(config, shape);
  EXPECT_EQ(shape_from_options(config), shape);

  JobConfig same = config_of({"--kv-seq-length=8", "--kv-doc-lengths=3,5"});
  set_shape(same, shape_from_options(same));
  EXPECT_FALSE(same.kv_seq_length.has_value());
  EXPECT_TRUE(same.kv_doc_lengths.empty());
}

TEST(DescribeMask, TellsTheParameters) {
  EXPECT_EQ(describe_mask(config_of({})), "no_mask");
  EXPECT_EQ(describe_mask(config_of({"--attention-mask-type=sliding_window", "--window-size=-1,4"})),
            "sliding_window, window-size -1,4");
  EXPECT_EQ(
      describe_mask(config_of({"--attention-mask-type=prefix_lm", "--prefix-lengths=0,1,2,3,4,5,6,7,8"})),
      "prefix_lm, prefix-lengths 0,1,2,3,4,5,6,7,… (9 values)");
}

class MaskFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::vector<std::int64_t>& values, std::vector<hsize_t> extents,
             const char* name = "intervals", hid_t stored = H5T_STD_I32LE) {
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
  }

  [[nodiscard]] Words words(const Words& more = {}) const {
    Words all{"--attention-mask-type=intervals", "--mask-file=" + path_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Four numbers for each of the 8 queries of a row: query i sees key i, and the last `behind` keys.
  static std::vector<std::int64_t> self_and(std::int64_t behind, std::int64_t queries) {
    std::vector<std::int64_t> bounds;
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t end = i / 8 * 8 + 8;
      bounds.insert(bounds.end(), {i, i + 1, std::max(end - behind, i + 1), std::max(end, i + 1)});
    }
    return bounds;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("hcp_mask_options_test_" + std::to_string(getpid()) + ".h5"))
          .string();
  const std::vector<std::string> self_and_last_{"x......x", ".x.....x", "..x....x", "...x...x",
                                                "....x..x", ".....x.x", "......xx", ".......x"};
};

TEST_F(MaskFile, OfOneRowHoldsForEveryRow) {
  write(self_and(1, 8), {8, 4});
  expect_mask(words(), self_and_last_);
}

TEST_F(MaskFile, OfAllRowsHasGlobalKeys) {
  write(self_and(1, 16), {16, 4}, "intervals", H5T_STD_I64BE);
  expect_mask(words(), self_and_last_);
}

TEST_F(MaskFile, KeysMayBeOtherTokens) {
  std::vector<std::int64_t> bounds(32, 0);
  bounds[4 * 3 + 2] = 1;
  bounds[4 * 3 + 3] = 3;
  write(bounds, {8, 4});
  expect_mask(words({"--kv-seq-length=3", "--kv-doc-lengths=0,3"}),
              {"...", "...", "...", ".xx", "...", "...", "...", "..."});
}

TEST_F(MaskFile, BadOnesAreRefused) {
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr(path_), HasSubstr("there is no such file")));
  write(self_and(1, 8), {8, 4}, "mask");
  EXPECT_THAT(refusal(words()), HasSubstr("there is no dataset intervals"));
  write(self_and(1, 8), {32});
  EXPECT_THAT(refusal(words()), HasSubstr("has the shape [32]; it has to be [query rows, 4]"));
  write(self_and(1, 8), {16, 2});
  EXPECT_THAT(refusal(words()), HasSubstr("has 2 numbers per query; 4 are needed"));
  write(self_and(1, 9), {9, 4});
  EXPECT_THAT(refusal(words()), HasSubstr("is of 9 queries; a row has 8, or 16 of all rows"));
  write(self_and(1, 8), {8, 4}, "intervals", H5T_IEEE_F32LE);
  EXPECT_THAT(refusal(words()), HasSubstr("use integers"));

  std::vector<std::int64_t> bounds = self_and(1, 8);
  bounds[4 * 5 + 3] = 9;  // the first key of the next row
  write(bounds, {8, 4});
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("query row 5"), HasSubstr("[7, 9)"), HasSubstr("8")));
  bounds[4 * 5 + 3] = 8;
  bounds[4 * 5 + 2] = 5;
  write(bounds, {8, 4});
  EXPECT_THAT(refusal(words()), AllOf(HasSubstr("query row 5"), HasSubstr("overlap")));
}

}  // namespace
}  // namespace hcp
