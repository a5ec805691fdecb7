/// A kernel whose PTX has been decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/instruction.hpp"
#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

/// The special registers (%tid.x ...) that kernels read.
enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size
};

struct Kernel {
  struct Parameter {
    std::string name;
    std::uint32_t offset = 0;  ///< bytes
    std::uint32_t bytes = 0;
  };
  struct Special {
    SpecialRegister which = SpecialRegister::tid_x;
    Operand place;
  };

  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t max_threads = 1024;
  std::vector<Instruction> code;         ///< ends with an exit
  std::vector<std::string> texts;        ///< of each instruction
  std::vector<SourcePlace> places;       ///< of each instruction
  std::uint32_t register_bytes = 0;      ///< per warp
  std::vector<std::uint32_t> constants;  ///< each one repeated for every lane
  std::vector<Special> specials;
  std::uint32_t static_shared_bytes = 0;  ///< without the window's begin; dynamic shared memory follows
  std::uint32_t local_bytes = 0;          ///< per thread
  std::uint32_t shared_access_bytes = 4;  ///< the smallest access to shared memory, at most 4
  std::uint32_t global_access_bytes = 4;  ///< the smallest access to global memory, at most 4
};

/// Shared addresses begin here: 0 stays invalid. A multiple of every alignment that is asked for.
constexpr std::uint32_t shared_window = 1024;
/// Generic addresses of shared, local and parameter memory, above every pointer of the host.
constexpr std::uint64_t generic_shared = 0x7f00ULL << 48;
constexpr std::uint64_t generic_local = 0x7e00ULL << 48;
constexpr std::uint64_t generic_param = 0x7d00ULL << 48;
constexpr std::uint64_t generic_offset_mask = (1ULL << 48) - 1;

}  // namespace hcp::ptx
