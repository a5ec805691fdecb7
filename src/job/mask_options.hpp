/// The options of attention masks: which of them belong to which mask, and the mask that they describe.
#pragma once

#include <string>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "src/job/job_config.hpp"
#include "src/job/problem_shape.hpp"

namespace hcp {

/// @throws std::invalid_argument for an option that the chosen mask needs and that was not given, or one that
/// was given and belongs to other masks
void check_mask_options(const JobConfig& config);

/// Names of options that mean nothing under this mask.
[[nodiscard]] std::vector<std::string> options_of_other_masks(MaskType type);

/// @throws std::invalid_argument if the mask is one of tokens with themselves but the keys are others, or if
/// an option has not one value for each document of a row
void check_mask_shape(const JobConfig& config, const ProblemShape& shape);

/// The mask of all rows of the micro-batch, one after the other; reads the mask file.
/// @throws std::invalid_argument if a value does not fit its document, or the file cannot be used
[[nodiscard]] AttentionMask mask_of(const JobConfig& config, const ProblemShape& shape);

/// The mask and its parameters, "sliding_window, window-size 128,0"; long lists without their end.
[[nodiscard]] std::string describe_mask(const JobConfig& config);

}  // namespace hcp
