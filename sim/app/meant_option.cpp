#include "sim/app/meant_option.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/other_words.h"
#include "sim/scenario/short_flags.h"
#include "sim/units/meant_name.h"

namespace ridgeline::app {
namespace {

bool among(std::string_view name, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

/// The option that sets a key: a short flag, one of --parallel or --set; empty where the command has none of them.
std::string option_of(std::string_view key, std::string_view value, const std::vector<std::string>& known) {
  if (key.starts_with("--")) return among(key, known) ? fmt::format("{} {}", key, value) : "";
  const ShortFlag* flag = flag_of_key(key);
  if (flag != nullptr && among(flag->flag, known)) return fmt::format("{} {}", flag->flag, value);
  if (const std::string own = fmt::format("--{}", key.substr(key.rfind('.') + 1)); among(own, known)) return own;
  constexpr std::string_view kParallel = "training.parallel.";
  if (key.starts_with(kParallel) && among("--parallel", known))
    return fmt::format("--parallel {}=2, with --cluster hgx-h100", key.substr(kParallel.size()));
  return "";
}

}  // namespace

std::string meant_option(std::string_view given, const std::vector<std::string>& known) {
  const config::OtherWord* word = config::other_word(given);
  if (word != nullptr && word->key.empty()) return std::string(config::kWithoutEffect);
  std::string meant = word == nullptr ? "" : option_of(word->key, word->value, known);
  if (meant.empty()) meant = meant_name(given, known);
  while (meant.ends_with(' ')) meant.pop_back();
  return meant.empty() ? "" : fmt::format("did you mean {}?", meant);
}

}  // namespace ridgeline::app
