// Kernels of selective scans beside those of mamba-ssm on an NVIDIA H200: constants saw six shapes of ten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/aten/state_space.h"
#include "sim/workload/eager/parameter.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

using eager::Tensor;
using nlohmann::json;

/// Microseconds of the kernels whose names hold a word.
double measured_scan(const json& row, const std::string& word) {
  double sum = 0.0;
  for (const json& kernel : row["by_kernel"])
    if (kernel[0].get<std::string>().find(word) != std::string::npos) sum += 1e3 * kernel[2].get<double>();
  return sum;
}
double predicted_scan(const OpTrace& trace, const std::string& word) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  static const auto engine = make_timing_engine("analytic", gpu);
  double sum = 0.0;
  for (const Call& call : trace.calls)
    if (const auto* op = std::get_if<FusedKernel>(&trace.ops[call.op]);
        op != nullptr && op->name.find(word) != op->name.npos)
      sum += in_microseconds(engine->time(lower_fused(*op, gpu, Software{}).launches.front(), {}).time);
  return sum;
}

OpTrace scan_of(std::int64_t batch, std::int64_t channels, std::int64_t length, std::int64_t states) {
  OpTrace trace;
  eager::Eager eager(trace);
  eager::Parameters leaves;
  const auto leaf = [&](const eager::Dims& sizes) {
    leaves.emplace_back().allocate(eager, sizes, DType::bf16);
    return leaves.back().value;
  };
  {
    const Tensor u = leaf({batch, channels, length}), delta = leaf({batch, channels, length}),
                 z = leaf({batch, channels, length}), inputs = leaf({batch, 2 * states, length});
    const Tensor result = eager::aten::selective_scan(eager, u, delta, inputs, z);
    eager.recorder.phase = Phase::backward;
    eager.tape.run(eager, result, eager.empty(result.sizes, result.type));
    eager.tape.destroy_from(0);
  }
  eager.recorder.closed = true;
  return trace;
}

TEST(ScanKernels, OfSelectiveScansTakeTheirMeasuredTime) {
  std::vector<double> errors;
  for_each_row(testing::measurements().file("h200/scan_kernels.jsonl.gz"), [&](const json& row) {
    if (row["name"] != "selective_scan" || !row["held_out"].get<bool>()) return;
    const OpTrace trace = scan_of(row["batch"], row["channels"], row["length"], row["states"]);
    for (const char* word : {"selective_scan_fwd", "selective_scan_bwd"})
      errors.push_back(std::abs(predicted_scan(trace, word) / measured_scan(row, word) - 1.0));
  });
  ASSERT_EQ(errors.size(), 8u);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.15);
  EXPECT_LT(errors.back(), 0.35);
}

}  // namespace
}  // namespace ridgeline
