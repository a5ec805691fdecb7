#include "tests/software_gpu/devices.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <system_error>

namespace hcp::software_gpu {
namespace {

thread_local int current = 0;

std::optional<int> number_from(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional{number} : std::nullopt;
}

}  // namespace

void Devices::set(int installed, std::optional<std::string_view> visible) {
  visible_.clear();
  if (!visible) {
    visible_.resize(static_cast<std::size_t>(installed));
    std::iota(visible_.begin(), visible_.end(), 0);
    return;
  }
  for (std::string_view rest = *visible; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<int> number = number_from(rest.substr(0, comma));
    if (!number || *number < 0 || *number >= installed || std::ranges::count(visible_, *number) > 0) {
      return;
    }
    visible_.push_back(*number);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

int Devices::pci_bus(int device) const {
  constexpr int first_bus = 0x10;
  return first_bus + visible_.at(static_cast<std::size_t>(device));
}

std::string Devices::pci_bus_id(int device) const {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0000:%02X:00.0", static_cast<unsigned>(pci_bus(device)) & 0xffU);
  return text.data();
}

int current_device() {
  return current;
}

void make_current(int device) {
  current = device;
}

}  // namespace hcp::software_gpu
