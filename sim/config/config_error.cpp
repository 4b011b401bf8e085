#include "sim/config/config_error.h"

#include <fmt/format.h>

namespace ridgeline::config {
namespace {

std::string sentence(const Origin& origin, std::string_view key, std::string_view message) {
  std::string text = origin.to_string();
  if (!text.empty()) text += ": ";
  if (!key.empty()) text += fmt::format("{}: ", key);
  return text + std::string(message);
}

std::string lines(const std::vector<ConfigError>& several) {
  std::string text;
  for (const ConfigError& error : several) text += (text.empty() ? "" : "\n") + std::string(error.what());
  if (several.size() > 1) text += fmt::format("\n{} mistakes", several.size());
  return text;
}

}  // namespace

std::string Origin::to_string() const {
  if (!name) return "";
  return line > 0 ? fmt::format("{}:{}:{}", *name, line, column) : *name;
}

ConfigError::ConfigError(const Origin& origin, std::string_view key, std::string_view message)
    : UserError(sentence(origin, key, message)), origin_(origin), key_(key), message_(message) {}

ConfigError::ConfigError(const std::vector<ConfigError>& several)
    : UserError(lines(several)),
      origin_(several.front().origin_),
      key_(several.front().key_),
      message_(several.front().message_) {}

}  // namespace ridgeline::config
