// Counts of a tool's configuration: GPUs, degrees of parallelism, sizes that are products.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/training_files/facts.h"
#include "sim/training_files/training_file.h"

namespace ridgeline::training_files {

/// 1 where the file does not say it, or says less. Throws ConfigError for what is no count.
std::int64_t degree_of(const Facts& facts, std::string_view name);

/// a x b. Throws ConfigError at the key of `name` where that is too large a number.
std::int64_t times(const Facts& facts, std::string_view name, std::int64_t a, std::int64_t b);

/// How many GPUs take part: those of the question's cluster, else what the file says, else the product of its degrees.
std::int64_t gpus_of(const Facts& facts, const Asked& asked);

/// "4*hidden", "0.9*hidden*hidden", "6144/2": numbers and the network's width from left to right, rounded down; nothing
/// where the text is more than that.
std::optional<std::int64_t> product_of(std::string_view text, std::int64_t hidden);

}  // namespace ridgeline::training_files
