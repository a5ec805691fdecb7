#include "src/comm/transport.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace hcp {

std::int64_t Message::bytes() const {
  std::size_t total = 0;
  for (const std::span<std::byte> part : parts) total += part.size();
  return static_cast<std::int64_t>(total);
}

std::vector<std::span<std::byte>> own_room(const MessageSet& messages, int rank) {
  const Message& any = messages.receives.at(0);
  std::vector<std::span<std::byte>> room;
  for (const std::span<std::byte> part : any.parts) {
    room.emplace_back(part.data() + (rank - any.peer) * std::ssize(part), part.size());
  }
  return room;
}

void fill_own_room(const MessageSet& messages, int rank) {
  if (messages.collective != Collective::all_gather) return;
  const std::vector<std::span<std::byte>> room = own_room(messages, rank);
  const Message& own = messages.sends.at(0);
  for (std::size_t p = 0; p < room.size(); ++p) {
    std::memcpy(room[p].data(), own.parts.at(p).data(), room[p].size());
  }
}

Ticket::Ticket(Ticket&& other) noexcept
    : transport_{std::exchange(other.transport_, nullptr)}, id_{other.id_}, waited_{other.waited_} {}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  Ticket replaced{std::move(other)};
  std::swap(transport_, replaced.transport_);
  std::swap(id_, replaced.id_);
  std::swap(waited_, replaced.waited_);
  return *this;
}

Ticket::~Ticket() {
  if (transport_ == nullptr || waited_ || std::uncaught_exceptions() > 0) return;
  std::fputs("hcp: messages were posted and never waited for\n", stderr);
  std::abort();
}

void Ticket::wait() {
  if (transport_ == nullptr || waited_)
    throw std::logic_error{"a ticket was waited for twice, or after it was moved from"};
  waited_ = true;
  transport_->wait(id_);
}

void Ticket::finish() {
  if (transport_ == nullptr || !waited_)
    throw std::logic_error{"a ticket was finished twice, or before it was waited for"};
  transport_->finish(id_);
  transport_ = nullptr;
}

}  // namespace hcp
