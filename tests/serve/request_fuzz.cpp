#include "tests/serve/request_fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/serve/api.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using namespace serve;

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string encoded(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    out += code;
  }
  return out;
}

std::string broken_target(const std::string& text) {
  Target target;
  try {
    target = parse_target(text);
  } catch (const UserError&) {
    return "";
  }
  if (has_control(target.path)) return "a control character in a path";
  std::string again = "/" + encoded(target.path.substr(1)) + "?";
  for (const auto& [key, value] : target.parameters) {
    if (has_control(key) || has_control(value)) return "a control character in a parameter";
    again += encoded(key) + "=" + encoded(value) + "&";
  }
  const Target second = parse_target(again);
  const auto named = [](const Target& t) {
    auto kept = t.parameters;
    std::erase_if(kept, [](const auto& one) { return one.first.empty() && one.second.empty(); });
    return kept;
  };
  return second.path == target.path && named(second) == named(target) ? "" : "decoded text reads back as another";
}

}  // namespace

std::string fuzz_request(const std::uint8_t* data, std::size_t size) {
  static Api api({.tool = "fuzz", .most_sweep_points = 2});
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::istringstream line(text.substr(0, end));
  Request request;
  line >> request.method >> request.target >> request.host >> request.origin;
  request.body = text.substr(std::min(end + 1, text.size()));
  if (const std::string broken = broken_target(request.target); !broken.empty()) return broken;
  const Guard guard;
  const bool stranger = !guard.refusal(request, "").empty();
  const bool asset = request.target.find("/api/") == std::string::npos;
  if (request.target.find("exercises") != std::string::npos) return "";  // some take seconds
  const Reply reply = api.answer(request);
  if (stranger && !asset && reply.status == 200) return "a stranger was answered";
  if (reply.status < 200 || reply.status > 503) return "no status of HTTP";
  if (reply.status == 500) return "a fault: " + reply.body;
  if (reply.type == "application/json" && nlohmann::json::parse(reply.body, nullptr, false).is_discarded())
    return "an answer that is no JSON";
  return "";
}

}  // namespace ridgeline
