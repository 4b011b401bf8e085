// Python's pickle format, as far as plain data goes: None, bool, int, float, str, list, tuple and dict.
//
// PyTorch writes its memory snapshots so. Reading runs nothing: whatever would import or call something in Python
// (GLOBAL, REDUCE, BUILD …) is refused, as is every opcode that plain data does not need. The opcodes are those of
// Python's Lib/pickletools.py; protocols 0 to 5 are read, protocol 2 is written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline {

struct PickleSequence;
struct PickleDict;

/// A value; containers and text are shared where the pickle shares them.
struct PickleValue {
  using Text = std::shared_ptr<const std::string>;
  std::variant<std::monostate, bool, std::int64_t, double, Text, std::shared_ptr<PickleSequence>,
               std::shared_ptr<PickleDict>>
      value;

  static PickleValue text(std::string_view text) { return {std::make_shared<const std::string>(text)}; }
  static PickleValue list(std::vector<PickleValue> items = {});
  static PickleValue tuple(std::vector<PickleValue> items);
  static PickleValue dict(std::vector<std::pair<PickleValue, PickleValue>> items = {});
  static PickleValue integer(std::int64_t number) { return {number}; }
  static PickleValue boolean(bool truth) { return {truth}; }

  /// Null where the value is of another type.
  [[nodiscard]] const std::string* as_text() const;
  [[nodiscard]] const PickleSequence* as_sequence() const;
  [[nodiscard]] const PickleDict* as_dict() const;
};

/// Where a container stands while it is read. Once inside another it changes no more: so nothing contains itself.
struct PickleNesting {
  int height = 1;  ///< containers one inside the other, itself included
  bool inside = false;
};
struct PickleSequence {
  std::vector<PickleValue> items;
  bool is_tuple = false;
  PickleNesting nesting{};
};
struct PickleDict {
  std::vector<std::pair<PickleValue, PickleValue>> items;  ///< in the order written
  PickleNesting nesting{};
  /// The last value of a text key; null without one.
  [[nodiscard]] const PickleValue* find(std::string_view key) const;
};

/// Deepest nesting that is read.
inline constexpr int kPickleDepth = 100;

/// Throws UserError with `source` and the offset of the byte that could not be read.
PickleValue read_pickle(std::string_view bytes, const std::string& source);

/// Protocol 2. Equal texts and shared containers are written once.
std::string write_pickle(const PickleValue& value);

}  // namespace ridgeline
