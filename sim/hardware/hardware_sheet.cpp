#include "sim/hardware/hardware_sheet.h"

#include <fmt/format.h>

#include "sim/units/parse.h"

namespace ridgeline {
namespace {

class Rows {
 public:
  void add(std::string key, double value, int decimals, std::string unit, std::string formula) {
    rows_.push_back(
        {std::move(key), fmt::format("{:.{}f}", value, decimals), std::move(unit), std::move(formula), {}, {}, {}});
  }
  [[nodiscard]] std::vector<SheetRow> take() { return std::move(rows_); }

 private:
  std::vector<SheetRow> rows_;
};

struct Peak {
  const char* name;
  double rate;
  bool tensor;
};

void add_peaks(Rows& rows, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  const Peak peaks[] = {{"fp32", rates.fp32, false},
                        {"tensor_fp16", rates.tensor_fp16, true},
                        {"tensor_bf16", rates.tensor_bf16, true},
                        {"tensor_tf32", rates.tensor_tf32, true}};
  for (const Peak& peak : peaks) {
    if (peak.rate <= 0) continue;
    const double dense = (peak.tensor ? gpu.tensor_peak(peak.rate) : gpu.peak(peak.rate)).value() * 1e-12;
    const std::string unit = "TFLOP/s";
    const std::string clock = peak.tensor ? "clock.boost_tensor" : "clock.boost";
    rows.add(fmt::format("peak.{}", peak.name), dense, 1, unit,
             fmt::format("2 x sm.rates.{} x sm.count x {}", peak.name, clock));
    if (peak.tensor && rates.sparsity_factor > 1) {
      rows.add(fmt::format("peak.{}_sparse", peak.name), dense * rates.sparsity_factor, 1, unit,
               "dense x sm.rates.sparsity_factor");
    }
  }
}

void add_ridge(Rows& rows, const Gpu& gpu, const std::string& name, FlopsPerSecond peak) {
  if (peak.value() <= 0) return;
  rows.add("ridge." + name, (peak / gpu.dram.bandwidth).value(), 1, "FLOP/B", "peak / dram.bandwidth");
}

}  // namespace

void split_unit(SheetRow& row, const config::Node& node) {
  if (node.kind == config::Node::Kind::list) {
    for (const config::Node& item : node.items) {
      row.value += (row.value.empty() ? "" : ", ") + item.scalar;
      for (const config::Entry& entry : item.entries)
        row.value += fmt::format("{}{}: {}", &entry == &item.entries.front() ? "" : " ", entry.key, entry.value.scalar);
    }
    return;
  }
  row.value = node.scalar;
  const auto space = node.scalar.find(' ');
  if (space != std::string::npos && parse_measure(node.scalar)) {
    row.value = node.scalar.substr(0, space);
    row.unit = node.scalar.substr(space + 1);
  }
}

std::vector<SheetRow> derived_rows(const Gpu& gpu) {
  Rows rows;
  add_peaks(rows, gpu);
  const double bandwidth = gpu.dram.bandwidth.value() * 1e-12;
  const double read = gpu.dram.read_efficiency, write = gpu.dram.write_efficiency;
  rows.add("dram.achieved_read", bandwidth * read, 3, "TB/s", "dram.bandwidth x dram.read_efficiency");
  rows.add("dram.achieved_write", bandwidth * write, 3, "TB/s", "dram.bandwidth x dram.write_efficiency");
  rows.add("dram.achieved_copy", bandwidth / (0.5 / read + 0.5 / write + gpu.dram.turnaround), 3, "TB/s",
           "half reads, half writes: 1/eff = r/e_r + w/e_w + 2 turnaround min(r, w)");
  add_ridge(rows, gpu, "fp32", gpu.peak(gpu.sm.rates.fp32));
  add_ridge(rows, gpu, "tensor_fp16", gpu.tensor_peak(gpu.sm.rates.tensor_fp16));
  add_ridge(rows, gpu, "tensor_bf16", gpu.tensor_peak(gpu.sm.rates.tensor_bf16));
  add_ridge(rows, gpu, "tensor_tf32", gpu.tensor_peak(gpu.sm.rates.tensor_tf32));
  const double sm_clocks = gpu.sm.count * gpu.clock.sustained.value() * 1e-12;
  rows.add("sm.total_shared_bandwidth", gpu.sm.shared_bandwidth.value() * sm_clocks, 1, "TB/s",
           "sm.shared_bandwidth x sm.count x clock.sustained");
  rows.add("sm.total_l1_bandwidth", gpu.sm.l1_bandwidth.value() * sm_clocks, 1, "TB/s",
           "sm.l1_bandwidth x sm.count x clock.sustained");
  rows.add("sm.total_shared", gpu.sm.shared_per_sm.value() * gpu.sm.count / kMiB, 1, "MiB",
           "sm.shared_per_sm x sm.count");
  rows.add("sm.total_registers", 4.0 * gpu.sm.registers * gpu.sm.count / kMiB, 1, "MiB",
           "4 B x sm.registers x sm.count");
  rows.add("l2.bandwidth_per_sm", gpu.l2.read_bandwidth.value() / (sm_clocks * 1e12), 1, "B/cycle",
           "l2.read_bandwidth / (sm.count x clock.sustained)");
  rows.add("l2.latency_time", (gpu.l2.latency / gpu.clock.sustained).value() * 1e9, 0, "ns",
           "l2.latency / clock.sustained");
  return rows.take();
}

}  // namespace ridgeline
