/// What the user got wrong, as an error of all ranks, also where one rank alone finds it.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "topology/mpi_environment.hpp"

namespace hcp {

/// The user's mistake, and every rank knows of it: all leave by themselves. Thrown by agree() alone; a
/// std::invalid_argument that did not come through it is one rank's own error.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Collective. Runs `action`, which may not communicate.
/// @throws InputError on every rank if `action` throws std::invalid_argument on any, with the message of the
/// lowest of these ranks
void agree(const MpiCommunicator& comm, const std::function<void()>& action);

/// The same for an action that makes something.
/// @throws InputError as agree()
template <typename Make>
[[nodiscard]] std::invoke_result_t<Make> agree_on(const MpiCommunicator& comm, const Make& make) {
  std::optional<std::invoke_result_t<Make>> made;
  agree(comm, [&] { made.emplace(make()); });
  return *std::move(made);
}

}  // namespace hcp
