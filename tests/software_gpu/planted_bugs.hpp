/// Bugs of a program that the doubles commit in its stead, at the border of the library: a call is not done,
/// or done differently from how the program asks for it. To show that each would be found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hcp::software_gpu {

enum class Bug : std::uint8_t {
  skip_wait_on_compute,    ///< a stream does not wait for an event of a stream that runs kernels
  skip_wait_on_transport,  ///< a stream does not wait for an event of a stream that runs none
  early_record,            ///< an event does not cover the last copy, kernel or message before it
  wrong_stream,            ///< a kernel runs in a stream that nobody knows
  skip_synchronise,        ///< the host does not wait for a stream, an event or a device
  early_query,             ///< the host takes an event for one that has passed without looking
  lost_fill,               ///< a kernel with "fill" in its name is not launched
  lost_copy,               ///< a copy is not made
  wrong_peer,              ///< NCCL: a message is for, or from, the rank after the right one
  half_count,              ///< NCCL: a message or collective of half its size
  swapped_groups,  ///< NCCL: a group, or a call outside of any, is launched after the one that follows it
  two_streams,     ///< NCCL: a call gives another of the device's streams
  ignored_abort,   ///< NCCL: a communicator is not aborted
  leaked_communicator,  ///< NCCL: a communicator is not destroyed
};

[[nodiscard]] std::string name_of(Bug bug);  ///< "wrong_peer"
/// @throws std::invalid_argument with all names
[[nodiscard]] Bug bug_from(std::string_view name);

/// From now on, in this process: the nth call, from 1, that could have the bug has it. One bug at a time.
void plant(Bug bug, int nth);

/// Nothing is planted any more. @return whether a call had the bug
bool uproot();

/// For the doubles, under the GPU's lock, once for each call that could have it: whether this one has.
[[nodiscard]] bool has_bug(Bug bug);

}  // namespace hcp::software_gpu
