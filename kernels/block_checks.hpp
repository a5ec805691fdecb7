/// What must hold between the arguments of a kernel's calls, whatever it runs on.
#pragma once

#include "kernels/attention_kernel.hpp"

namespace hcp {

/// @throws std::invalid_argument that names the tensor, its value and what would be right: head dims are
/// multiples of 8 from 8 to 256, tensors of one type, the softmax scale not negative, positions ascend and
/// count the rows, every query head has its KV head
void check_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv);

/// As above, and dout fits q and v.
void check_gradient_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv);

/// @throws std::invalid_argument if the shapes of row_dot's out and dout disagree
void check_row_dot(const ConstTensorView& out, const ConstTensorView& dout);

/// @throws std::invalid_argument unless the target of add_rows is fp32
void check_add_rows(const BasicRowTable<std::byte>& target);

}  // namespace hcp
