/// The shim itself: what it computes, and that it finds what it promises to find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "tests/simt/launch.hpp"

namespace hcp::simt {
namespace {

using testing::Each;
using testing::HasSubstr;

float* shared_floats() {
  HCP_SHARED_MEMORY(memory);
  return reinterpret_cast<float*>(memory);
}

/// The message of the fault in every order, or "none".
void expect_fault(const Launch& launch, const std::string& expected, const std::function<void()>& kernel) {
  for (const Order order : all_orders) {
    std::string message = "none";
    try {
      Launch in_order = launch;
      in_order.order = order;
      simt::launch(in_order, kernel);
    } catch (const Fault& fault) {
      message = fault.what();
    }
    EXPECT_THAT(message, HasSubstr(expected)) << static_cast<int>(order);
  }
}

TEST(Simt, EveryThreadOfEveryBlockRunsOnce) {
  for (const Order order : all_orders) {
    std::vector<int> runs(2 * 3 * 64);
    launch({.blocks_x = 2, .blocks_y = 3, .threads = 64, .order = order}, [&runs] {
      const int block = device::block_y() * device::blocks_x() + device::block_x();
      ++runs.at(static_cast<std::size_t>(64 * block + device::thread()));
    });
    EXPECT_THAT(runs, Each(1));
  }
}

TEST(Simt, LanesExchangeWithTheirPartner) {
  for (const Order order : all_orders) {
    std::vector<float> results(64);
    launch({.threads = 64, .order = order}, [&results] {
      results.at(static_cast<std::size_t>(device::thread())) =
          device::exchange(static_cast<float>(device::thread()), 5);
    });
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i], static_cast<float>(i ^ 5));
    }
  }
}

/// c = a b^T of small whole numbers, by the fragments that mma_tile.cuh describes.
void expect_products(DataType type) {
  float a[16][16];
  float b[8][16];
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) {
      a[i][k] = static_cast<float>((3 * i + 5 * k) % 11 - 5);
      b[i % 8][k] = static_cast<float>((7 * i % 8 + 2 * k) % 9 - 4);
    }
  }
  float c[16][8];
  launch({.threads = 32}, [&, type] {
    const int g = device::thread() / 4;
    const int t = device::thread() % 4 * 2;
    const auto pair = [type](const float* values) { return device::pack(type, values[0], values[1]); };
    const std::uint32_t left[4]{pair(&a[g][t]), pair(&a[g + 8][t]), pair(&a[g][t + 8]),
                                pair(&a[g + 8][t + 8])};
    float sums[4]{100.0F, 100.0F, 100.0F, 100.0F};
    if (type == DataType::bf16) {
      device::multiply_bf16(sums, left, pair(&b[g][t]), pair(&b[g][t + 8]));
    } else {
      device::multiply_fp16(sums, left, pair(&b[g][t]), pair(&b[g][t + 8]));
    }
    for (int i = 0; i < 4; ++i) {
      c[g + i / 2 * 8][t + i % 2] = sums[i];
    }
  });
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float expected = 100.0F;
      for (int k = 0; k < 16; ++k) {
        expected += a[i][k] * b[j][k];
      }
      EXPECT_EQ(c[i][j], expected) << i << ' ' << j;
    }
  }
}

TEST(Simt, ProductsOfBothTypes) {
  expect_products(DataType::bf16);
  expect_products(DataType::fp16);
}

TEST(Simt, MatricesComeInFragments) {
  for (const bool transposed : {false, true}) {
    launch({.threads = 32, .shared_bytes = 512}, [transposed] {
      HCP_SHARED_MEMORY(memory);
      auto* const elements = reinterpret_cast<std::uint16_t*>(memory);  // [4, 8, 8]
      const int lane = device::thread();
      for (int i = 0; i < 8; ++i) {
        elements[8 * lane + i] = static_cast<std::uint16_t>(8 * lane + i);
      }
      device::barrier();
      std::uint32_t fragment[4];
      if (transposed) {
        device::load_transposed_matrices(fragment, elements + 8 * lane);
      } else {
        device::load_matrices(fragment, elements + 8 * lane);
      }
      for (int matrix = 0; matrix < 4; ++matrix) {
        for (int half = 0; half < 2; ++half) {
          const int row = transposed ? lane % 4 * 2 + half : lane / 4;
          const int column = transposed ? lane / 4 : lane % 4 * 2 + half;
          EXPECT_EQ(fragment[matrix] >> (16 * half) & 0xFFFF,
                    static_cast<unsigned>(64 * matrix + 8 * row + column));
        }
      }
    });
  }
}

TEST(Simt, SharedMemoryIsNanUntilItIsWritten) {
  launch({.threads = 32, .shared_bytes = 128},
         [] { EXPECT_TRUE(std::isnan(shared_floats()[device::thread()])); });
}

TEST(Simt, CopiesLandWhenTheirThreadWaits) {
  const std::vector<float> source(32 * 4, 2.0F);
  launch({.threads = 32, .shared_bytes = 1024}, [&source] {
    float* const first = shared_floats() + 4 * device::thread();
    float* const second = first + 128;
    device::copy_async(first, source.data(), true);
    device::commit_copies();
    device::copy_async(second, nullptr, false);
    device::commit_copies();
    EXPECT_TRUE(std::isnan(first[3]));
    device::wait_for_copies<1>();
    EXPECT_EQ(first[3], 2.0F);
    EXPECT_TRUE(std::isnan(second[3]));
    device::wait_for_copies<0>();
    EXPECT_EQ(second[3], 0.0F);
  });
}

/// Warps hand a value on through shared memory. Whether a missing barrier shows depends on the order; in one
/// of them it must.
TEST(Simt, AMissingBarrierShowsInSomeOrder) {
  for (const bool barrier : {true, false}) {
    int wrong = 0;
    for (const Order order : all_orders) {
      launch({.threads = 128, .shared_bytes = 512, .order = order}, [barrier, &wrong] {
        const int own = device::thread();
        shared_floats()[own] = 1.0F;
        if (barrier) {
          device::barrier();
        }
        wrong += shared_floats()[127 - own] == 1.0F ? 0 : 1;
      });
    }
    EXPECT_EQ(wrong > 0, !barrier);
  }
}

/// All read what one writes again: a barrier is missing before the second time, which only shows if a warp
/// runs ahead.
TEST(Simt, AMissingBarrierBeforeAnOverwriteShowsWhenWarpsRunAhead) {
  for (const bool barrier : {true, false}) {
    int wrong = 0;
    for (const Order order : all_orders) {
      launch({.threads = 64, .shared_bytes = 4, .order = order}, [barrier, &wrong] {
        for (int i = 0; i < 3; ++i) {
          if (device::thread() == 0) {
            shared_floats()[0] = static_cast<float>(i);
          }
          device::barrier();
          (void)device::exchange(0.0F, 1);
          wrong += shared_floats()[0] == static_cast<float>(i) ? 0 : 1;
          if (barrier) {
            device::barrier();
          }
        }
      });
    }
    EXPECT_EQ(wrong > 0, !barrier);
  }
}

TEST(Simt, LanesInDifferentOperationsAreAFault) {
  expect_fault({.threads = 32, .shared_bytes = 512}, "while lanes of its warp are at", [] {
    if (device::thread() == 7) {
      (void)device::exchange(0.0F, 1);
    } else {
      std::uint32_t fragment[4];
      HCP_SHARED_MEMORY(memory);
      device::load_matrices(fragment, memory);
    }
  });
  expect_fault({.threads = 32}, "different masks",
               [] { (void)device::exchange(0.0F, device::thread() == 3 ? 1 : 2); });
}

TEST(Simt, WaitingForWhoDoesNotComeIsAFault) {
  expect_fault({.threads = 64}, "all threads wait: 63 of 64 at a barrier", [] {
    if (device::thread() != 40) {
      device::barrier();
    }
  });
  expect_fault({.threads = 32}, "all threads wait: 0 of 32 at a barrier", [] {
    if (device::thread() != 4) {
      (void)device::exchange(0.0F, 1);
    }
  });
}

TEST(Simt, ACopyForWhichNobodyWaitsIsAFault) {
  alignas(16) static const float source[4] = {};
  for (const bool committed : {false, true}) {
    expect_fault({.threads = 32, .shared_bytes = 16}, "has not waited", [committed] {
      if (device::thread() == 9) {
        device::copy_async(shared_floats(), source, true);
        if (committed) {
          device::commit_copies();
        }
      }
    });
  }
}

TEST(Simt, WrongAddressesAreFaults) {
  expect_fault({.threads = 32, .shared_bytes = 128}, "outside of shared memory",
               [] { device::copy_async(shared_floats() + 32, nullptr, false); });
  expect_fault({.threads = 32, .shared_bytes = 128}, "not aligned to 16 bytes",
               [] { device::copy_async(shared_floats() + 1, nullptr, false); });
  alignas(16) static const float source[8] = {};
  expect_fault({.threads = 32, .shared_bytes = 128}, "global memory not aligned",
               [] { device::copy_async(shared_floats(), source + 1, true); });
}

TEST(Simt, ABlockOfPartOfAWarpIsRefused) {
  EXPECT_THROW(launch({.threads = 48}, [] {}), std::invalid_argument);
}

}  // namespace
}  // namespace hcp::simt
