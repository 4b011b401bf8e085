// Events of a Chrome trace. Times are seconds; they are written as microseconds after `origin`.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace ridgeline {

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;
  explicit TraceEvents(double origin) : origin_(origin) {}

  void slice(std::string_view cat, std::string_view name, int pid, int tid, double begin, double end, Json args) {
    const std::int64_t from = nanoseconds(begin), to = nanoseconds(end);
    events_.push_back({{"ph", "X"},
                       {"cat", cat},
                       {"name", name},
                       {"pid", pid},
                       {"tid", tid},
                       {"ts", static_cast<double>(from) / 1e3},
                       {"dur", static_cast<double>(to - from) / 1e3},
                       {"args", std::move(args)}});
  }
  void flow(const char* ph, std::size_t id, int pid, int tid, double time) {
    events_.push_back(
        {{"ph", ph}, {"id", id}, {"pid", pid}, {"tid", tid}, {"ts", at(time)}, {"cat", "ac2g"}, {"name", "ac2g"}});
    if (*ph == 'f') events_.back()["bp"] = "e";
  }
  void metadata(const char* what, int pid, int tid, const char* key, Json value) {
    events_.push_back(
        {{"ph", "M"}, {"ts", 0}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{key, std::move(value)}}}});
  }
  void counter(const char* name, int pid, double time, Json args) {
    events_.push_back(
        {{"ph", "C"}, {"name", name}, {"pid", pid}, {"tid", 0}, {"ts", at(time)}, {"args", std::move(args)}});
  }
  Json take() { return std::move(events_); }

 private:
  // Whole nanoseconds, so that slices nest after rounding as they did before.
  [[nodiscard]] std::int64_t nanoseconds(double seconds) const { return std::llround((seconds - origin_) * 1e9); }
  [[nodiscard]] double at(double seconds) const { return static_cast<double>(nanoseconds(seconds)) / 1e3; }

  double origin_;
  Json events_ = Json::array();
};

}  // namespace ridgeline
