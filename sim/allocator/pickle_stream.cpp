#include "sim/allocator/pickle_stream.h"

namespace ridgeline {

void PickleStream::real(double number) {
  put('G', __builtin_bswap64(std::bit_cast<std::uint64_t>(number)), 8);  // big-endian, unlike the rest
}

PickleStream::Place PickleStream::text(std::string_view text) {
  if (const auto it = texts_.find(text); it != texts_.end()) {
    recall(it->second);
    return it->second;
  }
  put('X', text.size(), 4);
  out_.add(text);
  return texts_.emplace(text, remember()).first->second;
}

PickleStream::Place PickleStream::remember() {
  put('r', remembered_, 4);
  return remembered_++;
}

}  // namespace ridgeline
