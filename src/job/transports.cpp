#include "src/job/transports.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "src/comm/mpi_transport.hpp"
#include "src/comm/staged_transport.hpp"
#include "src/job/agreement.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

const std::string& host_name(const NodeLayout& layout, std::size_t rank) {
  return layout.host_names.at(static_cast<std::size_t>(layout.host_of_rank.at(rank)));
}

/// "world rank 3 on gpu002".
std::string name_of_rank(const NodeLayout& layout, std::size_t rank) {
  return "world rank " + std::to_string(rank) + " on " + host_name(layout, rank);
}

/// "0, 1 and 2".
std::string listed(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

/// Of every rank, by world rank.
std::vector<NcclSearch> gathered(const NcclSearch& mine, const MpiCommunicator& world) {
  const std::vector<std::string> versions = all_gather(world, mine.version);
  const std::vector<std::string> reasons = all_gather(world, mine.reason);
  std::vector<NcclSearch> found;
  for (std::size_t rank = 0; rank < versions.size(); ++rank) {
    found.push_back({versions[rank], reasons[rank]});
  }
  return found;
}

Transports nccl_transports(const JobConfig& config, const BackEnd& back_end) {
  const auto nccl = std::make_shared<NcclTransports>(back_end.stream, config.serialize_levels);
  const std::string version = find_nccl().version;
  return {
      .make = [nccl](const MpiCommunicator& comm, double timeout_s) { return nccl->make(comm, timeout_s); },
      .text = "nccl " + version + ", " + nccl->order(),
      .overlap = "a stream for each communicator moves messages during computation",
      .attributes = {{"transport", "nccl"}, {"nccl_version", version}, {"nccl_order", nccl->order()}}};
}

Transports staged_transports(const std::string& reason, const BackEnd& back_end,
                             const MpiCommunicator& everyone) {
  const MpiDeviceSupport support = probe_device_support(everyone, *back_end.memory);
  const std::string path = support.path == DevicePath::direct ? "MPI takes device memory"
                                                              : "through pinned memory: " + support.reason;
  const auto staged = std::make_shared<StagedTransports>(back_end.stream, support.path);
  return {.make = [staged](const MpiCommunicator& comm,
                           double timeout_s) { return staged->make(comm, timeout_s); },
          .text = "staged" + (reason.empty() ? "" : " (" + reason + ")") + ", " + path,
          .overlap = "hosts move messages while they wait for them, and devices compute meanwhile",
          .attributes = {{"transport", "staged"}, {"staged_path", path}}};
}

}  // namespace

std::optional<std::string> shared_device(std::span<const std::string> devices, const NodeLayout& layout) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return layout.host_of_rank.at(a) == layout.host_of_rank.at(b) && devices[a] == devices[b];
  };
  for (std::size_t first = 0; first < devices.size(); ++first) {
    std::vector<std::size_t> ranks{first};
    for (std::size_t other = first + 1; other < devices.size(); ++other) {
      if (same(first, other)) {
        ranks.push_back(other);
      }
    }
    if (ranks.size() > 1) {
      return "world ranks " + listed(ranks) + " share " + devices[first] + " on " + host_name(layout, first);
    }
  }
  return std::nullopt;
}

std::optional<std::string> missing_nccl(std::span<const NcclSearch> found, const NodeLayout& layout) {
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (!found[rank].reason.empty()) {
      return "NCCL cannot be used by " + name_of_rank(layout, rank) + ": " + found[rank].reason;
    }
  }
  for (std::size_t rank = 1; rank < found.size(); ++rank) {
    if (found[rank].version != found[0].version) {
      return name_of_rank(layout, 0) + " has NCCL " + found[0].version + ", " + name_of_rank(layout, rank) +
             " has " + found[rank].version;
    }
  }
  return std::nullopt;
}

ChosenTransport choose_transport(const JobConfig& config, const std::optional<RankDevice>& device,
                                 int cp_size, const NodeLayout& layout, const MpiCommunicator& world,
                                 const std::function<NcclSearch()>& search) {
  if (!device) {
    return {.transport = TransportChoice::mpi};
  }
  if (cp_size == 1) {
    return {.transport = TransportChoice::automatic};
  }
  if (config.transport == TransportChoice::staged) {
    return {.transport = TransportChoice::staged};
  }
  std::string remedy = "start one rank per device";
  std::optional<std::string> obstacle = shared_device(all_gather(world, device->text()), layout);
  if (!obstacle) {
    remedy = "every rank needs the same NCCL, 2.14 or later";
    obstacle = missing_nccl(gathered(search(), world), layout);
  }
  if (!obstacle) {
    return {.transport = TransportChoice::nccl};
  }
  agree(world, [&] {
    if (config.transport == TransportChoice::nccl) {
      throw std::invalid_argument{"--transport nccl: " + *obstacle + "; " + remedy + ", or use staged"};
    }
  });
  return {.transport = TransportChoice::staged, .reason = *obstacle};
}

Transports make_transports(const JobConfig& config, const ChosenTransport& chosen, const BackEnd& back_end,
                           const MpiCommunicator& everyone, const TransportFactory& make_host_transport) {
  switch (chosen.transport) {
    case TransportChoice::mpi:
      return {.make = make_host_transport,
              .text = "mpi",
              .overlap = mpi_allows_helper_thread() ? "a helper thread moves messages during computation"
                                                    : "not expected: MPI does not grant MPI_THREAD_MULTIPLE",
              .attributes = {{"transport", "mpi"}}};
    case TransportChoice::nccl:
      return nccl_transports(config, back_end);
    case TransportChoice::staged:
      return staged_transports(chosen.reason, back_end, everyone);
    case TransportChoice::automatic:
      break;
  }
  return {.make = {},
          .text = "none, context-parallel groups have one rank",
          .overlap = "no messages",
          .attributes = {{"transport", "none"}}};
}

}  // namespace hcp
