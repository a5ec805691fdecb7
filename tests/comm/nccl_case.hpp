/// What tests of the NCCL transport have in common.
#pragma once

#include <ostream>

#include "src/comm/nccl_transport.hpp"
#include "tests/comm/device_case.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp {

enum class Levels { concurrent, serialized };

/// When the software GPU does what it is asked for, and whether sets of different levels may go at once.
struct NcclOrder {
  unsigned schedule = 0;
  Levels levels = Levels::concurrent;
};

inline void PrintTo(const NcclOrder& order, std::ostream* out) {
  *out << "schedule " << order.schedule << (order.levels == Levels::serialized ? ", serialized" : "");
}

/// Before anything is made.
struct InSchedule {
  explicit InSchedule(const NcclOrder& order) { software_gpu::set_schedule(order.schedule); }
};

class NcclCase : public testing::TestWithParam<NcclOrder>, protected InSchedule, protected DeviceRank {
 protected:
  static constexpr double patience_s = 20;

  NcclCase() : InSchedule{GetParam()}, transports{device.stream, GetParam().levels == Levels::serialized} {}

  [[nodiscard]] std::unique_ptr<Transport> make_transport(const MpiCommunicator& comm) {
    return transports.make(comm, patience_s);
  }

  NcclTransports transports;
};

inline auto all_orders() {
  return testing::Values(NcclOrder{0, Levels::concurrent}, NcclOrder{1, Levels::concurrent},
                         NcclOrder{2, Levels::concurrent}, NcclOrder{3, Levels::concurrent},
                         NcclOrder{4, Levels::concurrent}, NcclOrder{5, Levels::serialized},
                         NcclOrder{6, Levels::serialized});
}

}  // namespace hcp
