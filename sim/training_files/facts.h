// Statements of a tool's configuration, before it becomes a scenario: values by target, each with the key it came from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"

namespace ridgeline::training_files {

struct Fact {
  config::Node value;
  std::string key;  ///< of the tool; empty for its default
};

class Facts {
 public:
  /// A value of the file counts more than a default; of two alike the later one.
  void set(const std::string& target, Fact fact);
  void erase(std::string_view target);
  [[nodiscard]] const Fact* find(std::string_view target) const;
  [[nodiscard]] bool has(std::string_view target) const { return find(target) != nullptr; }
  [[nodiscard]] std::string text(std::string_view target, std::string_view fallback = "") const;
  /// True for true, yes, on, 1 and words that name a device other than none.
  [[nodiscard]] bool flag(std::string_view target) const;
  /// Throws ConfigError at the tool's key where it is no whole number.
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view target) const;
  [[noreturn]] void fail(std::string_view target, std::string_view message) const;
  [[nodiscard]] const std::map<std::string, Fact, std::less<>>& all() const { return facts_; }

 private:
  std::map<std::string, Fact, std::less<>> facts_;
};

/// false, no, off, none, null, 0, "" and what is empty.
bool is_off(const config::Node& value);

}  // namespace ridgeline::training_files
