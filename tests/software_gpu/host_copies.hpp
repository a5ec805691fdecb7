/// What the host can see of copies between its memory and a device's that it has not waited for.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/clock.hpp"

namespace hcp::software_gpu {

/// Bytes that go to the host are NaN there from the call on and arrive when the host has waited; the host may
/// change neither those nor bytes that come from it until then. All of that holds whenever the copy itself
/// runs, so a host that does not wait is found in every schedule. Copies of one device order themselves: what
/// one has brought to the host, another can take from there.
class HostCopies {
 public:
  class Copy;

  /// At the call. Poisons the target.
  std::shared_ptr<Copy> to_host(std::string name, void* target, std::size_t bytes);
  /// At the call.
  std::shared_ptr<Copy> from_host(std::string name, const void* source, std::size_t bytes);

  // When the copy runs:
  void bring(const std::shared_ptr<Copy>& to_host, Stamp stamp, const void* source);
  void take(const std::shared_ptr<Copy>& from_host, Stamp stamp, void* target);

  /// The host has waited for what the clock covers.
  /// @return findings: what has changed
  [[nodiscard]] std::vector<std::string> settle(const Clock& host);
  /// The host has lost interest: nothing arrives any more.
  void forget();

 private:
  void done(const std::shared_ptr<Copy>& copy, Stamp stamp);

  std::list<std::shared_ptr<Copy>> called_;
  std::list<std::shared_ptr<Copy>> done_;  ///< in that order; the host has not waited for them
  std::vector<std::string> findings_;
};

class HostCopies::Copy {
 public:
  Copy(std::string name, std::byte* host, std::size_t bytes, bool to_host)
      : name_{std::move(name)}, host_{host}, to_host_{to_host}, data_(bytes) {}

 private:
  friend class HostCopies;
  [[nodiscard]] bool overlaps(const Copy& other) const {
    return host_ < other.host_ + other.data_.size() && other.host_ < host_ + data_.size();
  }
  void poison();
  /// A finding, if what should stay as it is has not; looked at once.
  bool check(std::vector<std::string>& findings);
  /// Those bytes of the data that `other` has brought.
  void take_from(const Copy& other);

  std::string name_;
  std::byte* host_;
  bool to_host_;
  bool checked_ = false;         ///< or not to be
  std::vector<std::byte> data_;  ///< from the device, or from the host at the call
  Stamp stamp_;                  ///< once it is done
};

}  // namespace hcp::software_gpu
