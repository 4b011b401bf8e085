#include "sim/report/json/json_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

namespace ridgeline {

namespace {

/// Without quotes, backslashes, control characters and bytes beyond ASCII: JSON writes it as it is.
bool is_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x80 * kOnes;
  // Bytes below a bound borrow, and set their highest bit; one that borrows from its neighbour is special itself.
  const auto below = [](std::uint64_t bytes, std::uint64_t bound) { return (bytes - bound * kOnes) & ~bytes; };
  const auto special_in = [&](std::uint64_t bytes) {
    return bytes | (bytes + kOnes) | below(bytes, 0x20) | below(bytes ^ '"' * kOnes, 1) |
           below(bytes ^ '\\' * kOnes, 1);
  };
  std::uint64_t special = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t bytes;
    std::memcpy(&bytes, text.data() + i, 8);
    special |= special_in(bytes);
  }
  for (; i < text.size(); ++i) special |= special_in('a' * kOnes - 'a' + static_cast<unsigned char>(text[i]));
  return (special & kHighs) == 0;
}

}  // namespace

void append_json(TextBuffer& out, std::string_view text) {
  if (is_plain(text)) {
    char* at = out.room(text.size() + 2);
    *at++ = '"';
    at = std::copy(text.begin(), text.end(), at);
    *at++ = '"';
    out.wrote(at);
  } else {
    out.add(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

}  // namespace ridgeline
