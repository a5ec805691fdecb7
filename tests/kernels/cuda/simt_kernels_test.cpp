/// What only the source shim can ask of the kernels: other orders of threads, visits of tiles that are masked
/// though they need not be, and head dims for which there is no kernel.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "tests/kernels/cuda/attention_checks.hpp"
#include "tests/kernels/cuda/simt_kernel.hpp"

namespace hcp::test {
namespace {

class SimtKernels : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, SimtKernels, testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& info) { return std::string{name_of(info.param)}; });

TEST_P(SimtKernels, FullVisitsGiveTheSameBitsMasked) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {330}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()}};
  const Operands operands = random_operands(setup.attention, 3);
  const auto run_with = [&](FullVisits full_visits) {
    return run_softmax(*make_simt_kernel(simt::Order::warp_wise, full_visits), setup, operands,
                       whole(setup.attention));
  };
  EXPECT_EQ(run_with(FullVisits::masked), run_with(FullVisits::as_they_are));
}

TEST_P(SimtKernels, BitsDoNotDependOnTheOrderOfThreads) {
  for (const double dropout : {0.0, 0.3}) {
    const SoftmaxCase setup{.attention = {.doc_lengths = {180},
                                          .causal = true,
                                          .heads_q = 2,
                                          .heads_kv = 1,
                                          .heads = {0, 0, 2},
                                          .type = GetParam()},
                            .dropout = dropout,
                            .sinks = {0.5F, -1.0F}};
    const Operands operands = random_operands(setup.attention, 3);
    const BlockSplit split = zigzag(setup.attention, 2);
    const SoftmaxRun first = run_softmax(*make_simt_kernel(simt::Order::warp_wise), setup, operands, split);
    for (const simt::Order order : simt::all_orders) {
      EXPECT_EQ(run_softmax(*make_simt_kernel(order), setup, operands, split), first)
          << static_cast<int>(order);
    }
    expect_exact(*make_simt_kernel(simt::Order::random), setup, split);
  }
}

TEST(DeviceKernelEntries, HeadDimsThatNoKernelTakesAreRefused) {
  for (const int dim : {0, 4, 12, 264}) {
    EXPECT_THROW(static_cast<void>(cuda::forward_kernel_entry(DataType::bf16, dim, 64, false)),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(cuda::forward_kernel_entry(DataType::fp32, 64, dim, false)),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(cuda::backward_keys_kernel_entries(DataType::bf16, dim, 64, false)),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(cuda::backward_queries_kernel_entry(DataType::fp32, 64, dim, true)),
                 std::invalid_argument);
  }
}

}  // namespace
}  // namespace hcp::test
