// YAML text to a Node tree. The only user of yaml-cpp.
//
// Strict: one document, keys are scalars and distinct, no control characters, at most kMaxDepth levels, kMaxBytes of
// text and kMaxNodes nodes after aliases are expanded. Everything else is a ConfigError with file:line:column.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "sim/config/node.h"

namespace ridgeline::config {

inline constexpr std::size_t kMaxBytes = 1u << 20;
inline constexpr std::size_t kMaxNodes = 1u << 20;
inline constexpr int kMaxDepth = 64;

/// `name` stands for the file in messages. Empty text gives a null node.
Node parse_yaml(std::string_view text, std::string_view name);

/// Reads and parses a file. A missing one is a ConfigError naming the nearest file of its folder; so is an empty one.
Node load_yaml(const std::filesystem::path& path);

/// Names (without extension) of the .yaml files of a folder, sorted. Empty when there is no such folder.
std::vector<std::string> yaml_names(const std::filesystem::path& folder);

}  // namespace ridgeline::config
