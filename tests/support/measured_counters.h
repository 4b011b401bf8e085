// Hardware counters of an H200 (measurements/h200/counters_*.jsonl.gz) as kernel cases and sums over kernels.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/workload/kernel_case.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::testing {

struct CountedCase {
  KernelCase kernel;
  std::string name;
  double dram_read = 0, dram_write = 0, l2_hit_rate = 0;
  double occupancy = 0;  ///< of the longest kernel
  double l2_bytes = 0;
  std::size_t kernels = 0;
};

/// Single ops with flushed caches. A row's type stands among its parameters or beside them; products over the head
/// dimension without a layout are Q·Kᵀ, over the sequence P·V.
inline std::vector<CountedCase> cold_counters(const std::string& file = "counters_cold.jsonl.gz") {
  std::vector<CountedCase> cases;
  for_each_row(measurements().file("h200/" + file), [&](const nlohmann::json& row) {
    nlohmann::json params = row["params"];
    nlohmann::json as_case{{"op", row["op"]}, {"dtype", row.value("dtype", params.value("dtype", "bf16"))}};
    params.erase("dtype");
    if (row["op"] == "bmm" && !params.contains("layout")) params["layout"] = params["m"] == params["n"] ? "nt" : "nn";
    as_case["params"] = params;
    CountedCase counted{.kernel = kernel_case_from(as_case), .name = as_case.dump()};
    double hits = 0, longest = 0;
    for (const auto& kernel : row["kernels"]) {
      const auto counter = [&](const char* name) { return kernel[name].get<double>(); };
      constexpr double kSector = 32.0;
      counted.dram_read += counter("dram__bytes_read.sum");
      counted.dram_write += counter("dram__bytes_write.sum");
      counted.l2_bytes += kSector * counter("lts__t_sectors.sum");
      hits += kSector * counter("lts__t_sectors_lookup_hit.sum");
      if (counter("time_us") <= longest) continue;
      longest = counter("time_us");
      counted.occupancy = counter("sm__warps_active.avg.pct_of_peak_sustained_active") / 100.0;
    }
    counted.kernels = row["kernels"].size();
    counted.l2_hit_rate = hits / counted.l2_bytes;
    cases.push_back(std::move(counted));
  });
  return cases;
}

/// Programs of several kernels without flushing, as they were recorded.
inline std::vector<nlohmann::json> chain_counters(const std::string& file = "counters_chain.jsonl.gz") {
  std::vector<nlohmann::json> rows;
  for_each_row(measurements().file("h200/" + file), [&](const nlohmann::json& row) { rows.push_back(row); });
  return rows;
}

}  // namespace ridgeline::testing
