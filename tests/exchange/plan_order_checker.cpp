#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

#include "tests/exchange/plan_checker.hpp"

namespace hcp {
namespace {

/// All messages from one rank to another in one communicator, whatever they carry.
struct Channel {
  int from = 0;
  int to = 0;
  std::vector<int> levels{};  ///< of the communicator
  friend auto operator<=>(const Channel&, const Channel&) = default;

  [[nodiscard]] std::string describe() const {
    return "from rank " + std::to_string(from) + " to " + std::to_string(to);
  }
};

/// One end of a message, in the post-th transfer of all that the ranks post.
struct End {
  const PlannedMessage* message = nullptr;
  std::size_t post = 0;
};

/// Both ends of a channel, in the order of posts and then of the lists.
struct Ends {
  std::vector<End> sends{};
  std::vector<End> receives{};
};

/// What the ranks post: the posts of rank 0, of rank 1, and so on; of a rank in the order of its program.
class Posts {
 public:
  Posts(std::span<const ExchangePlan> plans, Pass pass) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      first_of_rank_.push_back(transfers_.size());
      for (const Instruction& instruction : plans[rank].program(pass).instructions) {
        if (const auto* post = std::get_if<Post>(&instruction.action)) {
          add(plans[rank], static_cast<int>(rank),
              plans[rank].program(pass).transfers.at(index(post->transfer)));
        }
      }
    }
    first_of_rank_.push_back(transfers_.size());
  }

  [[nodiscard]] const std::map<Channel, Ends>& channels() const { return channels_; }
  [[nodiscard]] std::size_t count() const { return transfers_.size(); }
  [[nodiscard]] const Transfer& transfer(std::size_t post) const { return *transfers_[post]; }
  [[nodiscard]] bool has_successor(std::size_t post) const {
    return !std::ranges::binary_search(first_of_rank_, post + 1);
  }
  [[nodiscard]] std::string describe(std::size_t post) const {
    const auto rank = std::ranges::upper_bound(first_of_rank_, post) - first_of_rank_.begin() - 1;
    return "post " + std::to_string(post - first_of_rank_[static_cast<std::size_t>(rank)]) + " of rank " +
           std::to_string(rank);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void add(const ExchangePlan& plan, int rank, const Transfer& transfer) {
    const std::vector<int>& levels = plan.communicators.at(index(transfer.communicator));
    for (const PlannedMessage& message : transfer.sends) {
      channels_[{rank, message.peer_cp_rank, levels}].sends.push_back({&message, transfers_.size()});
    }
    for (const PlannedMessage& message : transfer.receives) {
      channels_[{message.peer_cp_rank, rank, levels}].receives.push_back({&message, transfers_.size()});
    }
    transfers_.push_back(&transfer);
  }

  std::map<Channel, Ends> channels_;
  std::vector<const Transfer*> transfers_;  ///< [post]
  std::vector<std::size_t> first_of_rank_;  ///< posts; and one past the last
};

/// Posts that messages join, taken together: each waits for all others of its set.
class JoinedPosts {
 public:
  explicit JoinedPosts(const Posts& posts) : parent_(posts.count()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    for (const auto& [channel, ends] : posts.channels()) {
      for (std::size_t k = 0; k < std::min(ends.sends.size(), ends.receives.size()); ++k) {
        parent_[set_of(ends.sends[k].post)] = set_of(ends.receives[k].post);
      }
    }
  }
  [[nodiscard]] std::size_t set_of(std::size_t post) const {
    while (parent_[post] != post) {
      post = parent_[post];
    }
    return post;
  }

 private:
  std::vector<std::size_t> parent_;
};

/// A post that stands in no order that suits all ranks; posts.count() if there is none.
std::size_t post_out_of_order(const Posts& posts, const JoinedPosts& joined) {
  std::vector<std::vector<std::size_t>> members(posts.count());
  std::vector<int> waits_for(posts.count(), 0);  // sets that have to come before
  for (std::size_t post = 0; post < posts.count(); ++post) {
    members[joined.set_of(post)].push_back(post);
    if (posts.has_successor(post)) {
      ++waits_for[joined.set_of(post + 1)];
    }
  }
  std::vector<std::size_t> ready;
  for (std::size_t set = 0; set < posts.count(); ++set) {
    if (!members[set].empty() && waits_for[set] == 0) {
      ready.push_back(set);
    }
  }
  std::vector<bool> done(posts.count(), false);
  while (!ready.empty()) {
    const std::size_t set = ready.back();
    ready.pop_back();
    for (const std::size_t post : members[set]) {
      done[post] = true;
      if (posts.has_successor(post) && --waits_for[joined.set_of(post + 1)] == 0) {
        ready.push_back(joined.set_of(post + 1));
      }
    }
  }
  return static_cast<std::size_t>(std::ranges::find(done, false) - done.begin());
}

std::vector<std::int64_t> part_sizes(const PlannedMessage& message) {
  std::vector<std::int64_t> sizes;
  for (const Part& part : message.parts) {
    sizes.push_back(part.bytes);
  }
  return sizes;
}

bool same_place(const Part& a, const Part& b) {
  return a.array == b.array && a.offset == b.offset && a.bytes == b.bytes;
}

/// What is wrong with a transfer as one side of an all-gather; empty if nothing is.
std::string fault_of_all_gather(const Transfer& transfer) {
  if (transfer.sends.empty() || transfer.sends.size() != transfer.receives.size()) {
    return "does not send to as many ranks as it receives from";
  }
  for (const PlannedMessage& message : transfer.sends) {
    if (!std::ranges::equal(message.parts, transfer.sends.front().parts, same_place)) {
      return "does not send the same to all";
    }
  }
  const PlannedMessage& first = transfer.receives.front();
  for (const PlannedMessage& message : transfer.receives) {
    if (part_sizes(message) != part_sizes(transfer.sends.front())) {
      return "receives something else than it sends";
    }
    for (std::size_t p = 0; p < message.parts.size(); ++p) {
      const std::int64_t distance = (message.peer - first.peer) * first.parts[p].bytes;
      if (message.parts[p].array != first.parts[p].array ||
          message.parts[p].offset != first.parts[p].offset + distance) {
        return "does not receive in the order of the ranks";
      }
    }
  }
  return {};
}

void check_all_gathers(const Posts& posts, std::vector<std::string>& faults) {
  const JoinedPosts joined{posts};
  std::map<std::size_t, std::vector<std::size_t>> sets;
  for (std::size_t post = 0; post < posts.count(); ++post) {
    sets[joined.set_of(post)].push_back(post);
  }
  for (const auto& [set, members] : sets) {
    const auto is_collective = [&](std::size_t post) {
      return posts.transfer(post).collective == Collective::all_gather;
    };
    if (std::ranges::none_of(members, is_collective)) {
      continue;
    }
    for (const std::size_t post : members) {
      const std::string fault = fault_of_all_gather(posts.transfer(post));
      if (!is_collective(post) || members.size() != posts.transfer(post).sends.size() + 1) {
        faults.push_back(posts.describe(post) + ": not all ranks take part in an all-gather");
      } else if (!fault.empty()) {
        faults.push_back(posts.describe(post) + ": an all-gather " + fault);
      }
    }
  }
}

}  // namespace

std::vector<std::string> order_faults(std::span<const ExchangePlan> plans, Pass pass) {
  const Posts posts{plans, pass};
  std::vector<std::string> faults;
  const auto same = [](const End& a, const End& b) {
    return a.message->payload == b.message->payload && a.message->bytes() == b.message->bytes();
  };
  for (const auto& [channel, ends] : posts.channels()) {
    if (!std::ranges::equal(ends.sends, ends.receives, same)) {
      faults.push_back(channel.describe() +
                       ": messages are not received in the order in which they are sent");
    }
  }
  if (const std::size_t post = post_out_of_order(posts, JoinedPosts{posts}); post < posts.count()) {
    faults.push_back(posts.describe(post) + " stands in no order that suits all ranks");
  }
  return faults;
}

std::vector<std::string> form_faults(std::span<const ExchangePlan> plans, Pass pass) {
  constexpr std::size_t most_parts = 8;
  const Posts posts{plans, pass};
  std::vector<std::string> faults;
  for (const auto& [channel, ends] : posts.channels()) {
    for (std::size_t k = 0; k < std::min(ends.sends.size(), ends.receives.size()); ++k) {
      const std::vector<std::int64_t> sent = part_sizes(*ends.sends[k].message);
      if (sent != part_sizes(*ends.receives[k].message)) {
        faults.push_back(channel.describe() + ": message " + std::to_string(k) +
                         " has other parts at its ends");
      }
      if (sent.size() > most_parts) {
        faults.push_back(channel.describe() + ": message " + std::to_string(k) + " has " +
                         std::to_string(sent.size()) + " parts");
      }
    }
  }
  check_all_gathers(posts, faults);
  return faults;
}

}  // namespace hcp
