/// The name a user most likely meant, for messages about unknown ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hcp {

/// The candidate with the smallest Levenshtein distance to `name`, the first of equals; empty when there is
/// none that differs in at most half of the longer name.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace hcp
