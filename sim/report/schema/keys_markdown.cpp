// docs/keys.md, and what a value may be in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "sim/report/schema/schema_json.h"

namespace ridgeline {
namespace {

using config::Asked;

std::string bound_of(double value, Dimension dimension) {
  if (value == 0.0) return "0";
  return dimension == Dimension::dimensionless ? fmt::format("{:g}", value) : to_string(Measure{value, dimension});
}

/// ", 0 to 1"; empty where there is no bound.
std::string bounds(const Asked& asked) {
  const bool above = asked.range.low != std::numeric_limits<double>::lowest();
  const bool below = asked.range.high != std::numeric_limits<double>::max();
  const std::string low = bound_of(asked.range.low, asked.dimension),
                    high = bound_of(asked.range.high, asked.dimension);
  if (above && below) return fmt::format(", {}{} to {}", asked.range.low_open ? "above " : "", low, high);
  if (above) return fmt::format(", {} {}", asked.range.low_open ? "above" : "at least", low);
  return below ? fmt::format(", at most {}", high) : "";
}

std::string integer_values(const Asked& asked) {
  const auto [low, high] = asked.integers;
  const bool above = low != std::numeric_limits<std::int64_t>::min(),
             below = high != std::numeric_limits<std::int64_t>::max();
  if (above && below) return fmt::format("{} to {}", low, high);
  if (above) return fmt::format("a whole number, at least {}", low);
  return below ? fmt::format("a whole number, at most {}", high) : "a whole number";
}

std::string values_of(const Asked& asked) {
  switch (asked.kind) {
    case Asked::Kind::text: return "a text";
    case Asked::Kind::flag: return "true or false";
    case Asked::Kind::integer: return integer_values(asked);
    case Asked::Kind::choice: return fmt::format("{}", fmt::join(asked.names, ", "));
    case Asked::Kind::list: return "a list";
    case Asked::Kind::mapping: return "keys";
    case Asked::Kind::measure: break;
  }
  if (asked.dimension == Dimension::dimensionless) return "a number or %" + bounds(asked);
  return fmt::format("a number with a unit ({}){}", accepted_units(asked.dimension), bounds(asked));
}

bool is_of_a_class(const InputDocument& document, const InputKey& key) {
  return document.name == "host" && key.path.starts_with("classes.");
}

std::string row(const std::string& path, const std::string& values, std::string_view meaning) {
  std::string line = fmt::format("| {} | {} | {} |\n", path, values, meaning);
  for (auto star = line.find(".*"); star != line.npos; star = line.find(".*", star + 6)) line.replace(star, 2, ".NAME");
  return line;
}

}  // namespace

std::string allowed_values(const InputKey& key) {
  std::vector<std::string> forms;
  if (key.zero_is_none) forms.emplace_back("0");
  for (const Asked& asked : key.asked) forms.push_back(values_of(asked));
  forms.insert(forms.end(), key.words.begin(), key.words.end());
  if (!key.document.empty()) forms.push_back("keys of a " + key.document);
  if (forms.empty()) return "keys";
  return fmt::format("{}", fmt::join(forms, "; or "));
}

std::string keys_markdown(std::span<const InputDocument> documents) {
  std::string out =
      "# Keys of every file\n\n"
      "Written by `ridgeline schema --keys`, which asks the program's own readers; a test compares the two. Keys in "
      "bold are required where\n"
      "the section they stand in is given; a dot leads into a section. `--set KEY=VALUE` takes keys of a scenario, and "
      "those of what it\n"
      "names behind `hardware.`, `model.`, `host.` and `software.`. NAME stands for a name that the file chooses.\n\n"
      "`ridgeline schema` prints the same as JSON Schema, with the JSON that commands print ([json.md](json.md)). With "
      "`ridgeline schema\n"
      "scenario >scenario.schema.json` beside a scenario that begins with `# yaml-language-server: "
      "$schema=scenario.schema.json`, editors\n"
      "complete and check it.\n";
  for (const InputDocument& document : documents) {
    fmt::format_to(std::back_inserter(out), "\n## {}: {}\n\n", document.name, document.title);
    if (document.name == "hardware")
      out += "Laws that read them, and which way is better: [hardware-keys.md](hardware-keys.md).\n\n";
    out += "| key | may be | meaning |\n|---|---|---|\n";
    std::string classes;
    for (const InputKey& key : document.keys) {
      if (key.path.ends_with(".0")) continue;
      if (is_of_a_class(document, key)) classes += (classes.empty() ? "" : ", ") + key.path.substr(8);
      else out += row(key.required ? "**" + key.path + "**" : key.path, allowed_values(key), key.meaning);
    }
    if (!classes.empty()) out += "\nClasses: " + classes + ".\n";
  }
  return out;
}

}  // namespace ridgeline
