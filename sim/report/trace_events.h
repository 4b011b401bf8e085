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
  /// Appends to `text`, with commas between events.
  TraceEvents(TextBuffer& text, double origin) : text_(text), origin_(origin) {}

  /// `add_arguments` is called with the JsonObject that they belong into.
  template <class Arguments>
  void slice(std::string_view cat, std::string_view name, int pid, int tid, double begin, double end,
             const Arguments& add_arguments) {
    const std::int64_t from = nanoseconds(begin), to = nanoseconds(end);
    separate();
    JsonObject event(text_);
    event.add("ph", "X").add("cat", cat).add("name", name).add("pid", pid).add("tid", tid);
    event.add_thousandths("ts", from).add_thousandths("dur", to - from);
    event.add_with("args", [&](TextBuffer& out) {
      JsonObject arguments(out);
      add_arguments(arguments);
    });
  }
  void flow(const char* ph, std::size_t id, int pid, int tid, double time) {
    separate();
    JsonObject event(text_);
    event.add("ph", ph).add("id", id).add("pid", pid).add("tid", tid).add_thousandths("ts", nanoseconds(time));
    event.add("cat", "ac2g").add("name", "ac2g");
    if (*ph == 'f') event.add("bp", "e");
  }
  template <class Value>
  void metadata(const char* what, int pid, int tid, const char* key, const Value& value) {
    separate();
    JsonObject event(text_);
    event.add("ph", "M").add("ts", 0).add("name", what).add("pid", pid).add("tid", tid);
    event.add_with("args", [&](TextBuffer& out) { JsonObject(out).add(key, value); });
  }
  void counter(const char* name, int pid, double time, std::initializer_list<std::pair<const char*, double>> values) {
    separate();
    JsonObject event(text_);
    event.add("ph", "C").add("name", name).add("pid", pid).add("tid", 0).add_thousandths("ts", nanoseconds(time));
    event.add_with("args", [&](TextBuffer& out) {
      JsonObject arguments(out);
      for (const auto& [key, value] : values) arguments.add(key, value);
    });
  }

 private:
  void separate() {
    if (!first_) text_.add(',');
    first_ = false;
  }
  // Whole nanoseconds, so that slices nest after rounding as they did before.
  [[nodiscard]] std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }

  TextBuffer& text_;
  double origin_;
  bool first_ = true;
};

}  // namespace ridgeline
