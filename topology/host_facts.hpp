/// What a rank knows about the machine under it: host, CPUs it may run on, threads it should use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hcp {

/// Facts of the calling process; its affinity mask is read at the call, so ask before threads are pinned.
struct HostFacts {
  std::string host_name;
  std::string binding;  ///< CPUs (hardware threads) of the affinity mask, "0-3,8"
  int cores = 1;        ///< physical cores that these CPUs belong to
};

/// @throws std::system_error if the operating system does not answer
[[nodiscard]] HostFacts this_host();

/// Ascending CPU numbers in Linux's list format, [0,1,2,3,8] -> "0-3,8".
[[nodiscard]] std::string cpu_list_text(std::span<const int> cpus);

/// @throws std::invalid_argument if `text` is not a list of CPUs
[[nodiscard]] std::vector<int> cpus_of_list(std::string_view text);

/// How many of the bindings share at least one CPU with `binding`; itself is one of them.
/// @param bindings_on_host of all ranks of one real host, the asking one included
[[nodiscard]] int ranks_sharing_cpus(std::span<const std::string> bindings_on_host, std::string_view binding);

/// Threads for a rank that was told no number: the cores of its mask divided by the ranks that share them,
/// at least 1.
[[nodiscard]] int default_threads_per_rank(int cores, int ranks_sharing_them);

}  // namespace hcp
