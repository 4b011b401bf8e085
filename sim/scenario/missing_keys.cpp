#include "sim/scenario/missing_keys.h"

#include <fmt/format.h>

#include <string>

#include "sim/config/missing_key.h"
#include "sim/scenario/short_flags.h"

namespace ridgeline {

namespace {

/// A question of flags alone has no place that is worth a word.
bool is_of_flags(const config::Origin& origin) { return origin.name && *origin.name == kTheFlags; }

}  // namespace

void tell_missing(const config::ConfigError& error, const ScenarioSource& source) {
  if (error.message() != config::kMissingKey) return;
  std::string flags, value, help;
  if (error.key() == "training") {
    flags = "--batch 8 --seq 1024";
    value = "{micro_batch: 8, sequence_length: 1024}";
    help = "how the network is trained";
  } else {
    const ShortFlag* flag = flag_of_key(error.key());
    if (flag == nullptr || !flag->has_value()) return;
    flags = fmt::format("{} {}", flag->flag, flag->example);
    value = flag->example;
    help = flag->help;
  }
  if (!source.file && source.text.empty())
    throw config::ConfigError(is_of_flags(error.origin()) ? config::Origin{} : error.origin(), error.key(),
                              fmt::format("missing; give {} ({})", flags, help));
  const std::size_t dot = error.key().rfind('.');
  const std::string write = dot == std::string::npos ? fmt::format("{}: {}", error.key(), value)
                                                     : fmt::format("{}: {} below {}:", error.key().substr(dot + 1),
                                                                   value, error.key().substr(0, dot));
  throw config::ConfigError(error.origin(), error.key(),
                            fmt::format("missing; write {}{}", write, source.file ? ", or give " + flags : ""));
}

}  // namespace ridgeline
