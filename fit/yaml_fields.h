// Typed reading of the YAML files of the fits; everything wrong is a ConfigError with its place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/parse_yaml.h"

namespace ridgeline::fit {

/// The value of `key`. Throws where it is missing.
const config::Node& field_of(const config::Node& node, std::string_view key);
std::string text_of(const config::Node& node, std::string_view key);
double number_of(const config::Node& scalar);
double number_of(const config::Node& node, std::string_view key);
std::optional<double> find_number(const config::Node& node, std::string_view key);
/// false where it is missing.
bool find_flag(const config::Node& node, std::string_view key);
const std::vector<config::Node>& items_of(const config::Node& node, std::string_view key);
/// The entries of a mapping; none where `key` is missing.
const std::vector<config::Entry>& entries_of(const config::Node& node, std::string_view key);
/// Throws for a key that is none of `known`.
void expect_keys(const config::Node& node, std::initializer_list<std::string_view> known);

}  // namespace ridgeline::fit
