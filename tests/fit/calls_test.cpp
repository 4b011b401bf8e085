// What single calls of PyTorch are taken for (fit/cases/call_ops.h): each launch has the grid that the profiler saw.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "fit/cases/call_ops.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/measured_files.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;

/// By the word of the call: kernels whose launch has the recorded number of blocks, and those of another.
struct Grids {
  int same = 0, other = 0;
};

std::map<std::string, Grids> grids_of_h100() {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const Software software = load_software("pytorch-2.11");
  const Lowering lowering(gpu, software);
  std::map<std::string, Grids> result;
  for_each_row(index.file("h100/calls.jsonl.gz"), [&](const json& row) {
    const auto call = call_of(row);
    if (!call) return;
    const LoweredOp lowered = lowering.lower(call->op);
    std::size_t next = 0;
    for (const KernelLaunch& launch : lowered.launches) {
      for (std::size_t at = next; at < row["kernels"].size(); ++at) {
        const json& kernel = row["kernels"][at];
        if (kernel["grid"].is_null() || !names_launch(kernel["name"].get<std::string>(), launch)) continue;
        const json& grid = kernel["grid"];
        const double blocks = grid[0].get<double>() * grid[1].get<double>() * grid[2].get<double>();
        Grids& grids = result[row["op"]];
        (launch.blocks() == blocks ? grids.same : grids.other) += 1;
        next = at + 1;
        break;
      }
    }
  });
  return result;
}

TEST(MeasuredCalls, have_the_grids_of_their_launches) {
  const auto grids = grids_of_h100();
  for (const auto& [op, found] : grids) EXPECT_EQ(found.other, 0) << op << ", " << found.same << " alike";
  for (const char* op : {"add_mask", "add_mixed", "add_row", "cat_windows", "dropout_backward", "gather",
                         "gelu_backward", "index_middle", "masked_fill", "max_pool_backward", "mul_mixed", "permute",
                         "roll", "rows_odd", "scale", "tanh", "transpose"})
    EXPECT_GE(grids.count(op) > 0 ? grids.at(op).same : 0, 24) << op;
}

TEST(MeasuredCalls, of_one_row_or_of_contiguous_views_are_no_strided_ones) {
  const auto call = [](const std::string& op, std::vector<std::string> words) {
    return call_of(json{{"op", op}, {"case", std::move(words)}});
  };
  EXPECT_FALSE(call("permute", {"4", "1", "8", "64", "float32"}));
  EXPECT_FALSE(call("cat_windows", {"1", "64", "2", "float32"}));
  EXPECT_TRUE(call("cat_windows", {"2", "64", "2", "float32"}));
  EXPECT_FALSE(call("erf", {"4096", "768", "float32"}));
}

}  // namespace
}  // namespace ridgeline::fit
