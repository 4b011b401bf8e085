// Finds the keys that a reader knows by running it on changed files.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/config/override.h"
#include "sim/report/schema/input_keys.h"

namespace ridgeline {

struct Exploration {
  /// Reads a file of this kind with changes, and without the key `without` (empty: with all). May throw UserError.
  std::function<void(const std::vector<config::Override>& changes, const std::string& without)> read;
  /// Keys whose values are files and names that are read elsewhere.
  std::set<std::string> names{};
  /// Mappings whose keys the file chooses, each with one of the file at hand: {"axes", "model"}.
  std::map<std::string, std::string> free{};
  /// Further values to try: {"axes.model", "{log: [1, 2], points: 2}"}.
  std::multimap<std::string, std::string> more{};
};

/// In the order in which the reader declares them, each mapping before its keys.
std::vector<InputKey> explore_keys(const Exploration& exploration);

}  // namespace ridgeline
