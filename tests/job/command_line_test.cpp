#include "src/job/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

namespace hcp {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// The config of `hcp run words...`.
JobConfig run_config(std::vector<std::string> words) {
  words.insert(words.begin(), "run");
  return parse_job_config(words);
}

std::string run_refusal(const std::vector<std::string>& words) {
  return refusal([&] { (void)run_config(words); });
}

/// A deck that exists while the test runs, in a directory of its own.
class Deck {
 public:
  explicit Deck(const std::string& text, const std::string& name = "test.cfg") {
    std::string pattern = (std::filesystem::temp_directory_path() / "hcp-deck-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error{"no temporary directory"};
    }
    directory_ = pattern;
    path_ = (directory_ / name).string();
    std::ofstream(path_) << text;
  }
  Deck(const Deck&) = delete;
  Deck& operator=(const Deck&) = delete;
  ~Deck() { std::filesystem::remove_all(directory_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::filesystem::path directory_;
  std::string path_;
};

TEST(ParseCommand, IsTheFirstWordOrAQuestion) {
  EXPECT_EQ(parse_command({"run", "deck.cfg"}), Command::run);
  EXPECT_EQ(parse_command({"plan", "deck.cfg"}), Command::plan);
  EXPECT_EQ(parse_command({"--help"}), Command::help);
  EXPECT_EQ(parse_command({"run", "--help"}), Command::help);
  EXPECT_EQ(parse_command({"--version"}), Command::version);
}

TEST(ParseCommand, RefusesOthers) {
  EXPECT_THAT(refusal([] { (void)parse_command({"start"}); }),
              AllOf(HasSubstr("'start'"), HasSubstr("run, plan")));
  EXPECT_THAT(refusal([] { (void)parse_command({"deck.cfg", "run"}); }), HasSubstr("the first word"));
  EXPECT_THAT(refusal([] { (void)parse_command({}); }), HasSubstr("a command is missing"));
}

TEST(ParseJobConfig, DefaultsAreTheDocumentedOnes) {
  const JobConfig config = run_config({});
  EXPECT_EQ(config.micro_batch_size, 1);
  EXPECT_EQ(config.num_layers, 1);
  EXPECT_EQ(config.attention_mask_type, MaskType::no_mask);
  EXPECT_EQ(config.dtype, DataType::fp32);
  EXPECT_EQ(config.grad_comm_dtype, DataType::fp32);
  EXPECT_THAT(config.cp_comm_type, ElementsAre(ElementsAre(Algorithm::p2p, Algorithm::a2a)));
  EXPECT_EQ(config.cp_partition, Partition::zigzag);
  EXPECT_EQ(config.pass, PassSelection::both);
  EXPECT_EQ(config.iterations, 20);
  EXPECT_EQ(config.warmup, 2);
  EXPECT_EQ(config.verify, VerifyMode::automatic);
  EXPECT_EQ(config.backend, BackendChoice::automatic);
  EXPECT_EQ(config.transport, TransportChoice::automatic);
  EXPECT_FALSE(config.serialize_levels);
  EXPECT_EQ(config.timeout, 300);
  EXPECT_FALSE(config.seq_length || config.context_parallel_size || config.trace || config.threads_per_rank);
}

TEST(ParseJobConfig, ReadsEveryKindOfValue) {
  const JobConfig config = run_config(
      {"--seq-length", "8192", "--kv-channels=64", "--dtype", "bf16", "--seed", "7", "--attention-mask-type",
       "causal", "--comm-only", "--timeout", "2.5", "--trace", "run 1.h5", "--warmup", "0", "--pass", "bwd"});
  EXPECT_EQ(config.seq_length, 8192);
  EXPECT_EQ(config.kv_channels, 64);
  EXPECT_EQ(config.dtype, DataType::bf16);
  EXPECT_EQ(config.seed, 7U);
  EXPECT_EQ(config.attention_mask_type, MaskType::causal);
  EXPECT_TRUE(config.comm_only);
  EXPECT_EQ(config.timeout, 2.5);
  EXPECT_EQ(config.trace, "run 1.h5");
  EXPECT_EQ(config.warmup, 0);
  EXPECT_EQ(config.pass, PassSelection::backward);
  EXPECT_EQ(config.command_line.substr(0, 22), "hcp run --seq-length 8");
}

TEST(ParseJobConfig, ListsUseCommasOrBlanks) {
  const std::vector<std::vector<std::string>> spellings{
      {"--doc-lengths", "137,0,89", "--cp-comm-type", "p2p,allgather+a2a"},
      {"--doc-lengths", "137", "0", "89", "--cp-comm-type", "p2p", "all_gather+a2a"},
      {"--doc-lengths=137,0", "89", "--cp-comm-type=p2p,all_gather+a2a"}};
  for (const auto& words : spellings) {
    const JobConfig config = run_config(words);
    EXPECT_THAT(config.doc_lengths, ElementsAre(137, 0, 89));
    EXPECT_THAT(config.scheme_of_layer(0), ElementsAre(Algorithm::p2p));
    EXPECT_THAT(config.scheme_of_layer(1), ElementsAre(Algorithm::all_gather, Algorithm::a2a));
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--window-size", "-1,-1"},
                                                {"--window-size", "-1", "-1"},
                                                {"--window-size=-1,-1"}}) {
    const JobConfig config = run_config(words);
    EXPECT_EQ(config.window_size->left, -1);
    EXPECT_EQ(config.window_size->right, -1);
  }
}

TEST(ParseJobConfig, OneSchemeHoldsForAllLayers) {
  const JobConfig config = run_config({"--cp-comm-type", "a2a", "--num-layers", "3"});
  EXPECT_THAT(config.scheme_of_layer(2), ElementsAre(Algorithm::a2a));
}

TEST(ParseJobConfig, DeckIsReadAndTheCommandLineWins) {
  const Deck deck{
      "# a deck\n"
      "seq-length = 64   # tokens\n"
      "\n"
      "hierarchical-context-parallel-sizes = 2, 3\n"
      "comm-only = true\n"
      "warmup=5\n"};
  const JobConfig config = run_config({deck.path(), "--seq-length", "128"});
  EXPECT_EQ(config.seq_length, 128);
  EXPECT_THAT(config.hierarchical_context_parallel_sizes, ElementsAre(2, 3));
  EXPECT_TRUE(config.comm_only);
  EXPECT_EQ(config.warmup, 5);
  EXPECT_EQ(config.deck, deck.path());
  // Not behind a list, a deck may stand anywhere.
  EXPECT_EQ(run_config({"--seq-length", "128", "--seed", "1", deck.path()}).warmup, 5);
}

TEST(ParseJobConfig, AnotherMaskOrPartitionLeavesTheParametersOfTheDecksOneBehind) {
  const Deck deck{
      "attention-mask-type = causal\n"
      "window-size = 255,0\n"
      "cp-partition = striped\n"
      "stripe-size = 4\n"};
  const JobConfig without =
      run_config({deck.path(), "--attention-mask-type", "no_mask", "--cp-partition", "zigzag"});
  EXPECT_FALSE(without.window_size);
  EXPECT_FALSE(without.stripe_size);
  const JobConfig with =
      run_config({deck.path(), "--attention-mask-type", "sliding_window", "--cp-partition", "striped"});
  EXPECT_EQ(with.window_size->left, 255);
  EXPECT_EQ(with.stripe_size, 4);
  // What the command line gives itself is not forgotten.
  EXPECT_TRUE(
      run_config({deck.path(), "--attention-mask-type", "no_mask", "--window-size", "3,0"}).window_size);
  // And a wrong value of the deck is still one.
  const Deck wrong{"window-size = wide\n"};
  EXPECT_THAT(run_refusal({wrong.path(), "--attention-mask-type", "no_mask"}),
              HasSubstr(":1: window-size = wide"));
}

TEST(ParseJobConfig, SwallowedDeckIsNamed) {
  for (const char* option : {"--doc-lengths", "--hierarchical-context-parallel-sizes"}) {
    EXPECT_THAT(run_refusal({option, "3", "4", "inputs/x.cfg"}),
                AllOf(HasSubstr("'inputs/x.cfg' was taken as a value of " + std::string{option}),
                      HasSubstr("put it first: hcp run inputs/x.cfg")));
  }
  const Deck deck{"seq-length = 64\n", "quickstart"};
  EXPECT_THAT(run_refusal({"--cp-comm-type", "p2p", deck.path()}),
              HasSubstr("'" + deck.path() + "' was taken as a value of --cp-comm-type"));
  EXPECT_THAT(run_refusal({"--doc-lengths", "3", "4x"}), AllOf(HasSubstr("'4x'"), Not(HasSubstr("deck"))));
}

TEST(ParseJobConfig, UnknownOptionsAreRefusedWithTheNearest) {
  EXPECT_THAT(run_refusal({"--seq-lenght", "4"}),
              HasSubstr("'seq-lenght' is not an option; did you mean seq-length?"));
  EXPECT_THAT(run_refusal({"--seq-lenght=4"}), HasSubstr("did you mean seq-length?"));
  EXPECT_THAT(run_refusal({"--use-te-distributed-activation-checkpointing"}), HasSubstr("is not an option"));
  // An abbreviation is an unknown option, too.
  EXPECT_THAT(run_refusal({"--seq-len", "4"}), HasSubstr("did you mean seq-length?"));
  EXPECT_THAT(run_refusal({"--doc-lengths", "4", "--cp-com-type", "p2p"}),
              HasSubstr("did you mean cp-comm-type?"));
}

TEST(ParseJobConfig, DeckErrorsNameFileAndLine) {
  const Deck unknown{"# first\nseq-length = 4\nwarm-up = 3\n"};
  EXPECT_THAT(
      run_refusal({unknown.path()}),
      AllOf(HasSubstr(unknown.path() + ":3: 'warm-up' is not an option"), HasSubstr("did you mean warmup?")));
  const Deck value{"seq-length = 4k\n"};
  EXPECT_THAT(run_refusal({value.path()}),
              HasSubstr(value.path() + ":1: seq-length = 4k: '4k' is not a whole number"));
  const Deck twice{"seed = 1\nseed = 2\n"};
  EXPECT_THAT(run_refusal({twice.path()}), HasSubstr("seed is given twice"));
  const Deck syntax{"seq-length 4\n"};
  EXPECT_THAT(run_refusal({syntax.path()}), AllOf(HasSubstr(syntax.path()), HasSubstr("name = value")));
  const Deck section{"[model]\nseq-length = 4\n"};
  EXPECT_THAT(run_refusal({section.path()}), HasSubstr("'model.seq-length' is not an option"));
}

TEST(ParseJobConfig, UnreadableDecksAreRefused) {
  EXPECT_THAT(run_refusal({"no/such.cfg"}), AllOf(HasSubstr("no/such.cfg"), HasSubstr("No such file")));
  EXPECT_THAT(run_refusal({"/tmp"}), HasSubstr("/tmp is a directory"));
  const Deck deck{"seed = 1\n"};
  EXPECT_THAT(run_refusal({deck.path(), "second.cfg"}), HasSubstr("'second.cfg' is one word too many"));
}

struct BadValue {
  std::vector<std::string> words;
  std::string reason;
};

class ParseJobConfigRefuses : public testing::TestWithParam<BadValue> {};

TEST_P(ParseJobConfigRefuses, AndNamesOptionAndReason) {
  const std::string message = run_refusal(GetParam().words);
  const std::string& option = GetParam().words.front();
  EXPECT_THAT(message, HasSubstr(option.substr(0, option.find('='))));
  EXPECT_THAT(message, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Values, ParseJobConfigRefuses,
    testing::Values(
        BadValue{{"--seq-length", "8K"}, "'8K' is not a whole number"},
        BadValue{{"--seq-length", "8.5"}, "not a whole number"},
        BadValue{{"--seq-length", " 8"}, "not a whole number"},
        BadValue{{"--seq-length", "+8"}, "not a whole number"},
        BadValue{{"--seq-length", "1e4"}, "not a whole number"},
        BadValue{{"--seq-length="}, "should follow immediately"}, BadValue{{"--seq-length"}, "missing"},
        BadValue{{"--seq-length", "0"}, "at least 1"}, BadValue{{"--seq-length", "-8"}, "'-8' is too small"},
        BadValue{{"--seq-length", "9223372036854775808"}, "does not fit in 64 bits"},
        BadValue{{"--num-layers", "2147483648"}, "at most 2147483647"},
        BadValue{{"--iterations", "0"}, "at least 1"}, BadValue{{"--warmup", "-1"}, "at least 0"},
        BadValue{{"--threads-per-rank", "0"}, "at least 1"}, BadValue{{"--seed", "-1"}, "at least 0"},
        BadValue{{"--timeout", "0"}, "seconds above 0"}, BadValue{{"--timeout", "-5"}, "seconds above 0"},
        BadValue{{"--timeout", "inf"}, "seconds above 0"}, BadValue{{"--timeout", "nan"}, "seconds above 0"},
        BadValue{{"--timeout", "5m"}, "seconds above 0"},
        BadValue{{"--doc-lengths", "4,-1"}, "'-1' is too small"},
        BadValue{{"--doc-lengths", "4,,1"}, "a value is missing"},
        BadValue{{"--doc-lengths", "4,"}, "a value is missing"}, BadValue{{"--doc-lengths"}, "missing"},
        BadValue{{"--hierarchical-context-parallel-sizes", "2,0"}, "at least 1"},
        BadValue{{"--hierarchical-context-parallel-sizes", "2,4294967298"}, "at most"},
        BadValue{{"--cp-comm-type", "p2p+a2b"}, "did you mean a2a?"},
        BadValue{{"--cp-comm-type", "p2p+"}, "a name is missing"},
        BadValue{{"--cp-partition", "stripes"}, "zigzag, contiguous, striped, balanced"},
        BadValue{{"--stripe-size", "0"}, "at least 1"},
        BadValue{{"--attention-mask-type", "window"},
                 "no_mask, causal, causal_bottom_right, sliding_window, padding, padding_causal, prefix_lm, "
                 "block_causal, block_diffusion, intervals"},
        BadValue{{"--window-size", "-2,0"}, "'-2' is too small; at least -1"},
        BadValue{{"--window-size", "0,-5"}, "'-5' is too small; at least -1"},
        BadValue{{"--window-size", "3"}, "1 numbers; a window is two, LEFT,RIGHT"},
        BadValue{{"--window-size", "1,2,3"}, "3 numbers"}, BadValue{{"--window-size", "1,all"}, "'all'"},
        BadValue{{"--doc-valid-lengths", "4,-1"}, "'-1' is too small"},
        BadValue{{"--prefix-lengths", "-1"}, "'-1' is too small"},
        BadValue{{"--mask-block-size", "0"}, "at least 1"},
        BadValue{{"--mask-file", ""}, "name of a file is missing"},
        BadValue{{"--kv-seq-length", "0"}, "at least 1"},
        BadValue{{"--kv-doc-lengths", "4,-1"}, "'-1' is too small"},
        BadValue{{"--softmax-type", "off_by_one"}, "vanilla, off-by-one, learnable"},
        BadValue{{"--attention-dropout", "1"},
                 "'1' is not a probability that is drawn: 0, or from 2^-16 to 1 - 2^-16"},
        BadValue{{"--attention-dropout", "1e-6"}, "'1e-6' is not a probability that is drawn"},
        BadValue{{"--attention-dropout", "-0.1"}, "not a probability"},
        BadValue{{"--attention-dropout", "nan"}, "not a probability"},
        BadValue{{"--attention-dropout", "10%"}, "not a probability"},
        BadValue{{"--softmax-scale", "0"}, "finite number above 0"},
        BadValue{{"--softmax-scale", "-0.5"}, "finite number above 0"},
        BadValue{{"--softmax-scale", "inf"}, "finite number above 0"},
        BadValue{{"--softmax-scale", "nan"}, "finite number above 0"},
        BadValue{{"--softmax-scale", "1e-60"}, "finite number above 0"},
        BadValue{{"--softmax-scale", "0.1x"}, "finite number above 0"},
        BadValue{{"--dtype", "fp64"}, "fp32, bf16, fp16"},
        BadValue{{"--grad-comm-dtype", "fp8"}, "fp32, bf16, fp16"},
        BadValue{{"--backend", "gpu"}, "auto, cpu, cuda"},
        BadValue{{"--attention-kernel", "flash"}, "cpu, cuda, reference"},
        BadValue{{"--transport", "ib"}, "auto, mpi, nccl, staged"},
        BadValue{{"--pass", "both"}, "fwd, bwd, fwdbwd"}, BadValue{{"--verify", "yes"}, "full, sample, off"},
        BadValue{{"--comm-only=true"}, "does not take any arguments"},
        BadValue{{"--trace", ""}, "name of a file is missing"},
        BadValue{{"--seed", "1", "--seed", "2"}, "given twice"}));

TEST(Describe, TellsCanonicalValuesInTheOrderOfTheHelp) {
  const auto described = describe(
      run_config({"--seq-length", "007", "--cp-comm-type", "allgather+p2p", "--doc-lengths", "3", "4"}));
  EXPECT_EQ(described.front(), (std::pair<std::string, std::string>{"seq-length", "7"}));
  EXPECT_THAT(described,
              AllOf(Contains(Pair("cp-comm-type", "all_gather+p2p")), Contains(Pair("doc-lengths", "3,4")),
                    Contains(Pair("timeout", "300")), Contains(Pair("comm-only", "false")),
                    Not(Contains(Key("context-parallel-size")))));
}

TEST(Describe, GivesADeckThatMakesTheSameConfig) {
  const auto described = describe(run_config({"--seq-length",
                                              "7",
                                              "--cp-comm-type",
                                              "a2a,p2p+a2a",
                                              "--num-layers",
                                              "2",
                                              "--doc-lengths",
                                              "3",
                                              "4",
                                              "--compute-only",
                                              "--timeout",
                                              "0.25",
                                              "--threads-per-rank",
                                              "2",
                                              "--trace",
                                              "t.h5",
                                              "--qkv",
                                              "q.h5",
                                              "--attention-mask-type",
                                              "block_diffusion",
                                              "--window-size",
                                              "-1,7",
                                              "--doc-valid-lengths",
                                              "2,0",
                                              "--prefix-lengths",
                                              "0,1",
                                              "--mask-block-size",
                                              "32",
                                              "--mask-file",
                                              "mask.h5",
                                              "--kv-seq-length",
                                              "9",
                                              "--kv-doc-lengths",
                                              "4,5",
                                              "--softmax-scale",
                                              "0.3",
                                              "--softmax-type",
                                              "off-by-one",
                                              "--attention-dropout",
                                              "0.1",
                                              "--return-max-logit",
                                              "--transport",
                                              "nccl",
                                              "--serialize-levels"}));
  EXPECT_THAT(described, AllOf(Contains(Pair("attention-mask-type", "block_diffusion")),
                               Contains(Pair("window-size", "-1,7")), Contains(Pair("softmax-scale", "0.3")),
                               Contains(Pair("kv-doc-lengths", "4,5")), Contains(Pair("transport", "nccl")),
                               Contains(Pair("serialize-levels", "true"))));
  std::string text;
  for (const auto& [name, value] : described) {
    text += name + " = " + value + "\n";
  }
  const Deck deck{text};
  EXPECT_EQ(describe(run_config({deck.path()})), described);
}

TEST(HelpText, NamesEveryOption) {
  const std::string text = help_text();
  for (const auto& [name, value] : describe(run_config({}))) {
    EXPECT_THAT(text, HasSubstr("--" + name));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("hcp plan"), HasSubstr("Exit status"), HasSubstr("inner level first")));
}

}  // namespace
}  // namespace hcp
