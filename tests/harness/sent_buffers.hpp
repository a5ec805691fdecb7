/// What a program sends, for whoever watches its memory.
#pragma once

#include <mpi.h>

namespace hcp {

/// Called by wrappers of MPI's sends before anything is sent, in programs that have it: nullptr in others.
/// @param call  "MPI_Isend"
[[gnu::weak]] void watch_sent_buffer(const char* call, const void* buffer, int count, MPI_Datatype datatype);

}  // namespace hcp
