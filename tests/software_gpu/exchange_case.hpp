/// A small program with what programs of several streams do: upload, kernel, transfer on a stream of its own,
/// kernel, result to the host; two rounds in the same memory. Right as it stands; each step can be left out.
#pragma once

#include <string>
#include <vector>

namespace hcp::software_gpu {

struct ExchangeSteps {
  bool transport_waits_for_compute = true;
  bool compute_waits_for_transport = true;
  bool host_waits_before_reading = true;
  bool host_waits_before_uploading_again = true;
};

struct ExchangeOutcome {
  bool right = false;  ///< what the host has got in the end
  std::vector<std::string> findings;
};
[[nodiscard]] ExchangeOutcome exchange_under(unsigned schedule, const ExchangeSteps& steps = {});

}  // namespace hcp::software_gpu
