#include "tests/harness/thread_network.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace hcp {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(ThreadNetwork& network, int rank, int size) : network_{network}, rank_{rank}, size_{size} {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  Ticket post(const MessageSet& messages) override {
    for (const Message& message : messages.sends) {
      std::vector<std::byte> bytes;
      for (const auto& part : message.parts) {
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
      counts_[{message.peer, message.tag}].first += std::ssize(bytes);
      ++counts_[{message.peer, message.tag}].second;
      const std::lock_guard lock{network_.mutex_};
      network_.mailboxes_[{rank_, message.peer, message.tag}].push_back(std::move(bytes));
    }
    network_.arrived_.notify_all();
    fill_own_room(messages, rank_);
    receives_[next_ticket_] = messages.receives;
    return Ticket{*this, next_ticket_++};
  }

  [[nodiscard]] std::vector<SentCount> sent() const override {
    std::vector<SentCount> counts;
    for (const auto& [key, count] : counts_) {
      counts.push_back({key.first, key.second, count.first, count.second});
    }
    return counts;
  }
  void reset_counts() override { counts_.clear(); }

 protected:
  void wait(int ticket) override {
    for (const Message& message : receives_.at(ticket)) {
      std::unique_lock lock{network_.mutex_};
      auto& box = network_.mailboxes_[{message.peer, rank_, message.tag}];
      if (!network_.arrived_.wait_for(lock, std::chrono::minutes{1}, [&] { return !box.empty(); })) {
        throw std::runtime_error{"nothing was sent for a receive"};
      }
      const std::vector<std::byte> bytes = std::move(box.front());
      box.pop_front();
      lock.unlock();
      if (std::ssize(bytes) != message.bytes()) {
        throw std::runtime_error{"a message has another size than expected"};
      }
      const std::byte* next = bytes.data();
      for (const auto& part : message.parts) {
        std::memcpy(part.data(), next, part.size());
        next += part.size();
      }
    }
    receives_.erase(ticket);
  }

 private:
  ThreadNetwork& network_;
  int rank_;
  int size_;
  int next_ticket_ = 0;
  std::map<int, std::vector<Message>> receives_;
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> counts_;
};

std::unique_ptr<Transport> ThreadNetwork::transport(int rank, int size) {
  return std::make_unique<ThreadTransport>(*this, rank, size);
}

void run_as_threads(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

}  // namespace hcp
