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
/// Text under a margin, wrapped at the page's width; continued lines are indented as far as the margin.
void write_wrapped(std::string& out, std::string_view margin, std::string_view text);
/// The same in lines of at most `columns`.
void write_wrapped(std::string& out, std::string_view margin, std::string_view text, std::size_t columns);
/// Where memory ran out, not how much the step lacks: "in softmax of the forward, block 3, at 96.0 MiB of activations".
std::string shortage_words(const MemoryShortage& shortage);
/// Entry of Category that held most when memory ran out.
std::size_t largest_category(const MemoryShortage& shortage);
/// "--set a=1 --set b=2".
std::string as_sets(std::span<const std::string> changes);

}  // namespace ridgeline
