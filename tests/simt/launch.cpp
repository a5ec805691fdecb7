#include "tests/simt/launch.hpp"

#include <stdexcept>

#include "tests/simt/block.hpp"

namespace hcp::simt {

void launch(const Launch& launch, const std::function<void()>& kernel) {
  if (launch.threads < warp_lanes || launch.threads % warp_lanes != 0) {
    throw std::invalid_argument{"a block of " + std::to_string(launch.threads) +
                                " threads; it must be a multiple of 32"};
  }
  for (int y = 0; y < launch.blocks_y; ++y) {
    for (int x = 0; x < launch.blocks_x; ++x) {
      Block{launch, x, y, kernel}.run();
    }
  }
}

}  // namespace hcp::simt
