#include <cstdint>
#include <map>
#include <tuple>

#include "tests/exchange/plan_checker.hpp"

namespace hcp {
namespace {

/// Messages from one rank to another that MPI keeps in order: one communicator and one tag.
struct Stream {
  int from = 0;
  int to = 0;
  std::vector<int> levels{};  ///< of the communicator
  Payload payload = Payload::kv;
  friend auto operator<=>(const Stream&, const Stream&) = default;

  [[nodiscard]] std::string describe() const {
    return std::string{name_of(payload)} + " from rank " + std::to_string(from) + " to " + std::to_string(to);
  }
};

/// Both ends of a stream: the bytes of what is posted so far.
struct Posted {
  std::vector<std::int64_t> sends{};
  std::vector<std::int64_t> receives{};
};

/// All ranks of a group, each advanced as far as it gets.
class Rendezvous {
 public:
  Rendezvous(std::span<const ExchangePlan> plans, Pass pass)
      : plans_{plans}, pass_{pass}, next_(plans.size(), 0), partners_(plans.size()) {}

  std::vector<std::string> faults() && {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
        moved = advance(rank) || moved;
      }
    }
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      if (next_[rank] < program(rank).instructions.size()) {
        faults_.push_back("rank " + std::to_string(rank) + " waits for ever at instruction " +
                          std::to_string(next_[rank]));
      }
    }
    for (const auto& [stream, posted] : posted_) {
      if (posted.sends != posted.receives) {
        faults_.push_back(stream.describe() + ": what is sent is not what is received");
      }
    }
    return std::move(faults_);
  }

 private:
  /// One message of a transfer: the n-th of its stream, waiting for its other end.
  struct Partner {
    Stream stream;
    bool is_send = false;
    std::size_t n = 0;
  };

  [[nodiscard]] const Program& program(std::size_t rank) const { return plans_[rank].program(pass_); }

  /// Whether the rank got any further.
  bool advance(std::size_t rank) {
    const std::size_t begin = next_[rank];
    const std::vector<Instruction>& instructions = program(rank).instructions;
    for (; next_[rank] < instructions.size(); ++next_[rank]) {
      const auto& action = instructions[next_[rank]].action;
      if (const auto* wait = std::get_if<Wait>(&action); wait != nullptr && !can_end(rank, wait->transfer)) {
        break;
      }
      if (const auto* post = std::get_if<Post>(&action)) {
        begin_transfer(rank, post->transfer);
      }
    }
    return next_[rank] > begin;
  }

  void begin_transfer(std::size_t rank, int id) {
    const Transfer& transfer = program(rank).transfers.at(static_cast<std::size_t>(id));
    const std::vector<int>& levels =
        plans_[rank].communicators.at(static_cast<std::size_t>(transfer.communicator));
    std::vector<Partner>& partners = partners_[rank][id];
    const int self = static_cast<int>(rank);
    for (const PlannedMessage& m : transfer.sends) {
      const Stream stream{self, m.peer_cp_rank, levels, m.payload};
      partners.push_back({stream, true, posted_[stream].sends.size()});
      posted_[stream].sends.push_back(m.bytes());
    }
    for (const PlannedMessage& m : transfer.receives) {
      const Stream stream{m.peer_cp_rank, self, levels, m.payload};
      partners.push_back({stream, false, posted_[stream].receives.size()});
      posted_[stream].receives.push_back(m.bytes());
    }
  }

  [[nodiscard]] bool can_end(std::size_t rank, int transfer) {
    for (const Partner& partner : partners_[rank][transfer]) {
      const Posted& posted = posted_[partner.stream];
      if ((partner.is_send ? posted.receives : posted.sends).size() <= partner.n) {
        return false;
      }
    }
    return true;
  }

  std::span<const ExchangePlan> plans_;
  Pass pass_;
  std::vector<std::size_t> next_;                              ///< [rank] instruction
  std::vector<std::map<int, std::vector<Partner>>> partners_;  ///< [rank] by transfer
  std::map<Stream, Posted> posted_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> message_faults(std::span<const ExchangePlan> plans, Pass pass) {
  std::vector<std::string> faults = Rendezvous{plans, pass}.faults();
  for (std::size_t rank = 1; rank < plans.size(); ++rank) {
    if (plans[rank].communicators != plans[0].communicators) {
      faults.push_back("rank " + std::to_string(rank) + " creates other communicators than rank 0");
    }
  }
  return faults;
}

}  // namespace hcp
