// The keys of a model's description: one table of what YAML accepts, what is assumed where it is silent, and what
// `ridgeline models` shows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/config/value.h"
#include "sim/workload/model.h"

namespace ridgeline {

/// As YAML would write it.
using ModelValue = std::variant<std::int64_t, double, bool, std::string>;

struct ModelKey {
  std::string_view name;
  std::string_view meaning;            ///< a few words, and what may be given
  std::optional<ModelFamily> only_of;  ///< no other family reads it
  /// Reads the value into the description. An absent one leaves what is assumed, which may follow from keys that stand
  /// above it in the table; it is an error where nothing can be assumed.
  void (*read)(const config::Value&, ModelDescription&);
  ModelValue (*value)(const ModelDescription&);
};

/// In the order of reading: `family` first.
std::span<const ModelKey> model_keys();

/// What `key` would be if the description did not say it; empty where it must.
std::optional<ModelValue> assumed(const ModelKey& key, const ModelDescription& model);

}  // namespace ridgeline
