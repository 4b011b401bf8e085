#include "sim/report/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ridgeline {

void append_json(TextBuffer& out, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '"' && c != '\\';
  });
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
