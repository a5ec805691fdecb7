#include "tests/software_gpu/nccl/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "tests/software_gpu/nccl/data_type.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/nccl/rendezvous.hpp"
#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {
namespace {

/// What travels before a message's bytes.
struct Header {
  std::uint64_t bytes = 0;
  ncclDataType_t type = ncclInt8;
  Function function = Function::point_to_point;
};

constexpr const char* senders[] = {"ncclSend", "ncclAllGather", "ncclReduceScatter", "ncclAllReduce",
                                   "ncclBroadcast"};
constexpr const char* receivers[] = {"ncclRecv", "ncclAllGather", "ncclReduceScatter", "ncclAllReduce",
                                     "ncclBroadcast"};

std::string amount(std::size_t bytes, ncclDataType_t type) {
  return " of " + std::to_string(bytes) + " bytes of " + std::string{name_of(type)};
}

}  // namespace

void Exchange::send(const MessageEnd& end, std::span<const std::byte> bytes) {
  sends_.push_back({.end = end, .bytes = std::vector<std::byte>(sizeof(Header) + bytes.size())});
  Transfer& transfer = sends_.back();
  const Header header{.bytes = bytes.size(), .type = end.type, .function = end.function};
  std::memcpy(transfer.bytes.data(), &header, sizeof header);
  std::memcpy(transfer.bytes.data() + sizeof header, bytes.data(), bytes.size());
  PMPI_Issend(transfer.bytes.data(), static_cast<int>(transfer.bytes.size()), MPI_BYTE,
              communicator_->world_ranks.at(static_cast<std::size_t>(end.peer)),
              message_tag(communicator_->number, MessageKind::data), nccl_world(), &transfer.request);
  transfer.started = true;
}

void Exchange::receive(const MessageEnd& end) {
  receives_.push_back({.end = end});
}

void Exchange::start_receive(Transfer& transfer) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  PMPI_Improbe(communicator_->world_ranks.at(static_cast<std::size_t>(transfer.end.peer)),
               message_tag(communicator_->number, MessageKind::data), nccl_world(), &found, &message,
               &status);
  if (found == 0) {
    return;
  }
  int bytes = 0;
  PMPI_Get_count(&status, MPI_BYTE, &bytes);
  transfer.bytes.resize(static_cast<std::size_t>(bytes));
  PMPI_Imrecv(transfer.bytes.data(), bytes, MPI_BYTE, &message, &transfer.request);
  transfer.started = true;
}

void Exchange::check(const Transfer& receive) {
  Header sent;
  std::memcpy(&sent, receive.bytes.data(), sizeof sent);
  const MessageEnd& end = receive.end;
  if (sent.function != end.function || sent.bytes != end.bytes || sent.type != end.type) {
    report(name_ + ": " + receivers[static_cast<int>(end.function)] + amount(end.bytes, end.type) +
           " meets " + senders[static_cast<int>(sent.function)] + amount(sent.bytes, sent.type) +
           " of rank " + std::to_string(end.peer));
  }
}

bool Exchange::advance() {
  std::set<int> waiting_for;  // peers with an earlier message that is not there
  for (Transfer& receive : receives_) {
    if (!receive.started && !waiting_for.contains(receive.end.peer)) {
      start_receive(receive);
    }
    if (!receive.started) {
      waiting_for.insert(receive.end.peer);
    }
  }
  bool all_done = true;
  for (auto* transfers : {&sends_, &receives_}) {
    for (Transfer& transfer : *transfers) {
      if (transfer.started && !transfer.done) {
        int done = 0;
        PMPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE);
        transfer.done = done != 0;
        if (transfer.done && transfers == &receives_) {
          check(transfer);
          transfer.bytes.resize(sizeof(Header) + transfer.end.bytes, std::byte{0xff});
        }
      }
      all_done = all_done && transfer.done;
    }
  }
  return all_done;
}

std::span<const std::byte> Exchange::arrived(std::size_t receive) const {
  return std::span{receives_.at(receive).bytes}.subspan(sizeof(Header));
}

Exchange::~Exchange() {
  static auto& left = *new std::vector<std::vector<std::byte>>;  // MPI may still use them
  for (auto* transfers : {&sends_, &receives_}) {
    for (Transfer& transfer : *transfers) {
      if (transfer.started && !transfer.done) {
        left.push_back(std::move(transfer.bytes));
        PMPI_Request_free(&transfer.request);
      }
    }
  }
}

}  // namespace hcp::software_gpu
