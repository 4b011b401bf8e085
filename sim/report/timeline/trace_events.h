// Events of a Chrome trace, as text. Times are seconds; they are written as microseconds after `origin`.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sim/report/json/json_text.h"

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
    text_.add(R"({"ph":"X","cat":)");
    append_json(text_, cat);
    text_.add(R"(,"name":)");
    append_json(text_, name);
    add_place(pid, tid);
    text_.add(R"(,"ts":)");
    append_thousandths(text_, from);
    text_.add(R"(,"dur":)");
    append_thousandths(text_, to - from);
    text_.add(R"(,"args":)");
    {
      JsonObject arguments(text_);
      add_arguments(arguments);
    }
    text_.add('}');
  }
  void flow(const char* ph, std::size_t id, int pid, int tid, double time) {
    separate();
    text_.add(R"({"ph":)");
    append_json(text_, ph);
    text_.add(R"(,"id":)");
    append_json(text_, id);
    add_place(pid, tid);
    text_.add(R"(,"ts":)");
    append_thousandths(text_, nanoseconds(time));
    text_.add(*ph == 'f' ? R"(,"cat":"ac2g","name":"ac2g","bp":"e"})" : R"(,"cat":"ac2g","name":"ac2g"})");
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
  void add_place(int pid, int tid) {
    text_.add(R"(,"pid":)");
    append_json(text_, pid);
    text_.add(R"(,"tid":)");
    append_json(text_, tid);
  }
  // Whole nanoseconds, so that slices nest after rounding as they did before.
  [[nodiscard]] std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }

  TextBuffer& text_;
  double origin_;
  bool first_ = true;
};

}  // namespace ridgeline
