// Flags that are short for keys of a scenario: one table for the command line, its help and the commands in reports.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"

namespace ridgeline {

struct ShortFlag {
  std::string_view flag;
  /// Changes as --set takes them, a space between two; {} is the flag's value. Without {} the flag has no value.
  std::string_view training;
  std::string_view inference;  ///< the same where the model is used; empty: the flag goes with training alone
  std::string_view help;
  std::string_view example;  ///< a value that may be typed behind the flag

  [[nodiscard]] bool has_value() const { return training.find("{}") != training.npos; }
  /// One key, whichever the section: hardware, model, host.
  [[nodiscard]] bool outside_the_step() const { return training == inference; }
  /// The flag stands for a model in use: --prompt, --generate.
  [[nodiscard]] bool means_inference() const { return training.starts_with("inference."); }
};

std::span<const ShortFlag> short_flags();

/// The flag of which a change has this key; null where none has.
const ShortFlag* flag_of_key(std::string_view key);

/// The changes of the flag, named by the flag in messages. Throws UserError for a flag of training beside `inference`.
std::vector<config::Override> changes_of(const ShortFlag& flag, std::string_view value, bool inference);

/// Changes ("training.precision=bf16", several parted by a space) as a person types them: short flags where there are,
/// else --set.
std::string as_flags(std::span<const std::string> sets);

}  // namespace ridgeline
