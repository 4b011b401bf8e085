#include "sim/report/kernel_table_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/report/text/brief_kernel_name.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

constexpr const char* kCannotSay =
    "a table of sums says nothing of when kernels ran: step time, gaps, overlap and the host are in nsys export --type "
    "sqlite, which replay reads too";

std::string carried_cell(const std::optional<Seconds>& carried) {
  return carried ? fmt::format("{:>11}", to_string(*carried)) : "";
}

}  // namespace

std::string kernel_table_text(const std::string& file, const KernelTable& t) {
  std::string out = fmt::format("{}: table of a profiler{}\n", file,
                                t.reports.empty() ? "" : fmt::format(" ({})", fmt::join(t.reports, ", ")));
  auto to = std::back_inserter(out);
  const bool carried = !t.recorded_on.empty() && !t.hardware.empty();
  if (!t.kernels.empty()) {
    double launches = 0.0;
    Seconds there{};
    for (const TableFamily& family : t.families) launches += family.count, there += family.carried.value_or(Seconds{});
    fmt::format_to(to, "\n  GPU time      {} in {:.0f} kernels and copies of {} names\n", to_string(t.measured),
                   launches, t.kernels.size());
    if (carried)
      fmt::format_to(to, "  on {}  {}, each kernel's time carried over from {} by its class\n", t.hardware,
                     to_string(there), t.recorded_on);
    const std::string column = carried ? fmt::format("{:>11}", "carried") : "";
    const auto share = [&](Seconds time) { return 100.0 * ratio(time, t.measured); };
    fmt::format_to(to, "\n  {:>10}{} {:>7} {:>9}  family\n", "measured", column, "share", "count");
    for (const TableFamily& family : t.families)
      fmt::format_to(to, "  {:>10}{} {:>5.1f} % {:>9.0f}  {}\n", to_string(family.measured),
                     carried_cell(family.carried), share(family.measured), family.count, name_of(family.family));
    fmt::format_to(to, "\n  {:>10}{} {:>7} {:>9} {:>9}  {:<14} {:<15} kernel\n", "measured", column, "share", "count",
                   "mean", "limiter", "family");
    constexpr std::size_t kShown = 30;
    for (std::size_t i = 0; i < std::min(kShown, t.kernels.size()); ++i) {
      const TableKernel& kernel = t.kernels[i];
      fmt::format_to(to, "  {:>10}{} {:>5.1f} % {:>9.0f} {:>9}  {:<14} {:<15} {}\n", to_string(kernel.measured),
                     carried_cell(kernel.carried), share(kernel.measured), kernel.count,
                     to_string(kernel.measured / std::max(1.0, kernel.count)), words(name_of(kernel.limiter)),
                     name_of(kernel.family), brief_kernel_name(kernel.name).substr(0, 64));
    }
    if (t.kernels.size() > kShown) fmt::format_to(to, "  and {} more\n", t.kernels.size() - kShown);
  }
  std::size_t shown = 0;
  constexpr std::size_t kShownOthers = 20;
  for (const trace::TableRow& row : t.others) {
    if (shown++ == 0) fmt::format_to(to, "\n  {:>10} {:>9}  host\n", "measured", "count");
    if (shown > kShownOthers) break;
    fmt::format_to(to, "  {:>10} {:>9.0f}  {} ({})\n", to_string(Seconds(row.seconds)), row.count,
                   row.name.substr(0, 64), trace::name_of(row.kind));
  }
  out += "\n";
  write_wrapped(out, "  note: ", kCannotSay);
  if (!t.kernels.empty() && !carried)
    write_wrapped(out, "  note: ",
                  "--recorded-on and --hardware name the GPU of the table and another one: its kernels' times carried "
                  "over");
  return out;
}

ordered_json kernel_table_json(const std::string& file, const KernelTable& t) {
  ordered_json out;
  out["table"] = {{"file", file},
                  {"reports", t.reports},
                  {"recorded_on", t.recorded_on.empty() ? ordered_json() : ordered_json(t.recorded_on)},
                  {"hardware", t.hardware.empty() ? ordered_json() : ordered_json(t.hardware)}};
  out["gpu_time_s"] = t.measured.value();
  const auto carried = [](const std::optional<Seconds>& time) {
    return time ? ordered_json(time->value()) : ordered_json();
  };
  ordered_json families = ordered_json::array(), kernels = ordered_json::array(), others = ordered_json::array();
  for (const TableFamily& family : t.families)
    families.push_back({{"family", name_of(family.family)},
                        {"measured_s", family.measured.value()},
                        {"carried_s", carried(family.carried)},
                        {"count", family.count}});
  for (const TableKernel& kernel : t.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"family", name_of(kernel.family)},
                       {"limiter", name_of(kernel.limiter)},
                       {"measured_s", kernel.measured.value()},
                       {"carried_s", carried(kernel.carried)},
                       {"count", kernel.count}});
  for (const trace::TableRow& row : t.others)
    others.push_back(
        {{"kind", trace::name_of(row.kind)}, {"name", row.name}, {"measured_s", row.seconds}, {"count", row.count}});
  out["families"] = std::move(families);
  out["kernels"] = std::move(kernels);
  out["host"] = std::move(others);
  return out;
}

}  // namespace ridgeline
