/// Arguments that disagree with each other, which every kernel refuses before it looks at any data.
#pragma once

#include "kernels/attention_kernel.hpp"

namespace hcp::test {

/// Calls forward_block and backward_block with small tensors of the host, which nobody can use on a device,
/// one argument wrong at a time; and row_dot and add_rows.
void expect_refusals(AttentionKernel& kernel);

/// The same calls with nothing wrong; of kernels in the host's memory.
void expect_valid_call_passes(AttentionKernel& kernel);

}  // namespace hcp::test
