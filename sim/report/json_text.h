// JSON written as text, where there is so much of it that a tree of objects would take longer than all the rest.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace ridgeline {

/// Appends `text` in quotes. Bytes that are no UTF-8 become U+FFFD.
void append_json(std::string& out, std::string_view text);

template <std::integral T>
void append_json(std::string& out, T value) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else {
    const fmt::format_int digits(value);
    out.append(digits.data(), digits.size());
  }
}
/// The shortest digits that read back as `value`; null for what JSON cannot say.
inline void append_json(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  out.append(digits, fmt::format_to(digits, "{}", value));
}
inline void append_json(std::string& out, std::nullptr_t) { out += "null"; }
inline void append_json(std::string& out, const char* text) { append_json(out, std::string_view(text)); }
inline void append_json(std::string& out, const std::string& text) { append_json(out, std::string_view(text)); }

/// Writes an object key by key; closed when it goes.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  ~JsonObject() { out_ += '}'; }
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
  /// Members written before: `"a":1,"b":2`.
  JsonObject& add_members(std::string_view members) {
    separate();
    out_ += members;
    return *this;
  }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void begin(std::string_view name) {
    separate();
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace ridgeline
