/// Operations of streams: how the doubles of libraries have a stream do something, and what they tell of the
/// memory that it touches. For whoever holds the lock of a Call (gpu.hpp), as all that runs in a stream does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/software_gpu/clock.hpp"

namespace hcp::software_gpu {

struct Operation {
  std::string name;  ///< in findings: "cudaMemcpyAsync of 64 bytes to the host"
  int stream = 0;    ///< number of its stream, from 1 in the order in which they were made
  int device = 0;    ///< of its stream
  Stamp stamp;
  Clock clock;  ///< what is done before it begins, and itself
};

/// Tries to do it, with the memory of the device open. May neither wait nor call the runtime.
/// @param first  of this operation's tries
/// @return true: done; false: not yet, streams that are not behind it go on and it is asked again
using Advance = std::function<bool(const Operation& operation, bool first)>;

enum class AccessMode : std::uint8_t { read, write };

/// The operation touches these bytes: of its device or of pinned memory; other memory of the host is not
/// watched. A finding, if they do not all lie in one piece of memory that lives, if an earlier access is not
/// ordered before the operation (one of the two a write), and if nobody has written bytes of the device that
/// are read. Bytes of the device that are written have a value from then on.
void access(const Operation& operation, const void* begin, std::size_t bytes, AccessMode mode);

/// NaN that nobody has written, for bytes of the device that an operation will write before it is done.
/// After access().
void poison(void* begin, std::size_t bytes);

/// What poison() has taken: these bytes have a value again.
void set_written(const void* begin, std::size_t bytes);

/// The host itself touches these bytes now; nothing, where they are not pinned memory. A finding, if it has
/// not waited for all operations that did or will touch them (one of the two a write). Takes the lock itself:
/// for wrappers of MPI's calls.
/// @param name  in findings: "MPI_Isend"
void host_access(const std::string& name, const void* begin, std::size_t bytes, AccessMode mode);

/// Runs some of what waits in streams, as a device would while the host does something else. Takes the lock
/// itself.
void progress();

/// A finding, told by take_misuses(): once, and with the first of its places.
void report(const std::string& finding, const std::string& place = {});

}  // namespace hcp::software_gpu
