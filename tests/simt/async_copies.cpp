#include "tests/simt/async_copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hcp::simt {

void AsyncCopies::begin(void* target, const void* source, std::size_t bytes, bool valid) {
  std::memset(target, 0xFF, bytes);  // NaN in every type
  open_.push_back({target, source, bytes, valid});
}

void AsyncCopies::close_group() {
  groups_.push_back(std::exchange(open_, {}));
}

void AsyncCopies::wait(std::size_t left) {
  while (groups_.size() > left) {
    for (const Copy& copy : groups_.front()) {
      if (copy.valid) {
        std::memcpy(copy.target, copy.source, copy.bytes);
      } else {
        std::memset(copy.target, 0, copy.bytes);
      }
    }
    groups_.erase(groups_.begin());
  }
}

bool AsyncCopies::pending() const {
  return !open_.empty() || std::ranges::any_of(groups_, [](const auto& group) { return !group.empty(); });
}

}  // namespace hcp::simt
