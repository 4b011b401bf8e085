// DRAM traffic of consecutive kernels against the counters of an H200 (tests/validation/h200/counters_chain.jsonl.gz).
#include <gtest/gtest.h>

#include <cstdio>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/gzip_lines.h"
#include "tests/support/simulated_chains.h"

namespace ridgeline {
namespace {

TEST(ChainCounters, Print) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto engine = make_engine("simulate", gpu);
  for_each_line(std::string(RIDGELINE_SOURCE_DIR) + "/tests/validation/h200/counters_chain.jsonl.gz",
                [&](std::string_view text) {
                  const auto row = nlohmann::json::parse(text);
                  const auto times = testing::simulated_chain(row, *engine, gpu);
                  std::printf("%s %s\n", row["op"].get<std::string>().c_str(), row["params"].dump().c_str());
                  for (std::size_t i = 0; i < times.size() && i < row["kernels"].size(); ++i) {
                    const auto& k = row["kernels"][i];
                    std::printf("CHAIN %8.2f %8.2f  %8.2f %8.2f\n", times[i].dram_read_bytes / 1e6,
                                k["dram__bytes_read.sum"].get<double>() / 1e6, times[i].dram_write_bytes / 1e6,
                                k["dram__bytes_write.sum"].get<double>() / 1e6);
                  }
                });
}

}  // namespace
}  // namespace ridgeline
