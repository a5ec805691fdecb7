/// A small program with what programs of several streams do: upload, kernel, transfer on a stream of its own,
/// kernel, result to the host; two rounds in the same memory. Right as it stands; each step can be left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hcp::software_gpu {

struct ExchangeSteps {
  bool transport_waits_for_compute = true;
  bool compute_waits_for_transport = true;
  bool host_waits_before_reading = true;
  bool host_waits_before_uploading_again = true;
};

/// What the host has got, one word per thread of both rounds.
[[nodiscard]] std::vector<std::uint32_t> run_exchange(const ExchangeSteps& steps);

/// Of a run with all steps.
[[nodiscard]] std::vector<std::uint32_t> expected_exchange();

/// Wrong in results or not, and how often: the findings of run_exchange under a schedule.
struct ExchangeOutcome {
  bool right = false;
  std::vector<std::string> findings;
};
[[nodiscard]] ExchangeOutcome exchange_under(unsigned schedule, const ExchangeSteps& steps = {});

}  // namespace hcp::software_gpu
