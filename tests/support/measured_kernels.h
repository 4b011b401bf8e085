// The kernels measured on GPUs (tests/validation/*/*.jsonl.gz), parsed for tests.
#pragma once

#include <algorithm>
#include <array>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/workload/kernel_case.h"
#include "tests/support/sha256.h"

namespace ridgeline::testing {

struct MeasuredLaunch {
  std::string name;
  double us = 0.0;
  bool has_geometry = false;  ///< memsets and copies have none
  std::array<std::int64_t, 3> grid{};
  std::int64_t threads = 0;
  int registers = 0;
  std::int64_t shared = 0;
};
struct MeasuredCase {
  std::string op, dtype, text;
  KernelCase kernel;
  double us = 0.0;
  bool held_out = false;  ///< of the third of the cases that no constant is fitted on
  std::vector<MeasuredLaunch> launches;
};

/// Cases of a file whose op is in `ops` (all when empty). Rows with an error instead of a time are left out.
inline std::vector<MeasuredCase> measured_cases(const std::string& file, const std::vector<std::string>& ops = {}) {
  std::ifstream raw(std::string(RIDGELINE_SOURCE_DIR) + "/tests/validation/" + file, std::ios::binary);
  boost::iostreams::filtering_istream in;
  in.push(boost::iostreams::gzip_decompressor());
  in.push(raw);
  std::vector<MeasuredCase> result;
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    if (!row.contains("kernels")) continue;
    MeasuredCase item;
    item.op = row["op"];
    if (!ops.empty() && std::find(ops.begin(), ops.end(), item.op) == ops.end()) continue;
    item.dtype = row["dtype"];
    item.text = item.op + " " + item.dtype + " " + row["params"].dump();
    nlohmann::json given{{"op", row["op"]}, {"dtype", row["dtype"]}, {"params", row["params"]}};
    if (row.contains("input_sets")) given["input_sets"] = row["input_sets"];
    item.kernel = kernel_case_from(given);
    item.us = row["us"];
    // As Python writes it: json.dumps([op, dtype, params], sort_keys=True).
    std::string params;
    for (const auto& [key, value] : row["params"].items())
      params += (params.empty() ? "" : ", ") + ('"' + key + "\": ") + value.dump();
    item.held_out = sha256_modulo("[\"" + item.op + "\", \"" + item.dtype + "\", {" + params + "}]", 3) == 0;
    for (const auto& k : row["kernels"]) {
      MeasuredLaunch launch;
      launch.name = k["name"];
      launch.us = k["us"];
      launch.has_geometry = !k["grid"].is_null();
      if (launch.has_geometry) {
        for (std::size_t i = 0; i < 3; ++i) launch.grid[i] = k["grid"][i];
        launch.threads =
            k["block"][0].get<std::int64_t>() * k["block"][1].get<std::int64_t>() * k["block"][2].get<std::int64_t>();
        launch.registers = k["regs"];
        launch.shared = k["smem"];
      }
      item.launches.push_back(std::move(launch));
    }
    result.push_back(std::move(item));
  }
  return result;
}

}  // namespace ridgeline::testing
