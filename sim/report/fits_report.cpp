#include "sim/report/fits_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/number_words.h"
#include "sim/scenario/short_flags.h"

namespace ridgeline {
namespace {

constexpr std::size_t kFitsColumns = 80;

/// Batch, GiB, tokens/s; where nothing fits, what one sequence needs.
std::string fits_cell(const FitsCell& cell) {
  constexpr const char* kCell = "{:>6} {:>7} {:>7}";
  if (!cell.refused.empty()) return fmt::format(kCell, "-", "", "");
  const auto number = [](std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / kGiB); };
  if (!cell.largest) return fmt::format(kCell, "none", number(cell.needed), "");
  const Prediction& p = cell.largest->prediction;
  return fmt::format(kCell, cell.largest->micro_batch, number(p.memory.needed), four_digits(p.step.tokens_per_s));
}

}  // namespace

std::string fits_text(const Scenario& s, std::span<const FitsRow> rows) {
  std::string out;
  write_wrapped(
      out, "",
      fmt::format("{} on {} ({}): largest batch of {} tokens, GiB it needs, tokens/s", s.model.name, s.gpu.name,
                  gib(static_cast<std::int64_t>(s.gpu.dram.capacity.value())), s.training.sequence_length),
      kFitsColumns);
  out += fmt::format("\n{:<11}", "");
  for (const char* precision : kFitsPrecisions) out += fmt::format(" {:>22}", precision);
  out += fmt::format("\n{:<11}", "");
  for (std::size_t i = 0; i < std::size(kFitsPrecisions); ++i)
    out += fmt::format(" {:>6} {:>7} {:>7}", "batch", "GiB", "tok/s");
  out += '\n';
  bool none = false, refused = false;
  for (const FitsRow& row : rows) {
    out += fmt::format("{:<11}", row.way.label);
    for (const FitsCell& cell : row.cells) {
      out += " " + fits_cell(cell);
      none |= cell.refused.empty() && !cell.largest;
      refused |= !cell.refused.empty();
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  out += '\n';
  for (const FitsRow& row : rows)
    if (!row.way.sets.empty())
      write_wrapped(out, fmt::format("{:<11} ", row.way.label), as_flags(row.way.sets), kFitsColumns);
  if (none) out += "none: not even one sequence fits; GiB is what one needs\n";
  if (refused) out += "-: the program does not take it\n";
  return out;
}

nlohmann::ordered_json fits_json(const Scenario& s, std::span<const FitsRow> rows) {
  nlohmann::ordered_json out{{"model", s.model.name},
                             {"hardware", s.gpu.name},
                             {"memory_bytes", static_cast<std::int64_t>(s.gpu.dram.capacity.value())},
                             {"sequence_length", s.training.sequence_length},
                             {"cells", nlohmann::ordered_json::array()}};
  for (const FitsRow& row : rows)
    for (const FitsCell& cell : row.cells) {
      nlohmann::ordered_json one{
          {"way", row.way.label}, {"flags", as_flags(row.way.sets)}, {"precision", cell.precision}};
      if (!cell.refused.empty()) {
        one["error"] = cell.refused;
      } else if (cell.largest) {
        const Prediction& p = cell.largest->prediction;
        one["micro_batch"] = cell.largest->micro_batch;
        one["needed_bytes"] = p.memory.needed;
        one["step_time_s"] = p.step.time.value();
        one["tokens_per_s"] = p.step.tokens_per_s;
      } else {
        one["micro_batch"] = 0;
        one["needed_bytes"] = cell.needed;
      }
      out["cells"].push_back(std::move(one));
    }
  return out;
}

}  // namespace ridgeline
