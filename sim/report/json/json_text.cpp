#include "sim/report/json/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ridgeline {

void append_json(TextBuffer& out, std::string_view text) {
  unsigned special = 0;  // without a way out, so that many characters are looked at together
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    special |= static_cast<unsigned>(byte < 0x20) | static_cast<unsigned>(byte >= 0x7f) |
               static_cast<unsigned>(c == '"') | static_cast<unsigned>(c == '\\');
  }
  const bool plain = special == 0;
  if (plain) {
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
