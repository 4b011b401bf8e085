// Fields of a line of JSON in an op trace, with what is wrong about them in words.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/units/meant_name.h"
#include "sim/workload/dtype.h"
#include "sim/workload/op_fields.h"

namespace ridgeline::trace {

using simdjson::dom::element;
using simdjson::dom::object;

/// No size of a training run comes near this; sums of some stay below the largest integer.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 50;
/// What a mistake on a line says; the place is put before it.
struct LineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline element required(const object& line, std::string_view key) {
  element value;
  if (line[key].get(value) != simdjson::SUCCESS) throw LineError(fmt::format("\"{}\" is missing", key));
  return value;
}

inline std::int64_t integer(const element& value, std::string_view key, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS)
    throw LineError(fmt::format("\"{}\" must be a whole number, got {}", key, simdjson::minify(value)));
  if (number < least || number > most)
    throw LineError(fmt::format("\"{}\" must be {} to {}, got {}", key, least, most, number));
  return number;
}
inline std::int64_t integer(const object& line, std::string_view key, std::int64_t least,
                            std::int64_t most = kLargest) {
  return integer(required(line, key), key, least, most);
}

inline std::string_view word(const object& line, std::string_view key) {
  const element value = required(line, key);
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS)
    throw LineError(fmt::format("\"{}\" must be a string, got {}", key, simdjson::minify(value)));
  return text;
}

template <typename Names>
std::size_t name_index(std::string_view given, std::string_view key, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found == names.end()) {
    const std::string meant = meant_name(given, names);
    throw LineError(fmt::format("unknown {} \"{}\" ({})", key, given,
                                meant.empty() ? expected_names(given, names) : fmt::format("did you mean {}?", meant)));
  }
  return static_cast<std::size_t>(found - names.begin());
}

inline double number_or_zero(const object& line, std::string_view key) {
  element value;
  if (line[key].get(value) != simdjson::SUCCESS) return 0.0;
  double number = 0.0;
  if (value.get(number) != simdjson::SUCCESS || !(number >= 0.0))
    throw LineError(fmt::format("\"{}\" must be a number of at least 0, got {}", key, simdjson::minify(value)));
  return number;
}
inline std::string text_or_empty(const object& line, std::string_view key) {
  element value;
  if (line[key].get(value) != simdjson::SUCCESS) return "";
  return std::string(word(line, key));
}

struct FieldReader {
  const object& line;
  void operator()(std::string_view key, DType& value) const {
    const std::string_view name = word(line, key);
    const auto type = dtype_from(name);
    if (!type) throw LineError(fmt::format("unknown {} \"{}\"; expected fp32, tf32, bf16, fp16, ...", key, name));
    value = *type;
  }
  void operator()(std::string_view key, bool& value) const {
    const element given = required(line, key);
    if (given.get(value) != simdjson::SUCCESS)
      throw LineError(fmt::format("\"{}\" must be true or false, got {}", key, simdjson::minify(given)));
  }
  /// A field that files need not have.
  template <typename T>
  void unless(std::string_view key, T& value, const T& usual) const {
    element given;
    if (line[key].get(given) == simdjson::SUCCESS) (*this)(key, value);
    else value = usual;
  }
  void operator()(std::string_view key, std::int64_t& value) const { value = integer(line, key, 0); }
  void operator()(std::string_view key, std::uint8_t& value) const {
    value = static_cast<std::uint8_t>(integer(line, key, 0, 3));
  }
  void operator()(std::string_view key, std::string& value) const { value = word(line, key); }
  void operator()(std::string_view key, std::vector<std::int64_t>& value) const {
    simdjson::dom::array list;
    if (required(line, key).get(list) != simdjson::SUCCESS)
      throw LineError(fmt::format("\"{}\" must be a list of whole numbers", key));
    for (const element size : list) value.push_back(integer(size, key, 0, kLargest));
  }
  void operator()(std::string_view key, std::shared_ptr<const std::vector<std::int64_t>>& value) const {
    auto sizes = std::make_shared<std::vector<std::int64_t>>();
    (*this)(key, *sizes);
    value = std::move(sizes);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view key, Enum& value) const {
    value = static_cast<Enum>(name_index(word(line, key), key, names_of(value)));
  }
};

template <std::size_t I = 0>
Op op_of_kind(std::size_t kind) {
  if constexpr (I + 1 < std::variant_size_v<Op>)
    if (kind != I) return op_of_kind<I + 1>(kind);
  return Op{std::in_place_index<I>};
}

/// An operation by its "kind" and the fields of that.
inline Op read_op(const object& line) {
  Op op = op_of_kind(name_index(word(line, "kind"), "kind", kKindNames));
  for_each_field(op, FieldReader{line});
  return op;
}

}  // namespace ridgeline::trace
