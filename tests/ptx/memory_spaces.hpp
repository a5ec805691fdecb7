/// Which memory an instruction reaches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/ptx/decoding.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

/// Constant memory lies between the device memory of the host and counts as global.
enum class MemorySpace : std::uint32_t { global, shared, local, param, generic };

/// @param name as in the text, "" for generic addresses
/// @param variable that the address names, or nullptr
[[nodiscard]] MemorySpace space_of(const std::string& name, const Symbol* variable);

[[nodiscard]] InstructionKind kind_of(MemorySpace space, bool loads);

/// Parts an access by generic addresses; `body` gets the lanes of each space, with addresses inside of it.
void for_each_space(const WarpAccess& access,
                    const std::function<void(MemorySpace, const WarpAccess&)>& body);

}  // namespace hcp::ptx
