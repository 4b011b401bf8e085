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

}  // namespace

std::string Origin::to_string() const {
  if (!name) return "";
  return line > 0 ? fmt::format("{}:{}:{}", *name, line, column) : *name;
}

ConfigError::ConfigError(const Origin& origin, std::string_view key, std::string_view message)
    : UserError(sentence(origin, key, message)), origin_(origin), key_(key), message_(message) {}

}  // namespace ridgeline::config
