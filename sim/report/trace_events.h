// Events of a Chrome trace, as text. Times are seconds; they are written as microseconds after `origin`.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sim/report/json_text.h"

namespace ridgeline {

class TraceEvents {
 public:
  explicit TraceEvents(double origin) : origin_(origin) {}

  /// `add_arguments` is called with the JsonObject that they belong into.
  template <class Arguments>
  void slice(std::string_view cat, std::string_view name, int pid, int tid, double begin, double end,
             const Arguments& add_arguments) {
    const std::int64_t from = nanoseconds(begin), to = nanoseconds(end);
    separate();
    JsonObject event(text_);
    event.add("ph", "X").add("cat", cat).add("name", name).add("pid", pid).add("tid", tid);
    event.add("ts", static_cast<double>(from) / 1e3).add("dur", static_cast<double>(to - from) / 1e3);
    event.add_with("args", [&](std::string& out) {
      JsonObject arguments(out);
      add_arguments(arguments);
    });
  }
  void flow(const char* ph, std::size_t id, int pid, int tid, double time) {
    separate();
    JsonObject event(text_);
    event.add("ph", ph).add("id", id).add("pid", pid).add("tid", tid).add("ts", at(time));
    event.add("cat", "ac2g").add("name", "ac2g");
    if (*ph == 'f') event.add("bp", "e");
  }
  template <class Value>
  void metadata(const char* what, int pid, int tid, const char* key, const Value& value) {
    separate();
    JsonObject event(text_);
    event.add("ph", "M").add("ts", 0).add("name", what).add("pid", pid).add("tid", tid);
    event.add_with("args", [&](std::string& out) { JsonObject(out).add(key, value); });
  }
  void counter(const char* name, int pid, double time, std::initializer_list<std::pair<const char*, double>> values) {
    separate();
    JsonObject event(text_);
    event.add("ph", "C").add("name", name).add("pid", pid).add("tid", 0).add("ts", at(time));
    event.add_with("args", [&](std::string& out) {
      JsonObject arguments(out);
      for (const auto& [key, value] : values) arguments.add(key, value);
    });
  }
  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  /// Events with commas between.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!text_.empty()) text_ += ',';
  }
  // Whole nanoseconds, so that slices nest after rounding as they did before.
  [[nodiscard]] std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }
  [[nodiscard]] double at(double seconds) const { return static_cast<double>(nanoseconds(seconds)) / 1e3; }

  double origin_;
  std::string text_;
};

}  // namespace ridgeline
