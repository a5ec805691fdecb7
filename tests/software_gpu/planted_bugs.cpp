#include "tests/software_gpu/planted_bugs.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

constexpr std::pair<Bug, const char*> names[] = {
    {Bug::skip_wait_on_compute, "skip_wait_on_compute"},
    {Bug::skip_wait_on_transport, "skip_wait_on_transport"},
    {Bug::early_record, "early_record"},
    {Bug::wrong_stream, "wrong_stream"},
    {Bug::skip_synchronise, "skip_synchronise"},
    {Bug::early_query, "early_query"},
    {Bug::lost_fill, "lost_fill"},
    {Bug::lost_copy, "lost_copy"},
    {Bug::wrong_peer, "wrong_peer"},
    {Bug::half_count, "half_count"},
    {Bug::swapped_groups, "swapped_groups"},
    {Bug::two_streams, "two_streams"},
    {Bug::ignored_abort, "ignored_abort"},
    {Bug::leaked_communicator, "leaked_communicator"},
};

struct Planted {
  Bug bug = Bug::wrong_peer;
  int calls_before = 0;  ///< negative once a call had it
};

std::optional<Planted> planted;

}  // namespace

std::string name_of(Bug bug) {
  return std::ranges::find(names, bug, &std::pair<Bug, const char*>::first)->second;
}

Bug bug_from(std::string_view name) {
  std::string all;
  for (const auto& [bug, known] : names) {
    if (name == known) {
      return bug;
    }
    all += std::string{" "} + known;
  }
  throw std::invalid_argument{"bug '" + std::string{name} + "': must be one of" + all};
}

void plant(Bug bug, int nth) {
  const std::lock_guard lock{gpu().mutex};
  planted = {.bug = bug, .calls_before = nth - 1};
}

bool uproot() {
  const std::lock_guard lock{gpu().mutex};
  const std::optional<Planted> was = std::exchange(planted, std::nullopt);
  return was && was->calls_before < 0;
}

bool has_bug(Bug bug) {
  if (!planted || planted->bug != bug || planted->calls_before < 0) {
    return false;
  }
  return planted->calls_before-- == 0;
}

}  // namespace hcp::software_gpu
