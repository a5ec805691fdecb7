/// Walks exchange plans without any data and lists what cannot be right, however messages are timed. Knows
/// nothing of schemes, so that it can hold for all of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/exchange/exchange_plan.hpp"

namespace hcp {

/// Faults of one rank's forward, saving for backward, and the backward after it; byte by byte:
/// * a transfer is not posted once and then waited for once;
/// * something lies outside its array, or in an array that does not live there (plan_memory.hpp);
/// * a byte is read before anything was written to it, an output is not written in the end;
/// * a byte is written while it is being sent, or touched while it is being received.
/// What an array held in an earlier life does not count as written. An all-gather writes this rank's own
/// place, too.
[[nodiscard]] std::vector<std::string> memory_faults(const ExchangePlan& plan);

/// Faults between the plans of a CP group: communicators that not all create, and, where a send ends only
/// when its receive is posted (MPI promises no more), ranks that wait for each other for ever; messages
/// without a counterpart or of another size.
[[nodiscard]] std::vector<std::string> message_faults(std::span<const ExchangePlan> plans, Pass pass);

/// Faults for a transport without tags, whose sets of messages on one rank follow each other whatever their
/// communicator: in a communicator, the k-th message that one rank sends to another is not the k-th that the
/// other receives; or there is no one order of all sets in which every rank posts its own.
[[nodiscard]] std::vector<std::string> order_faults(std::span<const ExchangePlan> plans, Pass pass);

/// Faults of contiguous messages and of collectives: parts of other sizes at the two ends, more than 8 of
/// them; an all-gather that is none, or not on all ranks.
[[nodiscard]] std::vector<std::string> form_faults(std::span<const ExchangePlan> plans, Pass pass);

}  // namespace hcp
