/// One block of a launch: its threads, warps and shared memory. Only one block runs at a time.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/simt/async_copies.hpp"
#include "tests/simt/launch.hpp"

namespace hcp::simt {

inline constexpr int warp_lanes = 32;

/// What lanes of a warp meet for.
enum class Meeting : std::uint8_t { exchange, load_matrices, load_transposed_matrices, multiply };

struct Thread {
  boost::context::fiber fiber;                 ///< where it stopped
  boost::context::fiber* scheduler = nullptr;  ///< to go back to, while it runs
  int number = 0;
  bool waits = false;
  bool done = false;
  AsyncCopies copies;
};

struct Warp {
  std::uint32_t arrived = 0;  ///< lanes, one bit each
  Meeting meeting = Meeting::exchange;
  void* arguments[warp_lanes] = {};
};

class Block {
 public:
  Block(const Launch& launch, int x, int y, const std::function<void()>& kernel);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() = default;

  /// Until all threads are done.
  /// @throws Fault
  void run();

  /// The block that runs.
  [[nodiscard]] static Block& current() { return *current_; }

  // What threads of the block call.
  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] int x() const { return x_; }
  [[nodiscard]] int y() const { return y_; }
  [[nodiscard]] Thread& thread() { return *running_; }
  [[nodiscard]] std::byte* shared_memory() { return shared_memory_.get(); }

  /// Stops the thread that calls, for good.
  [[noreturn]] void fail(const std::string& message);
  /// A fault unless `bytes` at `pointer` are in shared memory, aligned to their number.
  void check_shared(const void* pointer, std::size_t bytes);
  void barrier();
  /// Waits for the other lanes of the warp; the last one calls work(arguments by lane).
  void meet(Meeting meeting, void* argument, void (*work)(void* const* arguments));

 private:
  void start(Thread& thread, const std::function<void()>& kernel);
  /// Runs a thread until it waits.
  /// @return whether it could run; so below
  bool resume(Thread& thread);
  bool resume_lanes(std::size_t warp, bool backwards);
  bool resume_warp(std::size_t warp, int most_rounds);
  bool resume_in_order();
  /// From the thread that runs back to run().
  void leave();
  void wait();

  static inline Block* current_ = nullptr;

  Launch launch_;
  int x_;
  int y_;
  std::unique_ptr<std::byte[], void (*)(std::byte*)> shared_memory_;
  std::vector<Warp> warps_;
  std::vector<Thread> threads_;
  Thread* running_ = nullptr;
  std::vector<Thread*> at_barrier_;
  std::optional<std::string> fault_;
  std::mt19937 random_;
};

}  // namespace hcp::simt
