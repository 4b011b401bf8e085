#include "sim/report/comparison_report.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/report/json/prediction_json.h"
#include "sim/report/text/comparison_words.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/report/text/number_words.h"
#include "sim/scenario/step_amount.h"
#include "sim/units/parse.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

/// "A", "B" …
char letter(std::size_t side) { return static_cast<char>('A' + side); }

std::string_view part_name(std::size_t part) {
  if (part == kCachedPart) return "cached_unused";
  return part == kContextPart ? "context" : kCategoryNames[part];
}

std::string signed_ms(Seconds t) { return fmt::format("{:+.2f} ms", in_milliseconds(t)); }

void write_row(std::string& out, std::string_view name, const Comparison& c, auto&& cell) {
  fmt::format_to(std::back_inserter(out), "  {:<20}", name);
  for (std::size_t i = 0; i < c.sides.size(); ++i) fmt::format_to(std::back_inserter(out), " {:>11}", cell(c.sides[i]));
  out += '\n';
}

bool knows_memory(const ComparedScenario& side) { return side.prediction.memory.source != MemorySource::unknown; }
/// A recording need not say how much a step works on.
std::string known_or_dash(double value, const std::string& words_of_it) { return value > 0.0 ? words_of_it : "-"; }

void write_table(std::string& out, const Comparison& c) {
  fmt::format_to(std::back_inserter(out), "\n  {:<20}", "");
  for (std::size_t i = 0; i < c.sides.size(); ++i) fmt::format_to(std::back_inserter(out), " {:>11}", letter(i));
  out += '\n';
  using Side = ComparedScenario;
  write_row(out, "step time", c, [](const Side& s) { return to_string(s.prediction.step.time); });
  for (const ClassDifference& d : c.differences.front().classes) {
    const auto time = [&](const Side& s) {
      return d.kernel_class ? s.classes[static_cast<std::size_t>(*d.kernel_class)].time : s.prediction.idle;
    };
    write_row(out, "  " + class_words(d), c, [&](const Side& s) { return to_string(time(s)); });
  }
  write_row(out, "samples a second", c, [](const Side& s) {
    const double rate = s.prediction.step.samples_per_s;
    return known_or_dash(rate, four_digits(rate));
  });
  write_row(out, "MFU", c, [](const Side& s) {
    const double mfu = s.prediction.step.mfu;
    return known_or_dash(mfu, fmt::format("{:.0f} %", 100 * mfu));
  });
  write_row(out, "energy a sample", c, [](const Side& s) {
    if (s.prediction.step.samples_per_s <= 0.0) return std::string("-");
    const StepPrediction& step = s.prediction.step;
    return fmt::format("{:.3g} J", step.power.value() * boards_of_step(s.scenario()) / step.samples_per_s);
  });
  write_row(out, "memory in use", c, [](const Side& s) {
    return knows_memory(s) ? gib(s.prediction.memory.device_used) : std::string("unknown");
  });
  write_row(out, "fits", c, [](const Side& s) { return !knows_memory(s) ? "-" : s.fits ? "yes" : "NO"; });
}

void write_difference(std::string& out, const Comparison& c, std::size_t side) {
  const ComparedScenario &before = c.sides.front(), &after = c.sides[side];
  const Difference& d = c.differences[side - 1];
  fmt::format_to(std::back_inserter(out), "\n  {} against A: {} ({:+.1f} %)\n", letter(side), signed_ms(d.time),
                 100.0 * ratio(d.time, before.prediction.step.time));
  Seconds rest{};
  for (const ClassDifference& part : d.classes) {
    if (std::abs(part.difference.value()) < 0.002 * before.prediction.step.time.value()) {
      rest += part.difference;
      continue;
    }
    const std::string reason = reason_for(part, before, after);
    write_wrapped(out, fmt::format("{:>15}  ", signed_ms(part.difference)),
                  class_words(part) + (reason.empty() ? "" : ": " + reason));
  }
  if (rest != Seconds{}) fmt::format_to(std::back_inserter(out), "{:>15}  the rest\n", signed_ms(rest));
  if (!knows_memory(before) || !knows_memory(after)) {
    out += "  memory: unknown, as a recording says nothing of it\n";
    return;
  }
  std::string parts;
  std::int64_t small = 0;
  const bool knows_parts = before.prediction.memory.source == after.prediction.memory.source &&
                           after.prediction.memory.source == MemorySource::simulated;
  for (const MemoryDifference& part : d.parts) {
    if (!knows_parts) break;  // peaks as recorded are of one piece
    const std::int64_t bytes = part.after - part.before;
    if (std::abs(bytes) < (8 << 20)) small += bytes;
    else
      parts += fmt::format("{}{:+.2f} {}", parts.empty() ? "" : ", ", static_cast<double>(bytes) / kGiB,
                           words(part_name(part.part)));
  }
  if (std::abs(small) >= (8 << 20))
    parts += fmt::format("{}{:+.2f} the rest", parts.empty() ? "" : ", ", static_cast<double>(small) / kGiB);
  write_wrapped(
      out, "  memory: ",
      fmt::format("{:+.2f} GiB{}", static_cast<double>(d.memory) / kGiB, parts.empty() ? "" : " (" + parts + ")"));
}

}  // namespace

std::string comparison_text(const Comparison& c) {
  std::string out;
  for (std::size_t i = 0; i < c.sides.size(); ++i) {
    const ComparedScenario& side = c.sides[i];
    const std::string on = side.label == side.prediction.hardware ? "" : ", " + side.prediction.hardware;
    write_wrapped(out, fmt::format("  {}  ", letter(i)), side.label + on);
  }
  write_table(out, c);
  for (std::size_t i = 1; i < c.sides.size(); ++i) write_difference(out, c, i);
  return out;
}

ordered_json comparison_json(const Comparison& c) {
  ordered_json sides = ordered_json::array(), differences = ordered_json::array();
  for (const ComparedScenario& side : c.sides) {
    ordered_json entry{{"label", side.label}};
    entry.update(prediction_json(side.prediction));
    entry.erase("advice");
    sides.push_back(std::move(entry));
  }
  for (std::size_t i = 1; i < c.sides.size(); ++i) {
    const Difference& d = c.differences[i - 1];
    ordered_json classes = ordered_json::array(), parts = ordered_json::array();
    for (const ClassDifference& part : d.classes)
      classes.push_back({{"class", part.kernel_class ? name_of(*part.kernel_class) : "idle"},
                         {"before_s", part.before.time.value()},
                         {"after_s", part.after.time.value()},
                         {"difference_s", part.difference.value()},
                         {"from_work_s", part.from_work.value()},
                         {"from_rate_s", part.from_rate.value()},
                         {"kernels_before", part.before.kernels},
                         {"kernels_after", part.after.kernels},
                         {"reason", reason_for(part, c.sides.front(), c.sides[i])}});
    for (const MemoryDifference& part : d.parts)
      parts.push_back({{"part", part_name(part.part)},
                       {"before_bytes", part.before},
                       {"after_bytes", part.after},
                       {"difference_bytes", part.after - part.before}});
    differences.push_back(
        {{"label", c.sides[i].label},
         {"against", c.sides.front().label},
         {"time_s", d.time.value()},
         {"classes", std::move(classes)},
         {"memory_bytes",
          knows_memory(c.sides.front()) && knows_memory(c.sides[i]) ? ordered_json(d.memory) : ordered_json()},
         {"memory", std::move(parts)}});
  }
  return {{"scenarios", std::move(sides)}, {"differences", std::move(differences)}};
}

}  // namespace ridgeline
