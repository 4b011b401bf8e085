// What the rules of sim/trace make of calls that the dispatcher recorded: the kernels that ran, with their grids.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "fit/cases/call_ops.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/measured_files.h"
#include "sim/study/validation/recorded_calls.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;

struct Share {
  int as_recorded = 0, all = 0;
};

bool same_blocks(const KernelLaunch& launch, const json& kernel) {
  if (!kernel.contains("grid")) return true;
  const json& grid = kernel["grid"];
  return launch.blocks() == grid[0].get<double>() * grid[1].get<double>() * grid[2].get<double>();
}

/// By the word of the call: those whose launches are as many as the recorded kernels, grid by grid.
std::map<std::string, Share> shares() {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  const Lowering lowering(gpu, software);
  std::map<std::string, Share> result;
  for_each_row(index.file("h200/calls/recorded.jsonl.gz"), [&](const json& row) {
    std::vector<KernelLaunch> launches;
    for (const Op& op : recorded_ops(row))
      for (const KernelLaunch& launch : lowering.lower(op).launches) launches.push_back(launch);
    const json& kernels = row["kernels"];
    bool same = launches.size() == kernels.size();
    for (std::size_t i = 0; same && i < launches.size(); ++i) same = same_blocks(launches[i], kernels[i]);
    Share& share = result[row["op"]];
    share.all += 1;
    share.as_recorded += same ? 1 : 0;
  });
  return result;
}

TEST(RecordedCalls, become_the_kernels_that_ran) {
  const auto found = shares();
  // Of these nine in ten calls are the recorded kernels, block for block; the others are layouts that a rule takes for
  // another.
  for (const char* op : {"argmax", "argmin", "max", "amax", "tril", "index_add", "index_select", "gather", "scatter_",
                         "bilinear", "bicubic", "grid_sample", "experts"}) {
    ASSERT_TRUE(found.contains(op)) << op;
    const Share& share = found.at(op);
    EXPECT_GE(share.all, 10) << op;
    EXPECT_GE(10 * share.as_recorded, 8 * share.all) << op << ": " << share.as_recorded << " of " << share.all;
  }
}

}  // namespace
}  // namespace ridgeline::fit
