// Typed, strict reading of a Node tree. A Value is a node together with its dotted path, or the absence of one.
//
//   Mapping training(root["training"], {"micro_batch", "precision", "limit"}); // any other key is an error
//   int batch = training["micro_batch"].integer({1, 65536});                   // required, since no fallback is given
//   auto precision = training["precision"].choice(kPrecisions, Precision::fp32);
//   Bytes limit = training["limit"].quantity<Bytes>({}, Bytes{0});             // "20 MiB": the unit is mandatory
//
// Every failure is a ConfigError with the place, the key, what was found and what was expected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/node.h"
#include "sim/units/nearest_name.h"
#include "sim/units/parse.h"

namespace ridgeline::config {

/// Closed interval of allowed numbers, in base units. NaN and infinities are never allowed.
struct Range {
  double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
  bool low_open = false;  ///< the lower end itself is excluded

  static Range positive() { return {0.0, std::numeric_limits<double>::max(), true}; }
  static Range non_negative() { return {0.0, std::numeric_limits<double>::max(), false}; }
  [[nodiscard]] bool holds(double value) const { return (low_open ? value > low : value >= low) && value <= high; }
};

struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
};

template <typename Enum>
using Choices = std::span<const std::pair<std::string_view, Enum>>;

template <typename Q>
inline constexpr Dimension kDimensionOf = Dimension::dimensionless;
template <>
inline constexpr Dimension kDimensionOf<Bytes> = Dimension::bytes;
template <>
inline constexpr Dimension kDimensionOf<Flops> = Dimension::flops;
template <>
inline constexpr Dimension kDimensionOf<Seconds> = Dimension::seconds;
template <>
inline constexpr Dimension kDimensionOf<Cycles> = Dimension::cycles;
template <>
inline constexpr Dimension kDimensionOf<Joules> = Dimension::joules;
template <>
inline constexpr Dimension kDimensionOf<Hertz> = Dimension::hertz;
template <>
inline constexpr Dimension kDimensionOf<BytesPerSecond> = Dimension::bytes_per_second;
template <>
inline constexpr Dimension kDimensionOf<FlopsPerSecond> = Dimension::flops_per_second;
template <>
inline constexpr Dimension kDimensionOf<BytesPerCycle> = Dimension::bytes_per_cycle;
template <>
inline constexpr Dimension kDimensionOf<Watts> = Dimension::watts;
template <>
inline constexpr Dimension kDimensionOf<JoulesPerFlop> = Dimension::joules_per_flop;
template <>
inline constexpr Dimension kDimensionOf<JoulesPerByte> = Dimension::joules_per_byte;

class Value {
 public:
  /// The root of a tree. `path` is put before every key in messages; usually empty.
  explicit Value(const Node& node, std::string path = "")
      : node_(&node), path_(std::move(path)), origin_(node.origin) {}
  /// A key that is not there; `origin` is its mapping's.
  static Value absent(std::string path, const Origin& origin) { return Value(nullptr, std::move(path), origin); }

  [[nodiscard]] bool exists() const { return node_ != nullptr; }
  [[nodiscard]] const Node& node() const;  ///< error when absent
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Origin& origin() const { return origin_; }
  [[nodiscard]] bool is_mapping() const { return node_ && node_->kind == Node::Kind::mapping; }
  [[nodiscard]] bool is_list() const { return node_ && node_->kind == Node::Kind::list; }
  /// A scalar with exactly this text ("none").
  [[nodiscard]] bool is(std::string_view text) const {
    return node_ && node_->kind == Node::Kind::scalar && node_->scalar == text;
  }
  /// The same value called otherwise in messages, for keys that users do not see as such.
  [[nodiscard]] Value called(std::string path) const { return Value(node_, std::move(path), origin_); }
  /// The value of a key, or an absent value. An error when this is no mapping. Does not check for unknown keys.
  [[nodiscard]] Value operator[](std::string_view key) const;

  /// Each of these: an absent value gives the fallback, and is an error when there is none.
  [[nodiscard]] std::string text(std::optional<std::string> fallback = {}) const;
  [[nodiscard]] bool boolean(std::optional<bool> fallback = {}) const;  ///< true or false, nothing else
  [[nodiscard]] std::int64_t integer(IntegerRange range = {}, std::optional<std::int64_t> fallback = {}) const;
  [[nodiscard]] double number(Range range = {}, std::optional<double> fallback = {}) const;  ///< "0.5" or "50 %"
  template <typename Q>
  [[nodiscard]] Q quantity(Range range = {}, std::optional<Q> fallback = {}) const {
    static_assert(kDimensionOf<Q> != Dimension::dimensionless, "this quantity has no unit to be written in");
    if (!exists() && fallback) return *fallback;
    return Q{measure(kDimensionOf<Q>, range)};
  }
  template <typename Enum>
  [[nodiscard]] Enum choice(Choices<Enum> choices, std::optional<Enum> fallback = {}) const {
    if (!exists() && fallback) return *fallback;
    const std::string given = text();
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == given) return value;
      names.emplace_back(name);
    }
    fail_choice(given, names);
  }
  /// The items of a list, paths "key.0", "key.1" ...
  [[nodiscard]] std::vector<Value> list() const;

  /// Throws a ConfigError at this value.
  [[noreturn]] void fail(std::string_view message) const;

 private:
  friend class Mapping;
  Value(const Node* node, std::string path, Origin origin)
      : node_(node), path_(std::move(path)), origin_(std::move(origin)) {}

  /// A scalar's text, or an error saying that `expected` was expected.
  const std::string& scalar(std::string_view expected) const;
  double measure(Dimension dimension, Range range) const;
  double in_range(double value, Dimension dimension, Range range, std::string_view given) const;
  [[noreturn]] void fail_choice(std::string_view given, const std::vector<std::string>& names) const;

  const Node* node_;
  std::string path_;
  Origin origin_;
};

/// A mapping whose keys are all known: constructing it reports any other one, with the nearest name.
class Mapping {
 public:
  Mapping(Value value, std::initializer_list<std::string_view> known_keys)
      : Mapping(std::move(value), std::vector<std::string>(known_keys.begin(), known_keys.end())) {}
  Mapping(Value value, std::vector<std::string> known_keys);

  /// The value of a key, or an absent value. Asking for a key that is not among the known ones is a std::logic_error.
  [[nodiscard]] Value operator[](std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return (*this)[key].exists(); }
  [[nodiscard]] const Value& value() const { return value_; }

 private:
  Value value_;
  std::vector<std::string> known_;
};

}  // namespace ridgeline::config
