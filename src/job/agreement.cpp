#include "src/job/agreement.hpp"

#include <string>

#include "topology/mpi_collectives.hpp"

namespace hcp {

void agree(const MpiCommunicator& comm, const std::function<void()>& action) {
  std::string message;
  bool failed = false;
  try {
    action();
  } catch (const std::invalid_argument& error) {
    failed = true;
    message = error.what();
  }
  const std::int64_t nobody = comm.size();
  const std::int64_t first = all_reduce(comm, Reduction::min, failed ? std::int64_t{comm.rank()} : nobody);
  if (first != nobody) {
    throw InputError{broadcast(comm, message, static_cast<int>(first))};
  }
}

}  // namespace hcp
