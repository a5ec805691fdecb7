/// One block: its shared memory, its warps and their barriers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/access_clock.hpp"
#include "tests/ptx/launch_state.hpp"
#include "tests/ptx/report.hpp"
#include "tests/ptx/shared_memory.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

/// A warp's arrival at a barrier.
struct Arrival {
  std::uint32_t barrier = 0;
  std::uint32_t threads = 0;  ///< that the barrier waits for; 0: all of the block that have not ended
  bool waits = true;          ///< false for bar.arrive
  // bar.red
  LaneMask predicate = 0;
  const Instruction* reduction = nullptr;  ///< whose results the warp gets when it goes on
};

class Block {
 public:
  explicit Block(const LaunchState& launch);

  /// Runs one block of the grid from begin to end. Results are added to findings() and counters().
  void run(const Extent& index);

  [[nodiscard]] const LaunchState& launch() const { return launch_; }
  [[nodiscard]] const Extent& index() const { return index_; }
  [[nodiscard]] std::uint32_t linear_index() const;
  [[nodiscard]] SharedMemory& shared() { return shared_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] std::vector<Finding>& findings() { return findings_; }
  [[nodiscard]] std::uint32_t barriers_of_all() const { return barriers_of_all_; }

  void arrive(Warp& warp, const Instruction& instruction, const Arrival& arrival);

  void report(Finding finding);
  /// The block cannot go on: its warps end.
  [[nodiscard]] bool has_failed() const { return failed_; }
  void fail() { failed_ = true; }

 private:
  struct Barrier {
    std::uint32_t threads = 0;
    std::uint32_t arrived_threads = 0;
    std::uint32_t arrived_warps = 0;  // one bit each
    std::uint32_t true_threads = 0;   // bar.red
    std::uint32_t counted_threads = 0;
    std::vector<std::pair<Warp*, const Instruction*>> waiting;
    WarpClock known;
  };

  void reset(const Extent& index);
  void run_warps();
  [[nodiscard]] std::uint32_t live_warps() const;
  void release_if_complete(Barrier& barrier);
  void report_deadlock();

  const LaunchState& launch_;
  Extent index_{};
  SharedMemory shared_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<std::size_t> order_;
  std::array<Barrier, 16> barriers_;
  std::uint32_t barriers_of_all_ = 0;
  bool failed_ = false;
  Counters counters_;
  std::vector<Finding> findings_;
};

}  // namespace hcp::ptx
