#include "sim/training_files/facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "sim/config/config_error.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::training_files {

bool is_off(const config::Node& value) {
  using Kind = config::Node::Kind;
  if (value.kind == Kind::null) return true;
  if (value.kind == Kind::list) return value.items.empty();
  if (value.kind == Kind::mapping) return value.entries.empty();
  constexpr std::array<std::string_view, 9> kOff{"false", "no", "off", "none", "null", "0", "", "0.0", "disabled"};
  return std::find(kOff.begin(), kOff.end(), in_small_letters(value.scalar)) != kOff.end();
}

void Facts::set(const std::string& target, Fact fact) {
  const auto found = facts_.find(target);
  if (found != facts_.end() && fact.key.empty() && !found->second.key.empty()) return;
  facts_[target] = std::move(fact);
}

void Facts::erase(std::string_view target) {
  if (const auto found = facts_.find(target); found != facts_.end()) facts_.erase(found);
}

const Fact* Facts::find(std::string_view target) const {
  const auto found = facts_.find(target);
  return found == facts_.end() ? nullptr : &found->second;
}

std::string Facts::text(std::string_view target, std::string_view fallback) const {
  const Fact* fact = find(target);
  return fact == nullptr || fact->value.kind != config::Node::Kind::scalar ? std::string(fallback) : fact->value.scalar;
}

bool Facts::flag(std::string_view target) const {
  const Fact* fact = find(target);
  return fact != nullptr && !is_off(fact->value);
}

std::optional<std::int64_t> Facts::count(std::string_view target) const {
  const Fact* fact = find(target);
  if (fact == nullptr || fact->value.kind == config::Node::Kind::null) return std::nullopt;
  std::string digits = fact->value.scalar;
  std::erase(digits, '_');
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  constexpr double kMost = 1e15;
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || value != std::floor(value) ||
      std::abs(value) > kMost)
    fail(target, "expected a whole number, not " + fact->value.describe());
  return static_cast<std::int64_t>(value);
}

void Facts::fail(std::string_view target, std::string_view message) const {
  const Fact* fact = find(target);
  if (fact == nullptr) throw config::ConfigError({}, target, message);
  throw config::ConfigError(fact->value.origin, fact->key, message);
}

}  // namespace ridgeline::training_files
