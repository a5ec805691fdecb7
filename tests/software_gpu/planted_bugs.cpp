#include "tests/software_gpu/planted_bugs.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

struct Planted {
  Bug bug = Bug::wrong_peer;
  int calls_before = 0;  ///< negative once a call had it
};

std::optional<Planted> planted;

}  // namespace

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
