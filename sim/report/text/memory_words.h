// How reports write sizes, shortages of memory and wrapped text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/answer/memory_prediction.h"

namespace ridgeline {

/// "11.50 GiB"
std::string gib(std::int64_t bytes);
/// "optimizer_state" as "optimizer state".
std::string words(std::string_view name);
/// Text under a margin, wrapped at 98 columns; continued lines are indented as far as the margin.
void write_wrapped(std::string& out, std::string_view margin, std::string_view text);
/// "in softmax of the forward, block 3, 24.0 MiB short of the 96.0 MiB it asks for (activations)".
std::string shortage_words(const MemoryShortage& shortage);
/// Entry of Category that held most when memory ran out.
std::size_t largest_category(const MemoryShortage& shortage);
/// "--set a=1 --set b=2".
std::string as_sets(std::span<const std::string> changes);

}  // namespace ridgeline
