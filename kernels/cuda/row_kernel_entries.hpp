/// The kernels on rows; parameters and units of work: row_parameters.hpp. Here own_rows is the units that a
/// block does at a time, other_rows 0.
#pragma once

#include "kernels/cuda/kernel_entry.hpp"
#include "kernels/data_type.hpp"

namespace hcp::cuda {

[[nodiscard]] const KernelEntry& finish_forward_kernel_entry();
[[nodiscard]] const KernelEntry& max_logits_kernel_entry();
[[nodiscard]] const KernelEntry& sink_gradients_kernel_entry();
[[nodiscard]] const KernelEntry& row_dot_kernel_entry(DataType out, DataType dout);
[[nodiscard]] const KernelEntry& copy_rows_kernel_entry(DataType source, DataType target);
[[nodiscard]] const KernelEntry& add_rows_kernel_entry(DataType source);
[[nodiscard]] const KernelEntry& fill_kernel_entry();

}  // namespace hcp::cuda
