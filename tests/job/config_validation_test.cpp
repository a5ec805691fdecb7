#include "src/job/config_validation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>

#include "src/job/command_line.hpp"
#include "src/job/problem_shape.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// 64 tokens, 8:2 heads, 16 channels, and `words`.
JobConfig small_config(const std::vector<std::string>& words = {}) {
  std::vector<std::string> all{"run"};
  all.insert(all.end(), words.begin(), words.end());
  JobConfig config = parse_job_config(all);
  config.seq_length = config.seq_length.value_or(64);
  config.num_attention_heads = config.num_attention_heads.value_or(8);
  config.num_query_groups = config.num_query_groups.value_or(2);
  config.kv_channels = config.kv_channels.value_or(16);
  return config;
}

std::string refusal_on(int world_size, const std::vector<std::string>& words) {
  return refusal([&] { validate(small_config(words), world_size); });
}

TEST(GridSizes, ContextParallelSizeIsWhatTensorAndPipelineLeave) {
  EXPECT_EQ(grid_sizes(small_config(), 6), (GridSizes{.tp = 1, .cp = 6, .dp = 1, .pp = 1}));
  EXPECT_EQ(
      grid_sizes(small_config({"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"}),
                 12),
      (GridSizes{.tp = 2, .cp = 3, .dp = 1, .pp = 2}));
  EXPECT_EQ(
      grid_sizes(small_config({"--context-parallel-size", "2", "--tensor-model-parallel-size", "2"}), 12),
      (GridSizes{.tp = 2, .cp = 2, .dp = 3, .pp = 1}));
}

TEST(GridSizes, RanksMustMakeAWholeGrid) {
  EXPECT_THAT(refusal_on(6, {"--context-parallel-size", "4"}),
              AllOf(HasSubstr("6 ranks"), HasSubstr("1 x 4 x 1 = 4")));
  EXPECT_THAT(refusal_on(1, {"--context-parallel-size", "4", "--tensor-model-parallel-size", "4"}),
              HasSubstr("4 x 4 x 1 = 16"));
  EXPECT_THAT(refusal_on(6, {"--tensor-model-parallel-size", "4"}),
              AllOf(HasSubstr("6 ranks"), HasSubstr("4 x 1")));
  EXPECT_THAT(
      refusal_on(4, {"--tensor-model-parallel-size", "65536", "--pipeline-model-parallel-size", "65536"}),
      HasSubstr("more than 2147483647 ranks"));
}

TEST(PlannedWorldSize, NeedsTheContextParallelSize) {
  EXPECT_EQ(
      planned_world_size(small_config({"--context-parallel-size", "8", "--tensor-model-parallel-size", "2"})),
      16);
  EXPECT_THAT(refusal([] { (void)planned_world_size(small_config()); }),
              HasSubstr("--context-parallel-size"));
}

TEST(Validate, AcceptsWhatOthersRefuse) {
  EXPECT_NO_THROW(validate(small_config(), 1));
  // No multiple of 2 cp, an odd length, a document without tokens, heads that an a2a level does not divide.
  EXPECT_NO_THROW(validate(small_config({"--seq-length", "11", "--doc-lengths", "7,0,4"}), 4));
  EXPECT_NO_THROW(validate(
      small_config({"--cp-comm-type", "a2a", "--num-attention-heads", "28", "--num-query-groups", "7"}), 8));
  EXPECT_NO_THROW(validate(small_config({"--cp-comm-type", "a2a+p2p"}), 4));
  EXPECT_NO_THROW(validate(small_config({"--cp-comm-type", "p2p,a2a,p2p+a2a", "--num-layers", "3",
                                         "--hierarchical-context-parallel-sizes", "2,2"}),
                           4));
  EXPECT_NO_THROW(validate(small_config({"--attention-kernel", "reference"}), 1));
  EXPECT_NO_THROW(
      validate(small_config({"--attention-kernel", "reference", "--context-parallel-size", "1"}), 4));
}

TEST(Validate, SchemesMustFitRanksAndLayers) {
  EXPECT_THAT(refusal_on(2, {"--hierarchical-context-parallel-sizes", "2,4"}),
              AllOf(HasSubstr("the product of the sizes is 8"), HasSubstr("context-parallel size is 2")));
  EXPECT_THAT(refusal_on(4, {"--cp-comm-type", "p2p,a2a", "--num-layers", "3"}),
              AllOf(HasSubstr("2 schemes"), HasSubstr("--num-layers is 3")));
  EXPECT_THAT(refusal_on(1, {"--cp-comm-type", "p2p,a2a"}), HasSubstr("--num-layers is 1"));
  EXPECT_THAT(refusal_on(8, {"--hierarchical-context-parallel-sizes", "2,2,2"}),
              AllOf(HasSubstr("p2p+a2a has 2 levels"), HasSubstr("3 sizes")));
  EXPECT_THAT(refusal_on(8, {"--cp-comm-type", "a2a+p2p+p2p"}), HasSubstr("3 levels"));
  EXPECT_THAT(refusal_on(4, {"--cp-comm-type", "p2p,a2a+p2p+p2p", "--num-layers", "2",
                             "--hierarchical-context-parallel-sizes", "2,2"}),
              HasSubstr("a2a+p2p+p2p has 3 levels"));
}

TEST(Validate, HeadSwapsNeedAQueryHeadPerRank) {
  EXPECT_THAT(refusal_on(16, {"--cp-comm-type", "a2a"}),
              AllOf(HasSubstr("over 16 ranks"), HasSubstr("8 query heads")));
  EXPECT_THAT(refusal_on(16, {"--cp-comm-type", "a2a", "--tensor-model-parallel-size", "2"}),
              AllOf(HasSubstr("over 8 ranks"), HasSubstr("only 4 query heads")));
  EXPECT_THAT(refusal_on(32, {"--hierarchical-context-parallel-sizes", "2,16"}), HasSubstr("over 16 ranks"));
}

TEST(Validate, TheReferenceKnowsNoContextParallelism) {
  EXPECT_THAT(refusal_on(2, {"--attention-kernel", "reference"}),
              AllOf(HasSubstr("knows no context parallelism"), HasSubstr("size is 2")));
}

TEST(Validate, StripesNeedTheStripedPartition) {
  EXPECT_EQ(refusal_on(4, {"--cp-partition", "striped", "--stripe-size", "5"}), "nothing was refused");
  EXPECT_EQ(refusal_on(4, {"--cp-partition", "balanced", "--stripe-size", "5"}),
            "--stripe-size 5 means nothing with --cp-partition balanced; leave it out, or use --cp-partition "
            "striped");
  EXPECT_THAT(refusal_on(4, {"--stripe-size", "1"}), HasSubstr("--cp-partition zigzag"));
}

TEST(Validate, MeasurementsThatExcludeEachOther) {
  EXPECT_THAT(refusal_on(1, {"--comm-only", "--compute-only"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refusal_on(1, {"--comm-only", "--verify", "full"}), HasSubstr("--verify full"));
  EXPECT_NO_THROW(validate(small_config({"--comm-only", "--verify", "off"}), 1));
  EXPECT_NO_THROW(validate(small_config({"--compute-only"}), 1));
  EXPECT_THAT(refusal_on(1, {"--compute-only", "--return-max-logit"}),
              HasSubstr("--return-max-logit needs the whole job, but --compute-only"));
  EXPECT_THAT(refusal_on(1, {"--qkv", "x.h5", "--micro-batch-size", "2"}), HasSubstr("--micro-batch-size 2"));
}

TEST(Validate, ATransportMovesTheMemoryThatIsComputedIn) {
  for (const std::string transport : {"nccl", "staged"}) {
    for (const std::vector<std::string>& host : {std::vector<std::string>{"--backend", "cpu"},
                                                 {"--attention-kernel", "cpu"},
                                                 {"--attention-kernel", "reference"}}) {
      EXPECT_THAT(refusal_on(1, {"--transport", transport, host[0], host[1]}),
                  AllOf(HasSubstr("--transport " + transport + " moves the memory of devices"),
                        HasSubstr("with " + host[0] + " " + host[1] + " tensors lie in that of hosts")));
    }
    EXPECT_NO_THROW(validate(small_config({"--transport", transport, "--backend", "cuda"}), 2));
    EXPECT_NO_THROW(validate(small_config({"--transport", transport}), 2));
  }
  for (const std::string option : {"--backend", "--attention-kernel"}) {
    EXPECT_THAT(refusal_on(1, {"--transport", "mpi", option, "cuda"}),
                AllOf(HasSubstr("--transport mpi moves the memory of hosts"),
                      HasSubstr("with " + option + " cuda tensors lie in that of devices")));
  }
  EXPECT_NO_THROW(validate(small_config({"--transport", "mpi", "--backend", "cpu"}), 2));
}

TEST(Validate, OnlyNcclSerializesLevels) {
  for (const std::string transport : {"auto", "mpi", "staged"}) {
    EXPECT_THAT(refusal_on(2, {"--serialize-levels", "--transport", transport}),
                AllOf(HasSubstr("--serialize-levels is about NCCL, but --transport is " + transport + ";")));
  }
  EXPECT_NO_THROW(validate(small_config({"--serialize-levels", "--transport", "nccl"}), 2));
}

TEST(Validate, SizesThatAreMissingAreAllNamed) {
  const std::string message = refusal([] { validate(parse_job_config({"run", "--seq-length", "8"}), 1); });
  EXPECT_THAT(message, AllOf(HasSubstr("--num-attention-heads, --kv-channels"), HasSubstr("--qkv")));
  EXPECT_NO_THROW(validate(parse_job_config({"run", "--qkv", "x.h5"}), 1));
}

TEST(Validate, HeadsMustDivide) {
  EXPECT_THAT(refusal_on(1, {"--num-query-groups", "3"}),
              HasSubstr("--num-attention-heads 8 is not a multiple of --num-query-groups 3"));
  EXPECT_THAT(refusal_on(3, {"--tensor-model-parallel-size", "3"}),
              HasSubstr("--tensor-model-parallel-size 3"));
  EXPECT_THAT(refusal_on(4, {"--tensor-model-parallel-size", "4"}),
              HasSubstr("--num-query-groups 2 is not a multiple of --tensor-model-parallel-size 4"));
}

TEST(Validate, HeadDimensions) {
  for (const char* channels : {"4", "12", "264"}) {
    EXPECT_THAT(refusal_on(1, {"--kv-channels", channels}),
                AllOf(HasSubstr("--kv-channels " + std::string{channels}), HasSubstr("steps of 8")));
    EXPECT_THAT(refusal_on(1, {"--v-channels", channels}),
                HasSubstr("--v-channels " + std::string{channels}));
  }
  EXPECT_NO_THROW(validate(small_config({"--kv-channels", "256", "--v-channels", "8"}), 1));
}

TEST(Validate, DocumentsMustFillTheRow) {
  EXPECT_THAT(refusal_on(1, {"--doc-lengths", "60,3"}),
              AllOf(HasSubstr("sum to 63"), HasSubstr("--seq-length is 64")));
  EXPECT_THAT(refusal_on(1, {"--doc-lengths", "60,5"}), HasSubstr("sum to 65"));
  EXPECT_THAT(refusal_on(1, {"--doc-lengths", "9223372036854775807,65"}), HasSubstr("64 bits"));
}

TEST(Validate, SizesMustNotOverflow) {
  EXPECT_THAT(refusal_on(1, {"--seq-length", "9223372036854775807"}), HasSubstr("do not fit in 64 bits"));
  EXPECT_THAT(refusal_on(1, {"--micro-batch-size", "4611686018427387904"}),
              HasSubstr("do not fit in 64 bits"));
  // 2^33 tokens: the bytes fit, but not the pairs of query and key.
  EXPECT_THAT(refusal_on(1, {"--seq-length", "8589934592"}), HasSubstr("do not fit in 64 bits"));
  EXPECT_NO_THROW(validate(small_config({"--seq-length", "4194304", "--num-attention-heads", "64"}), 1));
}

TEST(ShapeFromOptions, FillsInTheDefaults) {
  const JobConfig config = parse_job_config({"run", "--seq-length", "12", "--num-attention-heads", "4",
                                             "--kv-channels", "64", "--micro-batch-size", "2"});
  const ProblemShape shape = shape_from_options(config);
  EXPECT_EQ(shape.kv_heads, 4);
  EXPECT_EQ(shape.v_channels, 64);
  EXPECT_EQ(shape.tokens(), 24);
  EXPECT_THAT(shape.document_offsets(), ElementsAre(0, 12, 24));
  EXPECT_EQ(shape.softmax_scale(), 0.125F);
}

TEST(ShapeFromOptions, DocumentsRepeatForEveryRow) {
  const ProblemShape shape =
      shape_from_options(small_config({"--doc-lengths", "40,0,24", "--micro-batch-size", "2"}));
  EXPECT_THAT(shape.document_offsets(), ElementsAre(0, 40, 40, 64, 104, 104, 128));
}

TEST(ShapeFromFile, OptionsMustAgreeWithIt) {
  const ProblemShape file{.seq_length = 100,
                          .doc_lengths = {60, 40},
                          .kv_seq_length = 100,
                          .kv_doc_lengths = {60, 40},
                          .query_heads = 12,
                          .kv_heads = 12,
                          .kv_channels = 32,
                          .v_channels = 32};
  const auto with = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{"run", "--qkv", "real.h5"};
    all.insert(all.end(), words.begin(), words.end());
    return shape_from_file(parse_job_config(all), file);
  };
  EXPECT_EQ(with({}), file);
  EXPECT_EQ(with({"--seq-length", "100", "--doc-lengths", "60,40"}), file);
  EXPECT_THAT(refusal([&] {
                (void)with({"--seq-length", "64"});
              }),
              AllOf(HasSubstr("--seq-length 64 disagrees with real.h5"), HasSubstr("100")));
  EXPECT_THAT(refusal([&] {
                (void)with({"--doc-lengths", "100"});
              }),
              HasSubstr("--doc-lengths disagree with"));
  EXPECT_THAT(refusal([&] {
                (void)with({"--tensor-model-parallel-size", "5"});
              }),
              HasSubstr("is not a multiple"));
}

TEST(SetShape, MakesTheOptionsTellEverySize) {
  JobConfig config = parse_job_config({"run", "--qkv", "real.h5"});
  const ProblemShape shape{.seq_length = 100,
                           .doc_lengths = {60, 40},
                           .kv_seq_length = 100,
                           .kv_doc_lengths = {60, 40},
                           .query_heads = 12,
                           .kv_heads = 6,
                           .kv_channels = 32,
                           .v_channels = 40};
  set_shape(config, shape);
  EXPECT_EQ(shape_from_options(config), shape);
}

TEST(CheckTracePath, RefusesWhatCannotBeCreated) {
  std::string pattern = (std::filesystem::temp_directory_path() / "hcp-trace-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path directory{pattern};
  const std::string file = directory / "run.h5";
  EXPECT_NO_THROW(check_trace_path(file));
  EXPECT_NO_THROW(check_trace_path("hcp-check-trace-path-test.h5"));
  std::ofstream(file) << "x";
  EXPECT_THAT(refusal([&] { check_trace_path(file); }),
              AllOf(HasSubstr(file), HasSubstr("nothing is overwritten")));
  std::filesystem::create_symlink("nowhere", directory / "link.h5");
  EXPECT_THAT(refusal([&] { check_trace_path(directory / "link.h5"); }), HasSubstr("exists"));
  EXPECT_THAT(refusal([&] { check_trace_path(directory / "no" / "run.h5"); }),
              HasSubstr("there is no directory"));
  std::filesystem::remove_all(directory);
}

TEST(CheckTracePath, RefusesADirectoryThatCannotBeWrittenTo) {
  std::string pattern = (std::filesystem::temp_directory_path() / "hcp-trace-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  ASSERT_EQ(chmod(pattern.c_str(), 0555), 0);
  const auto try_as_a_user = [&] {
    // Root may write everywhere.
    const bool is_user = geteuid() != 0 || setuid(65534) == 0;
    std::cerr << (is_user ? refusal([&] { check_trace_path(pattern + "/run.h5"); }) : "still root");
    std::_Exit(0);
  };
  EXPECT_EXIT(try_as_a_user(), testing::ExitedWithCode(0), "cannot be written to");
  std::filesystem::remove_all(pattern);
}

TEST(DefaultTracePath, NamesTimeAndJobOrProcess) {
  unsetenv("SLURM_JOB_ID");
  EXPECT_THAT(default_trace_path(),
              MatchesRegex("hcp-[0-9]{8}T[0-9]{6}Z-" + std::to_string(getpid()) + "\\.h5"));
  setenv("SLURM_JOB_ID", "4711", 1);
  EXPECT_THAT(default_trace_path(), MatchesRegex("hcp-[0-9]{8}T[0-9]{6}Z-4711\\.h5"));
  unsetenv("SLURM_JOB_ID");
}

}  // namespace
}  // namespace hcp
