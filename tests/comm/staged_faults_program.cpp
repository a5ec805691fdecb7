/// What the staged transport makes of a program's faults, of which no process is left that could tell;
/// check_staged_faults.sh runs them one by one and looks at the outcome.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/comm/staged_transport.hpp"
#include "tests/comm/device_case.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {
namespace {

class Faults : DeviceRank {
 public:
  /// The program goes on as if its messages did not matter.
  void never_finished() {
    const auto transport = make(20);
    if (world.rank() == 0) transport->post(receive_from(1, 8)).wait();
    if (world.rank() == 1) transport->post(send_to(0, 8)).wait();
  }

  /// While messages are open that nobody will ever answer.
  void failure_elsewhere() {
    const auto transport = make(3600);
    const Ticket receives = transport->post(receive_from((world.rank() + 1) % world.size(), 100'000));
    const Ticket sends = transport->post(send_to((world.rank() + 1) % world.size(), 100'000));
    throw std::runtime_error{"a failure elsewhere"};
  }

  void peer_that_never_answers() {
    const auto transport = make(0.3);
    if (world.rank() == 0) transport->post(receive_from(1, 8)).wait();
    if (world.rank() == 1) transport->post(receive_from(0, 8)).wait();
  }

  void less_than_expected() {
    const auto transport = make(20);
    if (world.rank() == 0) transport->post(receive_from(1, 60)).wait();
    if (world.rank() == 1) carry_out(*transport, send_to(0, 50));
  }

  void more_than_expected() {
    const auto transport = make(20);
    if (world.rank() == 0) transport->post(receive_from(1, 60)).wait();
    if (world.rank() == 1) carry_out(*transport, send_to(0, 70));
  }

 private:
  std::unique_ptr<Transport> make(double timeout_s) { return transports_.make(world, timeout_s); }
  MessageSet send_to(int peer, std::size_t bytes) const {
    return {.sends = {{.peer = peer, .tag = 0, .parts = {outgoing_.span().first(bytes)}}},
            .receives = {},
            .what = "step 1"};
  }
  MessageSet receive_from(int peer, std::size_t bytes) const {
    return {.sends = {},
            .receives = {{.peer = peer, .tag = 0, .parts = {arriving_.span().first(bytes)}}},
            .what = "step 1"};
  }

  StagedTransports transports_{device.stream, DevicePath::pinned};
  DeviceBytes outgoing_{*device.memory, std::vector<std::byte>(100'000)};
  DeviceBytes arriving_{*device.memory, 100'000};
};

const std::map<std::string, void (Faults::*)()> faults{
    {"never_finished", &Faults::never_finished},
    {"failure_elsewhere", &Faults::failure_elsewhere},
    {"peer_that_never_answers", &Faults::peer_that_never_answers},
    {"less_than_expected", &Faults::less_than_expected},
    {"more_than_expected", &Faults::more_than_expected},
};

}  // namespace
}  // namespace hcp

int main(int argc, char** argv) {
  const hcp::MpiEnvironment mpi{argc, argv};
  try {
    hcp::Faults run;
    (run.*hcp::faults.at(argv[1]))();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    hcp::abort_all_ranks(3);
  }
  return 0;
}
