/// What moves tensors between the ranks of a run, and why that.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/back_end.hpp"
#include "src/comm/nccl_transport.hpp"
#include "src/job/cell_run.hpp"
#include "src/job/job_config.hpp"
#include "src/job/rank_device.hpp"
#include "src/trace/trace_file.hpp"
#include "topology/node_layout.hpp"

namespace hcp {

/// What the options and the machine come to.
struct ChosenTransport {
  TransportChoice transport = TransportChoice::mpi;  ///< auto: nothing is moved between devices
  std::string reason{};  ///< where the user left the choice and it is staged, what decided; else empty
};

/// Why ranks cannot move tensors by NCCL: two of them would share a device. Nothing if they can.
/// @param devices  [world rank]: name and PCI bus id
[[nodiscard]] std::optional<std::string> shared_device(std::span<const std::string> devices,
                                                       const NodeLayout& layout);

/// The same for want of a library, or because ranks have different ones.
/// @param found  [world rank]
[[nodiscard]] std::optional<std::string> missing_nccl(std::span<const NcclSearch> found,
                                                      const NodeLayout& layout);

/// Between ranks that compute on `device`, or on their hosts where that is none. Collective over `world`, the
/// same answer on all ranks.
/// @param search  finds NCCL; asked only if the answer depends on it
/// @throws InputError if the user insists on NCCL and cannot have it
[[nodiscard]] ChosenTransport choose_transport(const JobConfig& config,
                                               const std::optional<RankDevice>& device, int cp_size,
                                               const NodeLayout& layout, const MpiCommunicator& world,
                                               const std::function<NcclSearch()>& search);

/// How a run moves tensors.
struct Transports {
  TransportFactory make;    ///< empty where nothing is moved
  std::string text;         ///< for the header: "nccl 2.28.9, serialized"
  std::string overlap;      ///< for the header: what moves messages while ranks compute
  NamedTexts attributes{};  ///< for the trace: transport, and what of nccl_version, nccl_order, staged_path
};

/// Collective over `everyone`. What the transports of a rank share lives as long as `make` or one of them.
/// @param back_end  of this rank
/// @param make_host_transport  the factory where tensors lie on hosts
/// @throws std::runtime_error if a library fails
[[nodiscard]] Transports make_transports(const JobConfig& config, const ChosenTransport& chosen,
                                         const BackEnd& back_end, const MpiCommunicator& everyone,
                                         const TransportFactory& make_host_transport);

}  // namespace hcp
