#include "sim/trace/profiler/profiler_events.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/trace/json_pieces.h"
#include "sim/trace/profiler/recorded_ranks.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {

namespace od = simdjson::ondemand;

std::uint32_t NamePool::add(std::string_view name) {
  const auto [it, is_new] = index_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(&it->first);
  return it->second;
}

namespace {

enum class Wanted : std::uint8_t { nothing, operation, runtime, kernel, copy, set, sync, annotation, overhead, memory };

/// Categories as today's Kineto and older ones spell them.
Wanted wanted(std::string_view category, std::string_view phase, std::string_view name) {
  if (phase == "i") return name == "[memory]" ? Wanted::memory : Wanted::nothing;
  if (phase != "X") return Wanted::nothing;
  struct Entry {
    std::string_view category;
    Wanted wanted;
  };
  static constexpr Entry kEntries[] = {{"cpu_op", Wanted::operation},   {"cuda_runtime", Wanted::runtime},
                                       {"kernel", Wanted::kernel},      {"cuda_driver", Wanted::runtime},
                                       {"gpu_memset", Wanted::set},     {"cuda_sync", Wanted::sync},
                                       {"gpu_memcpy", Wanted::copy},    {"user_annotation", Wanted::annotation},
                                       {"overhead", Wanted::overhead},  {"Operator", Wanted::operation},
                                       {"operator", Wanted::operation}, {"Runtime", Wanted::runtime},
                                       {"runtime", Wanted::runtime},    {"Kernel", Wanted::kernel},
                                       {"Memcpy", Wanted::copy},        {"Memset", Wanted::set},
                                       {"hip_runtime", Wanted::runtime}};
  for (const Entry& entry : kEntries)
    if (entry.category == category) return entry.wanted;
  return Wanted::nothing;
}

/// Strings where they stand. simdjson's own functions copy each into a buffer made for the document; on broken text
/// with numbers in quotes they wrote behind its end, as a fuzz target found (why inside the library is not known).
class Strings {
 public:
  explicit Strings(std::string_view document) : end_(document.data() + document.size()) {}
  /// Nothing for one without an end or with an escape that means nothing.
  std::optional<std::string_view> read(od::raw_json_string raw) {
    const char* at = raw.raw();
    bool escapes = false;
    for (; at < end_ && *at != '"'; ++at)
      if (*at == '\\') escapes = true, ++at;
    if (at >= end_) return std::nullopt;
    const std::string_view text(raw.raw(), static_cast<std::size_t>(at - raw.raw()));
    if (!escapes) return text;
    const nlohmann::json whole = nlohmann::json::parse('"' + std::string(text) + '"', nullptr, false);
    if (!whole.is_string()) return std::nullopt;
    return unescaped_.emplace_back(whole.get<std::string>());
  }
  std::optional<std::string_view> read(od::value value) {
    od::raw_json_string raw;
    if (value.get_raw_json_string().get(raw) != simdjson::SUCCESS) return std::nullopt;
    return read(raw);
  }
  template <typename Field>
  std::optional<std::string_view> key_of(Field& field) {
    od::raw_json_string raw;
    if (field.key().get(raw) != simdjson::SUCCESS) return std::nullopt;
    return read(raw);
  }

 private:
  const char* end_;
  std::list<std::string> unescaped_;
};

/// Numbers may stand in quotes in old traces. Nothing: neither.
std::optional<double> number_of(od::value value, Strings& strings) {
  double number = 0.0;
  od::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) return std::nullopt;
  if (type == od::json_type::number) {
    if (value.get_double().get(number) != simdjson::SUCCESS || !std::isfinite(number)) return std::nullopt;
    return number;
  }
  const auto text = type == od::json_type::string ? strings.read(value) : std::nullopt;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// A thread, process or stream: a number, or a word that stands for one.
std::int64_t identity_of(od::value value, Strings& strings) {
  if (const auto number = number_of(value, strings)) return std::llround(std::clamp(*number, -9e15, 9e15));
  const auto text = strings.read(value);
  return text ? static_cast<std::int64_t>(std::hash<std::string_view>{}(*text) >> 1) : 0;
}

/// The text of an object; anything else is no arguments at all.
simdjson::error_code raw_object(od::value value, std::string_view& into) {
  od::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return simdjson::SUCCESS;
  return object.raw_json().get(into);
}

struct Arguments {
  double correlation = -1, external_id = -1, stream = -1, bytes = 0, allocated = -1, reserved = -1, device_type = -1,
         device = 0, wait_on_stream = -1, record_correlation = -1;
  double grid[3] = {0, 0, 0};
  GpuEvent::Message message;  ///< of a collective
};

}  // namespace

struct ProfilerEventReader::State {
  State(std::string trace, Defects& found) : path(std::move(trace)), defects(found) {}

  std::string path;
  Defects& defects;
  ProfilerEvents events;
  od::parser parser, argument_parser;
  bool capital_categories = false;  ///< Kineto's until 2021
  bool old_arrays = false;          ///< kernels of PyTorch take at::detail::Array: before 2.5
  std::int64_t seen = 0, broken = 0, first_broken_line = 0;
  double first = std::numeric_limits<double>::infinity();

  [[noreturn]] void fail(std::int64_t line, const std::string& what) const {
    throw UserError(fmt::format("{}:{}: {}", path, line, what));
  }
  Arguments read_arguments(std::string_view text);
  void keep(Wanted kind, HostEvent event, std::optional<double> duration, std::string_view name,
            std::string_view arguments, std::int64_t line);
};

Arguments ProfilerEventReader::State::read_arguments(std::string_view text) {
  Arguments result;
  if (text.empty()) return result;
  od::document document;
  od::object object;
  const simdjson::padded_string_view view(text.data(), text.size(), text.size() + JsonPieces::kPadding);
  if (argument_parser.iterate(view).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return result;
  Strings strings(text);
  for (auto field : object) {
    od::value value;
    const auto known_key = strings.key_of(field);
    if (!known_key || field.value().get(value) != simdjson::SUCCESS) break;
    const std::string_view key = *known_key;
    const auto take = [&](double& into) { into = number_of(value, strings).value_or(into); };
    if (key == "correlation") take(result.correlation);
    else if (key == "External id" || key == "external id") take(result.external_id);
    else if (key == "stream") take(result.stream);
    else if (key == "device") take(result.device);
    else if (key == "wait_on_stream") take(result.wait_on_stream);
    else if (key == "wait_on_cuda_event_record_corr_id") take(result.record_correlation);
    else if (key == "bytes" || key == "Bytes") take(result.bytes);
    else if (key == "Total Allocated") take(result.allocated);
    else if (key == "Total Reserved") take(result.reserved);
    else if (key == "Device Type") take(result.device_type);
    else if (key == "Collective name" || key == "dtype" || key == "Process Group Description") {
      if (const auto word = strings.read(value))
        (key == "dtype" ? result.message.type : key[0] == 'C' ? result.message.name : result.message.group) = *word;
    } else if (key == "In msg nelems" || key == "Out msg nelems" || key == "Group size") {
      const std::int64_t number = std::llround(std::clamp(number_of(value, strings).value_or(0), 0.0, 9e15));
      (key == "Group size" ? result.message.ranks
       : key[0] == 'I'     ? result.message.sent
                           : result.message.received) = number;
    } else if (key == "grid") {
      od::array grid;
      if (value.get_array().get(grid) != simdjson::SUCCESS) continue;
      std::size_t i = 0;
      for (auto side : grid) {
        od::value number;
        if (side.get(number) != simdjson::SUCCESS || i >= 3) break;
        result.grid[i++] = number_of(number, strings).value_or(0);
      }
    }
  }
  return result;
}

/// Adds an event to those of its kind; `duration` in microseconds, of all but samples of the memory.
void ProfilerEventReader::State::keep(Wanted kind, HostEvent event, std::optional<double> duration,
                                      std::string_view name, std::string_view arguments, std::int64_t line) {
  const auto whole = [](double number) { return std::llround(std::clamp(number, -9e15, 9e15)); };
  switch (kind) {
    case Wanted::nothing: break;
    case Wanted::operation: {
      const Arguments a = read_arguments(arguments);
      event.name = events.names.add(name);
      events.operators.push_back({event, whole(a.external_id), line, std::string(arguments)});
      break;
    }
    case Wanted::annotation:
      event.name = events.names.add(name);
      events.annotations.push_back(event);
      break;
    case Wanted::overhead: events.overheads.push_back(event); break;
    case Wanted::runtime: {
      const Arguments a = read_arguments(arguments);
      event.name = events.names.add(name);
      events.hip = events.hip || name.starts_with("hip");
      events.runtime.push_back({event, whole(a.correlation), whole(a.external_id)});
      break;
    }
    case Wanted::kernel:
    case Wanted::copy:
    case Wanted::set: {
      const Arguments a = read_arguments(arguments);
      const auto of = kind == Wanted::kernel ? GpuEvent::Kind::kernel
                                             : (kind == Wanted::copy ? GpuEvent::Kind::copy : GpuEvent::Kind::set);
      if (*duration == 0) defects.add("GPU activities of no duration");
      events.gpu.push_back({of, event.begin, event.end, events.names.add(name), whole(a.correlation),
                            whole(a.external_id), a.stream >= 0 ? whole(a.stream) : event.thread,
                            whole(a.grid[0] * a.grid[1] * a.grid[2]), whole(std::max(0.0, a.bytes)), whole(a.device),
                            event.place, a.message, whole(a.grid[1])});
      break;
    }
    case Wanted::sync: {
      const Arguments a = read_arguments(arguments);
      using Kind = SyncEvent::Kind;
      const Kind waits = name == "Stream Wait Event" ? Kind::stream_waits
                         : name.starts_with("Event") ? Kind::host_waits_for_event
                         : name == "Stream Sync"     ? Kind::host_waits_for_stream
                                                     : Kind::host_waits_for_all;
      events.syncs.push_back({waits, event.begin, event.end, whole(a.stream), whole(a.wait_on_stream),
                              whole(a.correlation), whole(a.record_correlation), event.place});
      break;
    }
    case Wanted::memory: {
      const Arguments a = read_arguments(arguments);
      if (a.allocated >= 0 && a.device_type != 0)
        events.memory.push_back({event.begin, whole(a.allocated), whole(a.reserved), event.place});
      break;
    }
  }
}

ProfilerEventReader::ProfilerEventReader(std::string path, Defects& defects)
    : state_(std::make_unique<State>(std::move(path), defects)) {}
ProfilerEventReader::~ProfilerEventReader() = default;

void ProfilerEventReader::event(std::string_view text, std::int64_t line) {
  State& s = *state_;
  ++s.seen;
  std::string_view category, phase, name, arguments;
  std::optional<double> at, duration;
  bool has_duration = false, has_time = false;
  std::int64_t thread = 0, process = 0;
  const auto broken = [&] {
    if (s.broken++ == 0) s.first_broken_line = line;
  };
  od::document document;
  od::object object;
  const simdjson::padded_string_view view(text.data(), text.size(), text.size() + JsonPieces::kPadding);
  if (s.parser.iterate(view).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return broken();
  Strings strings(text);
  const auto word = [&](od::value value, std::string_view& into) {
    const auto read = strings.read(value);
    into = read.value_or(into);
    return read.has_value();
  };
  for (auto field : object) {
    od::value value;
    const auto key = strings.key_of(field);
    if (!key || field.value().get(value) != simdjson::SUCCESS) return broken();
    bool whole = true;
    if (*key == "ph") whole = word(value, phase);
    else if (*key == "cat") whole = word(value, category);
    else if (*key == "name") whole = word(value, name);
    else if (*key == "pid") process = identity_of(value, strings);
    else if (*key == "tid") thread = identity_of(value, strings);
    else if (*key == "ts") has_time = true, at = number_of(value, strings);
    else if (*key == "dur") has_duration = true, duration = number_of(value, strings);
    else if (*key == "args") whole = raw_object(value, arguments) == simdjson::SUCCESS;
    if (!whole) return broken();
  }
  Wanted kind = wanted(category, phase, name);
  s.capital_categories = s.capital_categories || (kind == Wanted::kernel && category == "Kernel");
  s.old_arrays = s.old_arrays || (kind == Wanted::kernel && name.find("at::detail::Array<") != name.npos);
  // Until PyTorch 1.9 marks stood among the operators.
  if (kind == Wanted::operation && (name.starts_with("ProfilerStep") || name.starts_with("Optimizer.step#")))
    kind = Wanted::annotation;
  if (kind == Wanted::nothing) return;
  if (has_time && !at) s.fail(line, fmt::format("\"ts\" of '{}' is not a finite number", name));
  if (has_duration && !duration) s.fail(line, fmt::format("\"dur\" of '{}' is not a finite number", name));
  constexpr double kMostTime = 1e19, kLongest = 1e13;  // microseconds: beyond any epoch; four months
  if (at && std::abs(*at) > kMostTime) s.fail(line, fmt::format("\"ts\" of '{}' is no time: {}", name, *at));
  if (duration && *duration > kLongest)
    s.fail(line, fmt::format("\"dur\" of '{}' is no duration: {}", name, *duration));
  if (!at) return s.defects.add("events without a time, left out");
  if (kind != Wanted::memory && !duration) return s.defects.add("events without a duration, left out");
  if (duration && *duration < 0) {
    s.defects.add("events with a negative duration, taken as 0");
    duration = 0;
  }
  s.first = std::min(s.first, *at);
  HostEvent event{*at, *at + duration.value_or(0), thread, process, s.seen, 0};
  s.keep(kind, event, duration, name, arguments, line);
}

void ProfilerEventReader::device(std::string_view text) {
  if (!state_->events.gpu_name.empty()) return;
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  std::string_view name;
  if (parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS &&
      element["name"].get(name) == simdjson::SUCCESS)
    state_->events.gpu_name = name;
  std::int64_t memory = 0;
  if (state_->events.gpu_name.empty()) return;
  if (element["totalGlobalMem"].get(memory) == simdjson::SUCCESS) state_->events.gpu_memory = memory;
  std::int64_t sms = 0, major = 0, minor = 0;
  if (element["numSms"].get(sms) == simdjson::SUCCESS && sms > 0) state_->events.gpu_sms = sms;
  constexpr std::int64_t kMostMajor = 99;
  if (element["computeMajor"].get(major) == simdjson::SUCCESS &&
      element["computeMinor"].get(minor) == simdjson::SUCCESS && major > 0 && major <= kMostMajor && minor >= 0 &&
      minor < 10)
    state_->events.gpu_capability = 10 * major + minor;
}

void ProfilerEventReader::distributed(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  std::int64_t ranks = 0;
  if (parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS &&
      element["world_size"].get(ranks) == simdjson::SUCCESS && ranks > 0)
    state_->events.world = ranks;
}

void ProfilerEventReader::predicted(std::string_view text) {
  constexpr double kLongest = 1e13;  // four months
  state_->events.source = ProfilerSource::timeline;
  double step = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error == std::errc{} && step > 0.0 && step < kLongest) state_->events.predicted_step = step;
}

ProfilerEvents ProfilerEventReader::finish() {
  State& s = *state_;
  if (s.broken > 0) {
    // A few events with a stray quote in a kernel's name are known to happen; more is not a trace.
    if (s.broken > 10 + s.seen / 100)
      s.fail(
          s.first_broken_line,
          fmt::format("not valid JSON, as are {} of {} events: not a trace of PyTorch's profiler", s.broken, s.seen));
    s.defects.add("events that are not valid JSON, left out", s.broken);
  }
  keep_first_rank(s.events, s.path);
  constexpr double kOf2021 = 11.7, kOf2023 = 11.8;  // toolkits of hw/software that stand for these years
  if (s.capital_categories || s.old_arrays) s.events.toolkit = s.capital_categories ? kOf2021 : kOf2023;
  const auto settle = [&](auto& events) {
    for (auto& event : events) event.begin -= s.first, event.end -= s.first;
    // Of two that begin together the longer one is outside.
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
  };
  settle(s.events.operators);
  settle(s.events.runtime);
  settle(s.events.gpu);
  settle(s.events.syncs);
  settle(s.events.annotations);
  settle(s.events.overheads);
  for (MemoryEvent& event : s.events.memory) event.at -= s.first;
  std::stable_sort(s.events.memory.begin(), s.events.memory.end(),
                   [](const MemoryEvent& a, const MemoryEvent& b) { return a.at < b.at; });
  return std::move(s.events);
}

}  // namespace ridgeline::trace
