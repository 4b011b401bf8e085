#include "sim/report/text/verdict_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/text/memory_words.h"

namespace ridgeline {

std::int64_t short_bytes(const MemoryPrediction& memory) {
  if (memory.runs) return 0;
  // A device without end can need less than one that is too small: its segments are cut otherwise.
  const std::int64_t first = memory.out_of_memory ? memory.out_of_memory->missing_bytes : 0;
  return std::max(memory.needed - memory.capacity, first);
}

std::string verdict_line(const MemoryPrediction& m) {
  if (m.source == MemorySource::unknown) return "memory unknown: the recording counts none";
  const auto number = [](std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / kGiB); };
  if (!m.runs)
    return fmt::format("DOES NOT FIT: needs {}, {} are there, {} short", gib(m.needed), gib(m.capacity),
                       to_string(Bytes{static_cast<double>(short_bytes(m))}));
  if (!m.fits)
    return fmt::format("MAY NOT FIT: needs {} of {}; runs like this one took up to {}", number(m.needed),
                       gib(m.capacity), gib(m.needed_high));
  return fmt::format("FITS: needs {} of {}", number(m.needed), gib(m.capacity));
}

}  // namespace ridgeline
