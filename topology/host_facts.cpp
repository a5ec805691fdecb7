#include "topology/host_facts.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

namespace hcp {

namespace {

std::string this_host_name() {
  std::array<char, 256> name{};  // POSIX: at most 255 bytes
  if (gethostname(name.data(), name.size()) != 0) {
    throw std::system_error{errno, std::generic_category(), "gethostname"};
  }
  name.back() = '\0';
  return name.data();
}

/// CPUs of the calling thread's affinity mask, ascending.
std::vector<int> allowed_cpus() {
  // The kernel refuses a mask smaller than its own, so it is enlarged until it fits.
  std::vector<cpu_set_t> mask(1);
  while (sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) != 0) {
    if (errno != EINVAL || mask.size() > 1024) {
      throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
    }
    mask.resize(2 * mask.size());
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < static_cast<int>(mask.size()) * CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), mask.size() * sizeof(cpu_set_t), mask.data())) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

/// Hardware threads of one core count once. Where the system hides its cores, every CPU counts.
int core_count(const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    std::ifstream file{"/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list"};
    std::string siblings;
    cores.insert(std::getline(file, siblings) ? siblings : std::to_string(cpu));
  }
  return static_cast<int>(cores.size());
}

int cpu_number(std::string_view text, std::string_view list) {
  int cpu = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc{} || end != text.data() + text.size() || cpu < 0) {
    throw std::invalid_argument{"CPU list \"" + std::string{list} + "\"; it must look like 0-3,8"};
  }
  return cpu;
}

}  // namespace

HostFacts this_host() {
  const std::vector<int> cpus = allowed_cpus();
  return {.host_name = this_host_name(), .binding = cpu_list_text(cpus), .cores = core_count(cpus)};
}

std::string cpu_list_text(std::span<const int> cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) {
      ++last;
    }
    text += (text.empty() ? "" : ",") + std::to_string(cpus[first]);
    if (last > first) {
      text += "-" + std::to_string(cpus[last]);
    }
    first = last + 1;
  }
  return text;
}

std::vector<int> cpus_of_list(std::string_view text) {
  std::vector<int> cpus;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t hyphen = part.find('-');
    const int first = cpu_number(part.substr(0, hyphen), text);
    const int last = hyphen == std::string_view::npos ? first : cpu_number(part.substr(hyphen + 1), text);
    for (int cpu = first; cpu <= last; ++cpu) {
      cpus.push_back(cpu);
    }
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return cpus;
}

int ranks_sharing_cpus(std::span<const std::string> bindings_on_host, std::string_view binding) {
  const std::vector<int> mine = cpus_of_list(binding);
  return static_cast<int>(
      std::count_if(bindings_on_host.begin(), bindings_on_host.end(), [&](const std::string& other) {
        const std::vector<int> theirs = cpus_of_list(other);
        return std::find_first_of(mine.begin(), mine.end(), theirs.begin(), theirs.end()) != mine.end();
      }));
}

int default_threads_per_rank(int cores, int ranks_sharing_them) {
  return std::max(1, cores / std::max(1, ranks_sharing_them));
}

}  // namespace hcp
