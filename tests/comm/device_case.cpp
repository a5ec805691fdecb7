#include "tests/comm/device_case.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/devices.hpp"
#include "tests/comm/test_patterns.hpp"

namespace hcp {
namespace {

MemoryLedger& ledger() {
  static MemoryLedger of_all;
  return of_all;
}

/// Each rank its own, where there are as many.
int device_of(int rank) {
  const std::vector<int> devices = find_devices().indices;
  return devices.at(static_cast<std::size_t>(rank) % devices.size());
}

}  // namespace

DeviceBytes::DeviceBytes(MemorySource& memory, std::size_t bytes)
    : memory_{&memory}, buffer_{ledger(), MemoryCategory::qkv, static_cast<std::int64_t>(bytes), memory} {}

DeviceBytes::DeviceBytes(MemorySource& memory, const std::vector<std::byte>& values)
    : DeviceBytes{memory, values.size()} {
  memory.copy_from_host(buffer_.data(), values.data(), buffer_.bytes());
}

std::vector<std::byte> DeviceBytes::values() const {
  std::vector<std::byte> values(span().size());
  memory_->copy_to_host(values.data(), buffer_.data(), buffer_.bytes());
  return values;
}

DeviceRank::DeviceRank() : device{make_cuda_back_end(device_of(world.rank()))} {}

void DeviceRank::copy(const DeviceBytes& from, const DeviceBytes& to) {
  const auto floats = static_cast<std::int64_t>(from.span().size() / sizeof(float));
  device.kernel->copy_rows({from.span().data(), DataType::fp32, floats},
                           {to.span().data(), DataType::fp32, floats}, 1, floats);
}

void DeviceRank::fill(const DeviceBytes& memory, float value) {
  device.kernel->fill(memory.floats(), static_cast<std::int64_t>(memory.span().size() / sizeof(float)),
                      value);
}

bool DeviceRank::goes_round(Transport& transport, std::size_t floats) {
  const int size = transport.size();
  if (size == 1) return true;
  const int next = (transport.rank() + 1) % size;
  const int previous = (transport.rank() + size - 1) % size;
  const std::size_t bytes = floats * sizeof(float);
  const std::vector<std::byte> own = pattern({.from = transport.rank(), .to = 0}, bytes);
  const DeviceBytes source{*device.memory, own};
  const DeviceBytes outgoing{*device.memory, bytes};
  const DeviceBytes arriving{*device.memory, bytes};
  const DeviceBytes result{*device.memory, bytes};
  std::vector<Ticket> tickets;
  copy(source, result);
  for (int step = 0; step < size; ++step) {
    fill(arriving, 3.0F);
    copy(result, outgoing);
    tickets.push_back(transport.post({.sends = {{.peer = next, .tag = 0, .parts = {outgoing.span()}}},
                                      .receives = {{.peer = previous, .tag = 0, .parts = {arriving.span()}}},
                                      .what = "step " + std::to_string(step)}));
    fill(result, 1.0F);
    tickets.back().wait();
    fill(outgoing, 2.0F);
    copy(arriving, result);
  }
  for (Ticket& ticket : tickets) ticket.finish();
  return result.values() == own;
}

void carry_out(Transport& transport, const MessageSet& messages) {
  Ticket ticket = transport.post(messages);
  ticket.wait();
  ticket.finish();
}

void exchange_with_neighbours(Transport& transport, MemorySource& memory, std::size_t bytes, int tag) {
  const int rank = transport.rank();
  const int next = (rank + 1) % transport.size();
  const int previous = (rank + transport.size() - 1) % transport.size();
  const DeviceBytes outgoing{memory, pattern({.from = rank, .to = next, .tag = tag}, bytes)};
  const DeviceBytes arriving{memory, bytes};
  carry_out(transport, {.sends = {{.peer = next, .tag = tag, .parts = {outgoing.span()}}},
                        .receives = {{.peer = previous, .tag = tag, .parts = {arriving.span()}}},
                        .what = "ring"});
  EXPECT_EQ(arriving.values(), pattern({.from = previous, .to = rank, .tag = tag}, bytes));
}

std::vector<std::size_t> exchange_with_all(Transport& transport, MemorySource& memory) {
  const int rank = transport.rank();
  const auto bytes_of = [](int from, int to) { return static_cast<std::size_t>(1 + 7 * from + 9'000 * to); };
  // Of three parts each, between which lies something else, and which lie elsewhere at the other end.
  constexpr std::array<std::size_t, 3> order_of_sender{0, 1, 2};
  constexpr std::array<std::size_t, 3> order_of_receiver{2, 0, 1};
  constexpr std::size_t gap = 256;
  const auto cut = [&](std::span<std::byte> whole, const std::array<std::size_t, 3>& order) {
    const std::size_t bytes = whole.size() - 3 * gap;
    const std::array<std::size_t, 3> sizes{bytes / 5, bytes / 3, bytes - bytes / 5 - bytes / 3};
    std::vector<std::span<std::byte>> parts(3);
    std::size_t begin = gap;
    for (const std::size_t part : order) {
      parts[part] = whole.subspan(begin, sizes[part]);
      begin += sizes[part] + gap / 2;
    }
    return parts;
  };

  std::vector<DeviceBytes> outgoing;
  std::vector<DeviceBytes> arriving;
  std::vector<std::size_t> sent(static_cast<std::size_t>(transport.size()));
  MessageSet messages{.sends = {}, .receives = {}, .what = "all to all"};
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == rank) continue;
    const std::size_t bytes = bytes_of(rank, peer);
    sent[static_cast<std::size_t>(peer)] = bytes;
    const std::vector<std::byte> payload = pattern({.from = rank, .to = peer}, bytes);
    outgoing.emplace_back(memory, std::vector<std::byte>(bytes + 3 * gap, std::byte{0xEE}));
    std::size_t copied = 0;
    Message send{.peer = peer, .tag = 0, .parts = cut(outgoing.back().span(), order_of_sender)};
    for (const std::span<std::byte> part : send.parts) {
      if (!part.empty()) memory.copy_from_host(part.data(), payload.data() + copied, std::ssize(part));
      copied += part.size();
    }
    messages.sends.push_back(send);

    arriving.emplace_back(memory, std::vector<std::byte>(bytes_of(peer, rank) + 3 * gap, std::byte{0xEE}));
    messages.receives.push_back(
        {.peer = peer, .tag = 0, .parts = cut(arriving.back().span(), order_of_receiver)});
  }
  carry_out(transport, messages);

  for (std::size_t i = 0; i < messages.receives.size(); ++i) {
    const Message& receive = messages.receives[i];
    std::vector<std::byte> arrived;
    for (const std::span<std::byte> part : receive.parts) {
      std::vector<std::byte> values(part.size());
      if (!part.empty()) memory.copy_to_host(values.data(), part.data(), std::ssize(part));
      arrived.insert(arrived.end(), values.begin(), values.end());
    }
    EXPECT_EQ(arrived, pattern({.from = receive.peer, .to = rank}, arrived.size()))
        << "from rank " << receive.peer;
    const auto untouched = std::ranges::count(arriving[i].values(), std::byte{0xEE});
    EXPECT_GE(untouched, static_cast<std::ptrdiff_t>(3 * gap)) << "written beside the parts";
  }
  return sent;
}

void expect_refusals(Transport& transport, MemorySource& memory) {
  const DeviceBytes bytes{memory, 4};
  const int other = (transport.rank() + 1) % transport.size();
  const auto post_to = [&](int peer, std::vector<std::span<std::byte>> parts) {
    carry_out(transport,
              {.sends = {{.peer = peer, .tag = 0, .parts = std::move(parts)}}, .receives = {}, .what = ""});
  };
  EXPECT_THROW(post_to(transport.rank(), {bytes.span()}), std::logic_error);
  EXPECT_THROW(post_to(transport.size(), {bytes.span()}), std::logic_error);
  EXPECT_THROW(post_to(-1, {bytes.span()}), std::logic_error);
  EXPECT_THROW(post_to(other, {}), std::logic_error);
  EXPECT_THROW(post_to(other, {bytes.span().first(0)}), std::logic_error);
}

}  // namespace hcp
