/// How the program ends, for shells and batch systems.
#pragma once

namespace hcp {

enum class ExitStatus : int {
  success = 0,  ///< verified, or not asked to be
  failed = 1,   ///< a wrong result, or a broken guard
  input = 2,    ///< the user's mistake: nothing was run
  error = 3,    ///< a library or the machine failed, a rank gave up waiting, or the trace is incomplete
  stopped = 4,  ///< by a signal: what was done is flushed, and a requeued job repeats the cell
};

}  // namespace hcp
