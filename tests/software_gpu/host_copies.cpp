#include "tests/software_gpu/host_copies.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace hcp::software_gpu {
namespace {

constexpr std::byte poisoned{0xff};

/// False, if these bytes are no longer this process's.
bool read_memory(const std::byte* begin, std::vector<std::byte>& bytes) {
  const iovec target{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const iovec source{.iov_base = const_cast<std::byte*>(begin), .iov_len = bytes.size()};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == std::ssize(bytes);
}

}  // namespace

void HostCopies::Copy::poison() {
  std::ranges::fill(std::span{host_, data_.size()}, poisoned);
}

bool HostCopies::Copy::check(std::vector<std::string>& findings) {
  if (checked_) {
    return true;
  }
  checked_ = true;
  const std::string end = std::string{to_host_ ? "the target" : "the source"} + " of '" + name_ + "'";
  const std::vector<std::byte> expected = to_host_ ? std::vector(data_.size(), poisoned) : data_;
  std::vector<std::byte> now(data_.size());
  if (!read_memory(host_, now)) {
    findings.push_back(end + " is gone before the host has waited for the copy");
    return false;
  }
  if (now == expected) {
    return true;
  }
  const auto first = std::ranges::mismatch(now, expected).in1 - now.begin();
  findings.push_back(end + " has changed before the host has waited for the copy, first at byte " +
                     std::to_string(first));
  return false;
}

void HostCopies::Copy::take_from(const Copy& other) {
  std::byte* begin = std::max(host_, other.host_);
  std::byte* end = std::min(host_ + data_.size(), other.host_ + other.data_.size());
  std::copy(other.data_.data() + (begin - other.host_), other.data_.data() + (end - other.host_),
            data_.data() + (begin - host_));
}

std::shared_ptr<HostCopies::Copy> HostCopies::to_host(std::string name, void* target, std::size_t bytes) {
  auto copy = std::make_shared<Copy>(std::move(name), static_cast<std::byte*>(target), bytes, true);
  for (const auto* others : {&called_, &done_}) {
    for (const std::shared_ptr<Copy>& other : *others) {
      if (!other->to_host_ && copy->overlaps(*other)) {
        other->check(findings_);  // from now on these bytes change
      }
    }
  }
  copy->poison();
  called_.push_back(copy);
  return copy;
}

std::shared_ptr<HostCopies::Copy> HostCopies::from_host(std::string name, const void* source,
                                                        std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(const_cast<void*>(source));
  auto copy = std::make_shared<Copy>(std::move(name), begin, bytes, false);
  std::memcpy(copy->data_.data(), source, bytes);
  for (const auto* others : {&called_, &done_}) {
    for (const std::shared_ptr<Copy>& other : *others) {
      copy->checked_ = copy->checked_ || (other->to_host_ && copy->overlaps(*other));  // they will change
    }
  }
  called_.push_back(copy);
  return copy;
}

void HostCopies::done(const std::shared_ptr<Copy>& copy, Stamp stamp) {
  copy->stamp_ = stamp;
  called_.remove(copy);
  done_.push_back(copy);
}

void HostCopies::bring(const std::shared_ptr<Copy>& to_host, Stamp stamp, const void* source) {
  std::memcpy(to_host->data_.data(), source, to_host->data_.size());
  done(to_host, stamp);
}

void HostCopies::take(const std::shared_ptr<Copy>& from_host, Stamp stamp, void* target) {
  for (const std::shared_ptr<Copy>& other : done_) {
    if (other->to_host_ && from_host->overlaps(*other)) {
      from_host->take_from(*other);
    }
  }
  std::memcpy(target, from_host->data_.data(), from_host->data_.size());
  done(from_host, stamp);
}

std::vector<std::string> HostCopies::settle(const Clock& host) {
  std::vector<std::shared_ptr<Copy>> arrived;
  std::erase_if(done_, [&](const std::shared_ptr<Copy>& copy) {
    if (!host.covers(copy->stamp_)) {
      return false;
    }
    const bool as_it_was = copy->check(findings_);
    if (copy->to_host_ && as_it_was) {
      std::memcpy(copy->host_, copy->data_.data(), copy->data_.size());
      arrived.push_back(copy);
    }
    return true;
  });
  for (const auto* others : {&called_, &done_}) {
    for (const std::shared_ptr<Copy>& other : *others) {
      if (other->to_host_ &&
          std::ranges::any_of(arrived, [&](const auto& copy) { return copy->overlaps(*other); })) {
        other->poison();  // it has not arrived
      }
    }
  }
  return std::exchange(findings_, {});
}

void HostCopies::forget() {
  called_.clear();
  done_.clear();
  findings_.clear();
}

}  // namespace hcp::software_gpu
