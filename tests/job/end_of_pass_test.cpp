/// A device is behind its host. At the end of a pass the host waits for it phase by phase and set by set, and
/// the watchdog is told of each, so that a pass that takes long is no step that takes too long.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/comm/mpi_transport.hpp"
#include "src/job/cell_run.hpp"
#include "src/job/command_line.hpp"
#include "src/job/setup.hpp"

namespace hcp {
namespace {

using testing::ElementsAreArray;

/// What happened on a rank, in order: "told wait" by the attention, "begin" and "wait 3" of its clock,
/// "finish 0" of the sets of messages that it posted.
using Story = std::vector<std::string>;

class TellingClock final : public PhaseClock {
 public:
  explicit TellingClock(Story& story) : story_{story} {}
  std::size_t begin(const char* name) override {
    story_.emplace_back("begin");
    return host_->begin(name);
  }
  void end() override { host_->end(); }
  void wait(std::size_t phase) override { story_.push_back("wait " + std::to_string(phase)); }
  [[nodiscard]] std::vector<Interval> read() override {
    story_.emplace_back("read");
    return host_->read();
  }

 private:
  Story& story_;
  std::unique_ptr<PhaseClock> host_ = make_host_phase_clock();
};

class TellingTransport final : public Transport {
 public:
  TellingTransport(std::unique_ptr<Transport> inner, Story& story)
      : inner_{std::move(inner)}, story_{story} {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  MemorySpace memory_space() const override { return inner_->memory_space(); }
  Ticket post(const MessageSet& messages) override {
    open_.emplace(posted_, inner_->post(messages));
    return Ticket{*this, posted_++};
  }
  std::vector<SentCount> sent() const override { return inner_->sent(); }
  void reset_counts() override { inner_->reset_counts(); }

 protected:
  void wait(int ticket) override { open_.at(ticket).wait(); }
  void finish(int ticket) override {
    story_.push_back("finish " + std::to_string(ticket));
    open_.at(ticket).finish();
    open_.erase(ticket);
  }

 private:
  std::unique_ptr<Transport> inner_;
  Story& story_;
  std::map<int, Ticket> open_;
  int posted_ = 0;
};

class EndOfPass : public testing::Test {
 protected:
  EndOfPass() {
    const JobConfig config = parse_job_config({"run", "--seq-length", "71", "--num-attention-heads", "4",
                                               "--kv-channels", "16", "--cp-comm-type", "p2p"});
    const Input input = open_input(config);
    layout_ = discover_node_layout(world_, 0);
    plan_.emplace(config, input.shape, layout_, GridSizes{.tp = 1, .cp = world_.size(), .dp = 1, .pp = 1});
    communicators_.emplace(world_, layout_, plan_->grid());
    BackEnd back_end = make_back_end(config, 1);
    back_end.clock = std::make_unique<TellingClock>(story_);
    cell_.emplace(config, *plan_, *communicators_, std::move(back_end),
                  [this](const MpiCommunicator& comm, double timeout_s) {
                    return std::make_unique<TellingTransport>(make_mpi_transport(comm, timeout_s), story_);
                  });
    load_input(input, *plan_, *communicators_, *cell_, [](int /*layer*/) {});
  }

  /// What is right after the last phase was asked for, if each phase of the log is waited for in its turn,
  /// and each set of messages after the phase that posts it.
  [[nodiscard]] Story expected(int& posted) const {
    Story expected;
    for (const Phase& phase : log_) {
      expected.push_back("told " + std::string{name_of(phase.kind)});
      expected.push_back("wait");
      if (phase.kind == PhaseKind::post) {
        expected.emplace_back("told wait");
        expected.push_back("finish " + std::to_string(posted++));
      }
    }
    expected.emplace_back("read");
    return expected;
  }

  /// What follows the last begin of a phase; the numbers of phases, which must rise, are left out.
  [[nodiscard]] Story end_of_story() const {
    Story end;
    int last = -1;
    const auto last_begin = std::find(story_.rbegin(), story_.rend(), "begin");
    for (auto word = last_begin.base(); word != story_.end(); ++word) {
      const bool waits = word->starts_with("wait ");
      if (waits) {
        const int number = std::stoi(word->substr(5));
        EXPECT_GT(number, last);
        last = number;
      }
      end.push_back(waits ? "wait" : *word);
    }
    return end;
  }

  void run(Pass pass) {
    story_.clear();
    cell_->log().clear();
    const PhaseObserver observe = [this](const Phase& phase) {
      story_.push_back("told " + std::string{name_of(phase.kind)});
    };
    pass == Pass::forward ? cell_->forward(observe) : cell_->backward(observe);
    log_ = cell_->log();
  }

  const MpiCommunicator world_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  Story story_;
  PhaseLog log_;
  NodeLayout layout_;
  std::optional<JobPlan> plan_;
  std::optional<HierarchicalCommunicators> communicators_;
  std::optional<CellRun> cell_;
};

TEST_F(EndOfPass, EveryPhaseAndEverySetHasItsOwnTime) {
  int posted = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    SCOPED_TRACE(name_of(pass));
    run(pass);
    const int before = posted;
    EXPECT_THAT(end_of_story(), ElementsAreArray(expected(posted)));
    EXPECT_GE(posted - before, world_.size() - 1);
  }
}

}  // namespace
}  // namespace hcp
