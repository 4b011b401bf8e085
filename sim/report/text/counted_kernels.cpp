#include "sim/report/text/counted_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/report/text/brief_kernel_name.h"
#include "sim/units/parse.h"
#include "sim/workload/kernel_family.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

ordered_json counters_of(const trace::CountedKernel& kernel) {
  ordered_json out{{"name", kernel.name}};
  for_each_counter(kernel, [&](const char* name, const std::optional<double>& value) {
    if (value) out[name] = *value;
  });
  return out;
}

/// By the unit that was busiest: at three fifths of its peak it is taken to limit, as Nsight Compute's rules do.
std::string limiter_by_counters(const trace::CountedKernel& kernel) {
  constexpr double kBusy = 0.6;
  const double dram = kernel.dram_throughput.value_or(0.0), sm = kernel.sm_throughput.value_or(0.0),
               l2 = kernel.l2_throughput.value_or(0.0);
  if (!kernel.dram_throughput && !kernel.sm_throughput && !kernel.l2_throughput) return "not counted";
  if (std::max({dram, sm, l2}) < kBusy) return "latency";
  return sm >= dram && sm >= l2 ? "compute" : dram >= l2 ? "dram" : "l2";
}

std::string share_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100.0 * *value) : "";
}
std::string bytes_cell(const std::optional<double>& value) { return value ? to_string(Bytes(*value)) : ""; }

}  // namespace

void CountedKernels::join(ordered_json& answer) {
  if (!answer.contains("predicted") || !answer["predicted"].contains("kernels")) return;
  for (ordered_json& predicted : answer["predicted"]["kernels"]) {
    const KernelFamily family = family_of_kernel(predicted["name"].get<std::string>());
    std::size_t at = next_;
    while (at < kernels_.size() && family_of_kernel(kernels_[at].name) != family) ++at;
    if (at == kernels_.size()) continue;
    predicted["measured"] = counters_of(kernels_[at]);
    next_ = at + 1;
  }
}

std::string CountedKernels::lines_of(const ordered_json& answer) {
  std::string out;
  if (!answer.contains("predicted") || !answer["predicted"].contains("kernels")) return out;
  auto to = std::back_inserter(out);
  const ordered_json& kernels = answer["predicted"]["kernels"];
  const bool alone = 1 == std::count_if(kernels.begin(), kernels.end(), [](const ordered_json& kernel) {
                       return family_of_kernel(kernel["name"].get<std::string>()) != KernelFamily::copy;
                     });
  for (const ordered_json& kernel : kernels) {
    if (!kernel.contains("measured")) continue;
    const ordered_json& measured = kernel["measured"];
    fmt::format_to(to, "  measured {}\n", measured["name"].get<std::string>().substr(0, 72));
    const auto line = [&](const char* what, const char* counter, double predicted, auto text) {
      if (!measured.contains(counter) || std::isnan(predicted)) return;
      const double value = measured[counter].get<double>();
      fmt::format_to(to, "    {:<22} {:>10}  predicted {:>10}\n", what, text(value), text(predicted));
    };
    const auto time = [](double seconds) { return to_string(Seconds(seconds)); };
    const auto percent = [](double value) { return fmt::format("{:.1f} %", 100.0 * value); };
    const auto amount = [](double value) { return to_string(Bytes(value)); };
    line("time", "time_s", kernel["time_us"].get<double>() * 1e-6, time);
    // Without a simulated profile traffic and hit rate are those of the case: of its kernel where it has one.
    if (!kernel.contains("profile") && !alone) continue;
    const ordered_json& profile = kernel.contains("profile") ? kernel["profile"] : answer["predicted"];
    const auto predicted = [&](const char* key) { return profile.value(key, std::nan("")); };
    line("DRAM read", "dram_read_bytes", predicted("dram_read_bytes"), amount);
    line("DRAM written", "dram_write_bytes", predicted("dram_write_bytes"), amount);
    line("DRAM throughput", "dram_throughput", predicted("dram_throughput"), percent);
    line("L2 throughput", "l2_throughput", predicted("l2_throughput"), percent);
    line("L2 hit rate", "l2_hit_rate", predicted("l2_hit_rate"), percent);
    line("L1 hit rate", "l1_hit_rate", predicted("l1_hit_rate"), percent);
    line("theoretical occupancy", "theoretical_occupancy", predicted("theoretical_occupancy"), percent);
    line("achieved occupancy", "achieved_occupancy", predicted("achieved_occupancy"), percent);
  }
  return out;
}

std::string CountedKernels::table(const std::string& file) const {
  std::string out = fmt::format("{}: {} kernels that Nsight Compute counted\n\n", file, kernels_.size());
  auto to = std::back_inserter(out);
  fmt::format_to(to, "  {:>9} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}  {:<12} {:<15} kernel\n", "time", "DRAM read",
                 "written", "DRAM", "SM", "L2 hits", "occup.", "limiter", "family");
  constexpr std::size_t kShown = 60;
  for (std::size_t i = 0; i < std::min(kShown, kernels_.size()); ++i) {
    const trace::CountedKernel& k = kernels_[i];
    fmt::format_to(to, "  {:>9} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}  {:<12} {:<15} {}\n",
                   k.seconds ? to_string(Seconds(*k.seconds)) : "", bytes_cell(k.dram_read_bytes),
                   bytes_cell(k.dram_write_bytes), share_cell(k.dram_throughput), share_cell(k.sm_throughput),
                   share_cell(k.l2_hit_rate), share_cell(k.achieved_occupancy), limiter_by_counters(k),
                   name_of(family_of_kernel(k.name)), brief_kernel_name(k.name).substr(0, 60));
  }
  if (kernels_.size() > kShown) fmt::format_to(to, "  and {} more\n", kernels_.size() - kShown);
  out +=
      "\n  note: the file says no shapes: kernel cases beside it (CASES.jsonl --ncu FILE) are predicted and compared\n";
  return out;
}

std::vector<std::string> CountedKernels::json_lines() const {
  std::vector<std::string> lines;
  for (const trace::CountedKernel& kernel : kernels_) {
    ordered_json line = counters_of(kernel);
    line["limiter"] = limiter_by_counters(kernel);
    line["family"] = name_of(family_of_kernel(kernel.name));
    line["block"] = kernel.block;
    line["grid"] = kernel.grid;
    lines.push_back(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
  return lines;
}

}  // namespace ridgeline
