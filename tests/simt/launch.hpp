/// Runs kernel bodies on the host, without a GPU and without its compiler: each thread of a block is a fiber,
/// what a warp does together is a meeting of its 32 fibers, and who runs when is chosen to bring faults to
/// light. Blocks run one after another.
///
/// Kernels are compiled by the host's compiler with tests/simt/include before the root of the repository in
/// the include path: its kernels/cuda/device.cuh takes the place of the device layer.
///
/// Faults that end a launch: lanes of a warp in different operations, or some of them only; a barrier that
/// not all threads of the block reach; shared memory beyond its end or not aligned; a thread that ends with a
/// copy for which it has not waited. Other faults show as NaN in the results: shared memory is NaN until it
/// is written, and the target of an asynchronous copy from its begin until the thread that began it has
/// waited. Two blocks that write to the same place are not noticed.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace hcp::simt {

/// What a kernel did wrong.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Who runs when. In warp-wise orders a warp runs until it waits for others: only they find a barrier that is
/// missing, because with all threads abreast nobody comes too early.
enum class Order : std::uint8_t { abreast, abreast_backwards, warp_wise, warp_wise_backwards, random };

inline constexpr Order all_orders[] = {Order::abreast, Order::abreast_backwards, Order::warp_wise,
                                       Order::warp_wise_backwards, Order::random};

struct Launch {
  int blocks_x = 1;
  int blocks_y = 1;
  int threads = 32;  ///< of a block, a multiple of 32
  int shared_bytes = 0;
  Order order = Order::warp_wise;
  unsigned seed = 1;  ///< of the random order
};

/// Calls `kernel` once for each thread of each block.
/// @throws Fault if the kernel does something that a device does not define
void launch(const Launch& launch, const std::function<void()>& kernel);

}  // namespace hcp::simt
