// JSON written as text, where there is so much of it that a tree of objects would take longer than all the rest.
#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/units/text_buffer.h"

namespace ridgeline {

/// Appends `text` in quotes. Bytes that are no UTF-8 become U+FFFD.
void append_json(TextBuffer& out, std::string_view text);

template <std::integral T>
void append_json(TextBuffer& out, T value) {
  if constexpr (std::same_as<T, bool>) {
    out.add(value ? "true" : "false");
  } else {
    const fmt::format_int digits(value);
    out.add(std::string_view(digits.data(), digits.size()));
  }
}
/// The shortest digits that read back as `value`; null for what JSON cannot say.
inline void append_json(TextBuffer& out, double value) {
  if (!std::isfinite(value)) return out.add("null");
  constexpr double kWhole = 1e15;  // below it whole numbers are written without an exponent
  if (std::abs(value) < kWhole && value == std::trunc(value) && !std::signbit(value))
    return append_json(out, static_cast<std::int64_t>(value));
  out.wrote(fmt::format_to(out.room(32), FMT_COMPILE("{}"), value));
}
inline void append_json(TextBuffer& out, std::nullptr_t) { out.add("null"); }
inline void append_json(TextBuffer& out, const char* text) { append_json(out, std::string_view(text)); }
inline void append_json(TextBuffer& out, const std::string& text) { append_json(out, std::string_view(text)); }

/// A quantity in thousandths, as the double nearest to it would be written; at most 2^53 of them.
inline void append_thousandths(TextBuffer& out, std::int64_t thousandths) {
  if (thousandths < 0 || thousandths > std::int64_t{1} << 49)
    return append_json(out, static_cast<double>(thousandths) / 1e3);
  append_json(out, thousandths / 1000);
  const auto rest = static_cast<int>(thousandths % 1000);
  if (rest == 0) return;
  char* at = out.room(4);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  if (rest % 100 != 0) *at++ = static_cast<char>('0' + rest / 10 % 10);
  if (rest % 10 != 0) *at++ = static_cast<char>('0' + rest % 10);
  out.wrote(at);
}

/// Writes an object key by key; closed when it goes.
class JsonObject {
 public:
  explicit JsonObject(TextBuffer& out) : out_(out) { out_.add('{'); }
  ~JsonObject() { out_.close('}'); }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  /// `name` has nothing to escape.
  template <class T>
  JsonObject& add(std::string_view name, const T& value) {
    begin(name);
    append_json(out_, value);
    return *this;
  }
  /// The value that `write` appends to the text.
  template <class Write>
  JsonObject& add_with(std::string_view name, const Write& write) {
    begin(name);
    write(out_);
    return *this;
  }
  JsonObject& add_thousandths(std::string_view name, std::int64_t value) {
    begin(name);
    append_thousandths(out_, value);
    return *this;
  }
  /// Members written before: `"a":1,"b":2`.
  JsonObject& add_members(std::string_view members) {
    if (!first_) out_.add(',');
    first_ = false;
    out_.add(members);
    return *this;
  }

 private:
  void begin(std::string_view name) {
    char* at = out_.room(name.size() + 4);
    if (!first_) *at++ = ',';
    first_ = false;
    *at++ = '"';
    at = std::copy(name.begin(), name.end(), at);
    *at++ = '"';
    *at++ = ':';
    out_.wrote(at);
  }

  TextBuffer& out_;
  bool first_ = true;
};

}  // namespace ridgeline
