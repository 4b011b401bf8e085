// How close the analytic engine comes to measured memory-bound ops that no constant was fitted on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/op_operands.h"
#include "tests/support/measured_kernels.h"

namespace ridgeline {
namespace {

enum class Group { reduction, pointwise, image, other };

Group group_of(const Op& op) {
  if (std::holds_alternative<ImageOp>(op))
    return std::get<ImageOp>(op).function == ImageFunction::relu ? Group::pointwise : Group::image;
  const std::string_view family = family_of(op);
  return family == "reduction" ? Group::reduction : family == "pointwise" ? Group::pointwise : Group::other;
}

struct Errors {
  std::vector<double> absolute;  ///< of predicted / measured - 1
  [[nodiscard]] double median() {
    std::nth_element(absolute.begin(), absolute.begin() + static_cast<std::ptrdiff_t>(absolute.size() / 2),
                     absolute.end());
    return absolute[absolute.size() / 2];
  }
  [[nodiscard]] double mean() const {
    double sum = 0.0;
    for (const double e : absolute) sum += e;
    return sum / static_cast<double>(absolute.size());
  }
};

Seconds predict(const KernelCase& kernel, const Gpu& gpu, const TimingEngine& engine) {
  const LoweredOp lowered = lower(kernel.op, gpu, Software{});
  const auto residency = repeated_residency(lowered.launches, rotating_operands(kernel.op), kernel.input_sets, gpu.l2,
                                            partly_used_bytes(kernel.op));
  Seconds sum;
  for (std::size_t i = 0; i < lowered.launches.size(); ++i) sum += engine.time(lowered.launches[i], residency[i]).time;
  return sum;
}

std::map<Group, Errors> errors_on(const std::vector<std::string>& files, const char* gpu_name, bool held_out_third) {
  const Gpu gpu = load_gpu(gpu_name);
  const auto engine = make_timing_engine("analytic", gpu);
  std::map<Group, Errors> result;
  for (const auto& file : files)
    for (const auto& measured : testing::measured_ops(file)) {
      const Group group = group_of(measured.kernel.op);
      if (group == Group::other || (held_out_third && !measured.held_out)) continue;
      result[group].absolute.push_back(
          std::abs(predict(measured.kernel, gpu, *engine).value() * 1e6 / (measured.time.value() * 1e6) - 1.0));
    }
  return result;
}

void expect_within(std::map<Group, Errors> errors, Group group, const char* name, double median, double mean) {
  Errors& e = errors[group];
  ASSERT_FALSE(e.absolute.empty());
  fmt::print("{}: {} cases, median {:.1f} %, mean {:.1f} %\n", name, e.absolute.size(), 100 * e.median(),
             100 * e.mean());
  EXPECT_LE(e.median(), median) << name;
  EXPECT_LE(e.mean(), mean) << name;
}

TEST(MemoryBoundAccuracy, held_out_third_of_the_h200_files) {
  const auto errors =
      errors_on({"h200/kernels.jsonl.gz", "h200/kernels_optimizer.jsonl.gz", "h200/kernels_conv.jsonl.gz"},
                "nvidia-h200-sxm-141gb", true);
  expect_within(errors, Group::reduction, "reductions", 0.045, 0.070);
  expect_within(errors, Group::pointwise, "point-wise, copies, optimizer", 0.025, 0.05);
  expect_within(errors, Group::image, "batch norm, pooling, upsampling", 0.10, 0.15);
}

TEST(MemoryBoundAccuracy, random_shapes_on_the_h200) {
  const auto errors = errors_on({"h200/random/heldout.jsonl.gz"}, "nvidia-h200-sxm-141gb", false);
  expect_within(errors, Group::reduction, "reductions", 0.033, 0.048);
  expect_within(errors, Group::pointwise, "point-wise, copies", 0.0255, 0.05);  // DEVIATIONS.md
}

TEST(MemoryBoundAccuracy, constants_of_the_h200_carry_over_to_an_h100) {
  const auto errors = errors_on({"h100/kernels_random.jsonl.gz"}, "nvidia-h100-sxm5-80gb", false);
  expect_within(errors, Group::reduction, "reductions", 0.045, 0.06);
  expect_within(errors, Group::pointwise, "point-wise, copies", 0.06, 0.08);
}

}  // namespace
}  // namespace ridgeline
