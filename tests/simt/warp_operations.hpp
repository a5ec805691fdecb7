/// What the 32 lanes of a warp do together, by the definitions of the PTX ISA.
#pragma once

#include <cstdint>

#include "kernels/data_type.hpp"

namespace hcp::simt {

/// shfl.sync.bfly of all lanes.
/// @throws Fault unless all lanes give the same mask
[[nodiscard]] float exchange(float value, int mask);

/// ldmatrix.m8n8.x4: lane 8 i + r gives the address of row r of matrix i. fragment[i] of lane l gets elements
/// 2 (l % 4), 2 (l % 4) + 1 of row l / 4 of matrix i; of its transpose if `transposed`.
void load_matrices(std::uint32_t (&fragment)[4], const void* row, bool transposed);

/// mma.m16n8k16 with fp32 sums.
/// @param type  of a and b, bf16 or fp16
void multiply(DataType type, float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);

}  // namespace hcp::simt
