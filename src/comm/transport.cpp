#include "src/comm/transport.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

namespace hcp {

std::int64_t Message::bytes() const {
  std::size_t total = 0;
  for (const std::span<std::byte> part : parts) total += part.size();
  return static_cast<std::int64_t>(total);
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
