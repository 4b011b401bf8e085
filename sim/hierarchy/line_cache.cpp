#include "sim/hierarchy/line_cache.h"

#include <algorithm>

namespace ridgeline {

LineCache::LineCache(std::uint64_t capacity, int ways, L2Replacement replacement, L2Writes writes)
    : ways_(ways),
      replacement_(replacement),
      writes_(writes),
      sets_(capacity / (kLine * static_cast<std::uint64_t>(ways))) {
  lines_.resize(sets_ * static_cast<std::uint64_t>(ways));
}

void LineCache::access(std::uint64_t address, std::uint64_t bytes, bool write) {
  if (bytes == 0) return;
  for (std::uint64_t line = address / kLine; line <= (address + bytes - 1) / kLine; ++line) touch(line, write);
}

void LineCache::touch(std::uint64_t line, bool write) {
  ++clock_;
  const bool through = writes_ == L2Writes::through;
  if (write && through) ++written_back_;
  const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(line % sets_) * ways_;
  auto way = std::find_if(begin, begin + ways_, [&](const Way& w) { return w.valid && w.line == line; });
  if (way == begin + ways_) {
    ++missed_;
    if (!write) ++read_missed_;
    way = std::find_if(begin, begin + ways_, [](const Way& w) { return !w.valid; });
    if (way == begin + ways_) {
      if (replacement_ == L2Replacement::random) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        way = begin + static_cast<std::ptrdiff_t>((random_ >> 33) % static_cast<std::uint64_t>(ways_));
      } else {
        way = std::min_element(begin, begin + ways_, [](const Way& a, const Way& b) { return a.touched < b.touched; });
      }
      if (way->dirty) ++written_back_;
    }
    *way = Way{.line = line, .valid = true};
  }
  way->touched = clock_;
  if (write && !through) way->dirty = true;
}

std::uint64_t LineCache::dirty_bytes() const {
  return kLine *
         static_cast<std::uint64_t>(std::count_if(lines_.begin(), lines_.end(), [](const Way& w) { return w.dirty; }));
}

}  // namespace ridgeline
