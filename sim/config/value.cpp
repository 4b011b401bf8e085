#include "sim/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "sim/config/asked.h"
#include "sim/config/missing_key.h"
#include "sim/config/other_words.h"
#include "sim/units/meant_name.h"

namespace ridgeline::config {
namespace {

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// "1,024" and "1_024" are 1024, "2k" is 2000 or 2048; empty for other texts.
std::string whole_number_meant(std::string_view given) {
  std::string digits;
  for (const char c : given)
    if (c != ',' && c != '_' && c != ' ') digits += c;
  const bool thousands = !digits.empty() && (digits.back() == 'k' || digits.back() == 'K');
  if (thousands) digits.pop_back();
  constexpr std::size_t kMost = 9;
  if (digits.empty() || digits.size() > kMost || digits.find_first_not_of("0123456789") != std::string::npos) return "";
  // Blanks part several numbers; commas and underscores part thousands.
  if (given.find(' ') != std::string_view::npos) return "";
  if (thousands) return fmt::format("{}000 or {}", digits, std::stoll(digits) * 1024);
  const std::size_t group = given.find_last_of(",_");
  return group != std::string_view::npos && given.size() - group == 4 ? digits : "";
}

std::string a_quantity(Dimension dimension) {
  if (dimension == Dimension::dimensionless) return "a number";
  return fmt::format("a number with a unit ({})", accepted_units(dimension));
}

bool starts_as_number(std::string_view text, double& number, std::string_view& rest) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return error == std::errc{} && std::isfinite(number);
}

std::string range_text(Range range, Dimension dimension) {
  const bool above = range.low != std::numeric_limits<double>::lowest();
  const bool below = range.high != std::numeric_limits<double>::max();
  const auto shown = [dimension](double value) { return value == 0.0 ? "0" : to_string(Measure{value, dimension}); };
  if (above && below)
    return fmt::format("{} {} and at most {}", range.low_open ? "above" : "at least", shown(range.low),
                       shown(range.high));
  if (above) return fmt::format("{} {}", range.low_open ? "above" : "at least", shown(range.low));
  return fmt::format("at most {}", shown(range.high));
}

}  // namespace

const Node& Value::node() const {
  if (!node_) fail(kMissingKey);
  return *node_;
}

Value Value::operator[](std::string_view key) const {
  if (node().kind != Node::Kind::mapping) fail(fmt::format("expected a mapping, got {}", node_->describe()));
  for (const Entry& entry : node_->entries) {
    // A key with nothing behind it is better reported at the key than at the line after it.
    if (entry.key == key) {
      return Value(&entry.value, joined(path_, key),
                   entry.value.kind == Node::Kind::null ? entry.key_origin : entry.value.origin);
    }
  }
  return absent(joined(path_, key), origin_);
}

const std::string& Value::scalar(std::string_view expected) const {
  if (node().kind != Node::Kind::scalar) fail(fmt::format("expected {}, got {}", expected, node_->describe()));
  return node_->scalar;
}

std::string Value::text(std::optional<std::string> fallback) const {
  if (!exists() && fallback) return *fallback;
  AskedOf::note(path_, {.kind = Asked::Kind::text});
  return scalar("a text");
}

bool Value::boolean(std::optional<bool> fallback) const {
  if (!exists() && fallback) return *fallback;
  AskedOf::note(path_, {.kind = Asked::Kind::flag});
  const std::string& given = scalar("true or false");
  if (given == "true") return true;
  if (given == "false") return false;
  fail(fmt::format("expected true or false, got '{}'", given));
}

std::int64_t Value::integer(IntegerRange range, std::optional<std::int64_t> fallback) const {
  if (!exists() && fallback) return *fallback;
  AskedOf::note(path_, {.kind = Asked::Kind::integer, .integers = range});
  const std::string& given = scalar("a whole number");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  const bool above = range.low != std::numeric_limits<std::int64_t>::min(),
             below = range.high != std::numeric_limits<std::int64_t>::max();
  const std::string allowed = above && below ? fmt::format("{} to {}", range.low, range.high)
                              : below        ? fmt::format("at most {}", range.high)
                                             : fmt::format("at least {}", range.low);
  if (error == std::errc::result_out_of_range || (error == std::errc{} && (value < range.low || value > range.high)))
    if (end == given.data() + given.size())
      fail(above || below ? fmt::format("{} is out of range, expected {}", given, allowed)
                          : fmt::format("{} is out of range", given));
  if (error != std::errc{} || end != given.data() + given.size()) {
    if (const std::string meant = whole_number_meant(given); !meant.empty())
      fail(fmt::format("write {}: expected a whole number, got {}", meant, node_->describe()));
    fail(above || below ? fmt::format("expected a whole number ({}), got {}", allowed, node_->describe())
                        : fmt::format("expected a whole number, got {}", node_->describe()));
  }
  return value;
}

double Value::number(Range range, std::optional<double> fallback) const {
  if (!exists() && fallback) return *fallback;
  return measure(Dimension::dimensionless, range);
}

double Value::measure(Dimension dimension, Range range) const {
  AskedOf::note(path_, {.kind = Asked::Kind::measure, .dimension = dimension, .range = range});
  const std::string& given = scalar(a_quantity(dimension));
  const std::optional<Measure> parsed = parse_measure(given);
  if (parsed && parsed->dimension == dimension) return in_range(parsed->value, dimension, range, given);
  double number = 0.0;
  std::string_view rest;
  if (!starts_as_number(given, number, rest)) {
    fail(fmt::format("expected {}, got {}", a_quantity(dimension), node_->describe()));
  }
  if (rest.empty()) fail(fmt::format("{} has no unit; expected {}", node_->describe(), a_quantity(dimension)));
  if (!parsed) {
    if (const auto one = parse_measure(fmt::format("1 {}", rest)); one && one->dimension == dimension)
      fail(fmt::format("{} is more than a number can hold", given));
    fail(fmt::format("unknown unit '{}'; expected {}", rest, a_quantity(dimension)));
  }
  fail(fmt::format("unit '{}' measures something else; expected {}", rest, a_quantity(dimension)));
}

double Value::in_range(double value, Dimension dimension, Range range, std::string_view given) const {
  if (!range.holds(value)) fail(fmt::format("{} is out of range, expected {}", given, range_text(range, dimension)));
  return value;
}

std::vector<Value> Value::list() const {
  AskedOf::note(path_, {.kind = Asked::Kind::list});
  if (node().kind != Node::Kind::list) fail(fmt::format("expected a list, got {}", node_->describe()));
  std::vector<Value> values;
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    values.push_back(Value(node_->items[i], joined(path_, std::to_string(i))));
  }
  return values;
}

void Value::fail(std::string_view message) const { throw ConfigError(origin_, path_, message); }

void Value::fail_choice(std::string_view given, const std::vector<std::string>& names) const {
  AskedOf::note(path_, {.kind = Asked::Kind::choice, .names = names});
  std::string meant(other_value(path_, given));
  if (meant.empty()) meant = meant_value(given, names);
  fail(fmt::format("unknown value '{}'; {}{}", given,
                   meant.empty() ? "expected one of " : fmt::format("did you mean {}? Allowed: ", meant),
                   some_names(names)));
}

Mapping::Mapping(Value value, std::vector<std::string> known_keys)
    : value_(std::move(value)), known_(std::move(known_keys)) {
  if (AskedOf::listens()) AskedOf::note(value_.path(), {.kind = Asked::Kind::mapping, .names = known_});
  const Node& node = value_.node();
  if (node.kind != Node::Kind::mapping) {
    std::string such;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, known_.size()); ++i)
      such += (i == 0 ? "" : ", ") + known_[i] + ": ...";
    value_.fail(value_.path().empty() ? fmt::format("expected keys with values ({}), got {}", such, node.describe())
                                      : fmt::format("expected a mapping ({}: {{{}: ...}}), got {}", value_.path(),
                                                    known_.front(), node.describe()));
  }
  for (const Entry& entry : node.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    throw ConfigError(entry.key_origin, joined(value_.path(), entry.key),
                      fmt::format("unknown key; {}", unknown_key_fix(value_.path(), entry.key, known_)));
  }
}

Value Mapping::operator[](std::string_view key) const {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
    throw std::logic_error(fmt::format("key {} is read but was not declared", joined(value_.path(), key)));
  }
  return value_[key];
}

}  // namespace ridgeline::config
