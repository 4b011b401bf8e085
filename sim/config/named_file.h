// Where a file lies that a description names.
#pragma once

#include <filesystem>
#include <string>

#include "sim/config/value.h"

namespace ridgeline::config {

/// Beside the file that names it, else as seen from where one stands.
inline std::string named_file(const Value& value) {
  const std::filesystem::path named = value.text();
  if (named.is_absolute() || !value.origin().name) return named.string();
  const std::filesystem::path beside = std::filesystem::path(*value.origin().name).parent_path() / named;
  std::error_code ignored;
  return (std::filesystem::exists(beside, ignored) ? beside.lexically_normal() : named).string();
}

}  // namespace ridgeline::config
