/// NCCL's types of data.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace hcp::software_gpu {

/// 0 for what is no type.
[[nodiscard]] std::size_t bytes_of(ncclDataType_t type);
[[nodiscard]] std::string_view name_of(ncclDataType_t type);

/// Whether add() can.
[[nodiscard]] bool can_add(ncclDataType_t type);
/// sum += terms, element by element, rounded to the type. Both as many bytes.
void add(ncclDataType_t type, std::span<std::byte> sum, std::span<const std::byte> terms);

}  // namespace hcp::software_gpu
