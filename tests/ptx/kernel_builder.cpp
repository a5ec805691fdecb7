#include "tests/ptx/kernel_builder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hcp::ptx {

namespace {

constexpr std::uint32_t row_alignment = 64;  // of the values of all lanes: one vector register of the host

template <typename T>
T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::uint32_t row_bytes(int bytes) {
  return std::max(row_alignment, static_cast<std::uint32_t>(bytes * warp_lanes));
}

}  // namespace

KernelBuilder::KernelBuilder() : always_{constant(~std::uint64_t{0}, 4)} {}

Operand KernelBuilder::add_register(int bytes) {
  const Operand place = Operand::in_registers(kernel_.register_bytes);
  kernel_.register_bytes += row_bytes(bytes);
  return place;
}

Operand KernelBuilder::constant(std::uint64_t bits, int bytes) {
  if (bytes < 8) {
    bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  }
  const auto [found, is_new] = constants_.try_emplace({bits, bytes});
  if (is_new) {
    auto& values = kernel_.constants;
    found->second = Operand::in_constants(static_cast<std::uint32_t>(values.size() * 4));
    values.resize(values.size() + row_bytes(bytes) / 4);
    fill_constant(found->second, bits, bytes);
  }
  return found->second;
}

void KernelBuilder::fill_constant(Operand place, std::uint64_t bits, int bytes) {
  auto* row = reinterpret_cast<unsigned char*>(kernel_.constants.data()) + place.byte_offset();
  for (int lane = 0; lane < warp_lanes; ++lane) {
    std::memcpy(row + lane * bytes, &bits, static_cast<std::size_t>(bytes));  // little endian
  }
}

Operand KernelBuilder::special(SpecialRegister which) {
  const auto [found, is_new] = specials_.try_emplace(which);
  if (is_new) {
    found->second = add_register(4);
    kernel_.specials.push_back({which, found->second});
  }
  return found->second;
}

std::uint32_t KernelBuilder::add_local(std::int64_t bytes, std::int64_t alignment) {
  const std::uint32_t begin = round_up(kernel_.local_bytes, static_cast<std::uint32_t>(alignment));
  kernel_.local_bytes = begin + static_cast<std::uint32_t>(bytes);
  return begin;
}

std::uint32_t KernelBuilder::add_static_shared(std::int64_t bytes, std::int64_t alignment) {
  const std::uint32_t begin = round_up(kernel_.static_shared_bytes, static_cast<std::uint32_t>(alignment));
  kernel_.static_shared_bytes = begin + static_cast<std::uint32_t>(bytes);
  return shared_window + begin;
}

Operand KernelBuilder::dynamic_shared(int bytes, std::int64_t alignment) {
  dynamic_alignment_ = std::max(dynamic_alignment_, alignment);
  const auto [found, is_new] = dynamic_shared_.try_emplace(bytes);
  if (is_new) {  // not shared with an equal constant: its value is still to come
    found->second = Operand::in_constants(static_cast<std::uint32_t>(kernel_.constants.size() * 4));
    kernel_.constants.resize(kernel_.constants.size() + row_bytes(bytes) / 4);
  }
  return found->second;
}

void KernelBuilder::note_shared_access(int bytes) {
  kernel_.shared_access_bytes = std::min(kernel_.shared_access_bytes, static_cast<std::uint32_t>(bytes));
}

void KernelBuilder::note_global_access(int bytes) {
  kernel_.global_access_bytes = std::min(kernel_.global_access_bytes, static_cast<std::uint32_t>(bytes));
}

Kernel KernelBuilder::finish() {
  if (!dynamic_shared_.empty()) {
    kernel_.static_shared_bytes =
        round_up(kernel_.static_shared_bytes, static_cast<std::uint32_t>(dynamic_alignment_));
  }
  for (const auto& [bytes, place] : dynamic_shared_) {
    fill_constant(place, shared_window + kernel_.static_shared_bytes, bytes);
  }
  kernel_.local_bytes = round_up(kernel_.local_bytes, 16U);
  return std::move(kernel_);
}

}  // namespace hcp::ptx
