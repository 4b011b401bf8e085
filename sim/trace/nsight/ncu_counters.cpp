#include "sim/trace/nsight/ncu_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "sim/input/text_source.h"
#include "sim/trace/nsight/table_cells.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/units/utf8.h"

namespace ridgeline::trace {
namespace {

using Counter = std::optional<double> CountedKernel::*;

struct MetricName {
  std::string_view raw, details;  ///< of --page raw; of the page "details"
  Counter counter;
};
constexpr std::array kMetricNames{
    MetricName{"gpu__time_duration.sum", "Duration", &CountedKernel::seconds},
    MetricName{"gpu__time_duration.avg", "", &CountedKernel::seconds},
    MetricName{"dram__bytes_read.sum", "", &CountedKernel::dram_read_bytes},
    MetricName{"dram__bytes_write.sum", "", &CountedKernel::dram_write_bytes},
    MetricName{"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput",
               &CountedKernel::dram_throughput},
    MetricName{"dram__throughput.avg.pct_of_peak_sustained_elapsed", "", &CountedKernel::dram_throughput},
    MetricName{"lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput",
               &CountedKernel::l2_throughput},
    MetricName{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput",
               &CountedKernel::sm_throughput},
    MetricName{"", "SM [%]", &CountedKernel::sm_throughput},
    MetricName{"l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate", &CountedKernel::l1_hit_rate},
    MetricName{"lts__t_sector_hit_rate.pct", "L2 Hit Rate", &CountedKernel::l2_hit_rate},
    MetricName{"sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy",
               &CountedKernel::theoretical_occupancy},
    MetricName{"sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy",
               &CountedKernel::achieved_occupancy},
    MetricName{"launch__registers_per_thread", "Registers Per Thread", &CountedKernel::registers},
    MetricName{"launch__waves_per_multiprocessor", "Waves Per SM", &CountedKernel::waves}};

Counter counter_named(std::string_view metric) {
  for (const MetricName& known : kMetricNames)
    if (!metric.empty() && (metric == known.raw || metric == known.details)) return known.counter;
  return nullptr;
}

/// The factor of a value in this unit; ncu's own units (Kbyte) are powers of ten, its binary ones KiB.
double factor_of(std::string_view unit) {
  if (const auto seconds = seconds_of_unit(unit)) return *seconds;
  constexpr std::pair<std::string_view, double> kUnits[] = {{"%", 0.01},
                                                            {"byte", 1.0},
                                                            {"Kbyte", 1e3},
                                                            {"Mbyte", 1e6},
                                                            {"Gbyte", 1e9},
                                                            {"B", 1.0},
                                                            {"KB", 1e3},
                                                            {"MB", 1e6},
                                                            {"GB", 1e9},
                                                            {"KiB", 1024.0},
                                                            {"MiB", 1024.0 * 1024.0},
                                                            {"GiB", 1024.0 * 1024.0 * 1024.0}};
  for (const auto& [name, factor] : kUnits)
    if (name == unit) return factor;
  return 1.0;
}

class NcuReader {
 public:
  explicit NcuReader(const std::string& path) : path_(path) {}

  [[nodiscard]] bool found() const { return !headings_.empty(); }
  [[nodiscard]] std::vector<CountedKernel> take() { return std::move(kernels_); }

  void line(std::string_view text, std::size_t number) {
    keep_budget_often("reading counters");
    if (text.starts_with("==") || text.find_first_not_of(" \t\r") == text.npos) return;
    Cells cells = cells_of(text, separator_);
    if (headings_.empty()) {
      const bool id = std::find(cells.begin(), cells.end(), "ID") != cells.end();
      if (!id || std::find(cells.begin(), cells.end(), "Kernel Name") == cells.end()) return;
      headings_ = std::move(cells);
      for (std::size_t i = 0; i < headings_.size(); ++i) places_.try_emplace(headings_[i], i);
      wide_ = !places_.contains("Metric Name");
      return;
    }
    if (cells.size() < std::min<std::size_t>(3, headings_.size())) return;
    cells.resize(headings_.size());
    if (wide_ && units_.empty() && cell(cells, "ID").empty()) {
      units_ = std::move(cells);
      return;
    }
    if (wide_) return wide_row(cells, number);
    const std::string_view id = cell(cells, "ID");
    if (kernels_.empty() || kernels_.back().id != id) begin_kernel(cells);
    take_value(cell(cells, "Metric Name"), cell(cells, "Metric Value"), cell(cells, "Metric Unit"), number);
  }

 private:
  [[nodiscard]] std::string_view cell(const Cells& cells, const std::string& heading) const {
    const auto place = places_.find(heading);
    return place == places_.end() ? std::string_view() : std::string_view(cells[place->second]);
  }
  void begin_kernel(const Cells& cells) {
    constexpr std::size_t kMostKernels = 1'000'000;
    if (kernels_.size() >= kMostKernels) throw UserError(fmt::format("{}: more than {} kernels", path_, kMostKernels));
    CountedKernel& kernel = kernels_.emplace_back();
    kernel.id = as_utf8(cell(cells, "ID"));
    kernel.name = as_utf8(cell(cells, "Kernel Name"));
    kernel.block = as_utf8(cell(cells, "Block Size"));
    kernel.grid = as_utf8(cell(cells, "Grid Size"));
    kernel.device = as_utf8(cell(cells, "Device"));
  }
  void wide_row(const Cells& cells, std::size_t number) {
    begin_kernel(cells);
    for (std::size_t i = 0; i < headings_.size(); ++i)
      take_value(headings_[i], cells[i], i < units_.size() ? std::string_view(units_[i]) : std::string_view(), number);
  }
  void take_value(std::string_view metric, std::string_view value, std::string_view unit, std::size_t number) {
    const Counter counter = counter_named(metric);
    if (counter == nullptr || value.empty() || value == "n/a" || value == "N/A") return;
    const auto known = number_in(value);
    if (!known)
      throw UserError(fmt::format("{}:{}: '{}' of {} is no number", path_, number, as_utf8(value.substr(0, 60)),
                                  as_utf8(metric.substr(0, 60))));
    // Older files leave the unit of shares out.
    const bool share = unit.empty() && metric.find("pct") != metric.npos;
    auto& into = kernels_.back().*counter;
    if (!into) into = *known * (share ? 0.01 : factor_of(unit));
  }

  const std::string& path_;
  static constexpr char separator_ = ',';
  Cells headings_, units_;
  std::map<std::string, std::size_t> places_;
  bool wide_ = false;
  std::vector<CountedKernel> kernels_;
};

}  // namespace

bool looks_like_ncu(const std::string& path) {
  constexpr std::size_t kHead = 1 << 18;  // a row of headings of --page raw has some ten thousand characters
  std::string head;
  TextSource(path, {}, Empty::read).read(head);
  if (head.size() > kHead) head.resize(kHead);
  const auto has = [&](const char* part) { return head.find(part) != head.npos; };
  return has("Kernel Name") && (has("Metric Name") || has("gpu__") || has("sm__") || has("launch__"));
}

std::vector<CountedKernel> read_ncu(const std::string& path) {
  NcuReader reader(path);
  for_lines(read_text(path), [&](std::string_view line, std::size_t number) { reader.line(line, number); });
  if (!reader.found())
    throw UserError(fmt::format("{}: no table of Nsight Compute in it: ncu --csv --page raw prints one", path));
  std::vector<CountedKernel> kernels = reader.take();
  if (kernels.empty()) throw UserError(fmt::format("{}: a table of Nsight Compute without any kernel", path));
  return kernels;
}

}  // namespace ridgeline::trace
