// A tool's configuration as a flat list: dotted keys and their values, whatever format the file has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/training_files/tool_table.h"

namespace ridgeline::training_files {

struct Setting {
  std::string key;
  config::Node value;  ///< a scalar, nothing, or a list of scalars
};

struct Settings {
  Form form = Form::yaml;
  std::vector<Setting> all;

  [[nodiscard]] const config::Node* find(std::string_view key) const;
};

/// By the file's ending, else its first letter. `${other.key}` in a value stands for that key's value. Throws
/// ConfigError for text that is not of its format, UserError for a file that cannot be read.
Settings read_settings(const std::string& file);

/// The words of a value as tables compare them: "null", small letters, items of a list with blanks between.
std::string word_of(const config::Node& value);

}  // namespace ridgeline::training_files
