// A mistake in a YAML file or on the command line, told with its place.
//
// what() reads "hw/x.yaml:12:7: dram.bandwith: unknown key; expected one of ...". The place is file:line:column for a
// file and the argument itself ("--set hardware.dram.bandwith=4 TB/s") for a value given on the command line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline::config {

/// Where a piece of configuration was written. Cheap to copy: nodes of one file share its name.
struct Origin {
  std::shared_ptr<const std::string> name;  ///< file name or command-line argument; null = unknown
  int line = 0, column = 0;                 ///< from 1; 0 = the source has no lines

  [[nodiscard]] std::string to_string() const;
};

class ConfigError : public UserError {
 public:
  /// Empty parts are left out of the text.
  ConfigError(const Origin& origin, std::string_view key, std::string_view message);
  /// Several mistakes, a line each; origin, key and message are those of the first. At least one.
  explicit ConfigError(const std::vector<ConfigError>& several);

  [[nodiscard]] const Origin& origin() const { return origin_; }
  [[nodiscard]] const std::string& key() const { return key_; }          ///< dotted path of the key
  [[nodiscard]] const std::string& message() const { return message_; }  ///< without place and key

 private:
  Origin origin_;
  std::string key_, message_;
};

}  // namespace ridgeline::config
