// Matrix products, fused attention and convolutions against measured cases that no constant was fitted on: times, and
// how many kernels each launches.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "sim/hardware/load_gpu.h"
#include "tests/support/measured_kernels.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

using testing::PredictionErrors;

struct Family {
  std::vector<std::string> ops;
  double median, mean;  ///< tolerances
};
const Family kProducts{{"mm", "addmm", "bmm"}, 0.06, 0.085};
const Family kAttention{{"flash_attention", "flash_attention_backward", "cudnn_attention", "cudnn_attention_backward",
                         "efficient_attention", "efficient_attention_backward"},
                        0.03,
                        0.05};
const Family kConvolutions{{"conv2d", "conv2d_backward"}, 0.15, 0.25};

struct Outcome {
  std::map<std::string, PredictionErrors> by_group;
  PredictionErrors all;
  int counted = 0, cases = 0;  ///< of launches that agree
};

std::string group_of(const MeasuredOp& item) {
  const bool half = item.dtype == "bf16" || item.dtype == "fp16";
  return item.op + (half ? " 16-bit" : " " + item.dtype);
}

Outcome compare(const Family& family, const std::vector<std::string>& files, const char* gpu_name,
                bool held_out_third) {
  const Gpu gpu = load_gpu(gpu_name);
  const auto engine = make_timing_engine("analytic", gpu);
  Outcome outcome;
  for (const auto& file : files)
    for (auto& item : testing::measured_ops(file, family.ops)) {
      if (held_out_third && !item.held_out) continue;
      // Some runs passed views of [batch, seq, heads, head_dim], which need no copies: their profiles show it.
      if (auto* attention = std::get_if<Attention>(&item.kernel.op); attention && item.kernels.size() == 3)
        attention->head_major = false;
      const auto predicted = testing::predict_op(item.kernel.op, item.kernel.input_sets, gpu, *engine);
      outcome.by_group[group_of(item)].add(predicted.time.value() * 1e6, item.time.value() * 1e6);
      outcome.all.add(predicted.time.value() * 1e6, item.time.value() * 1e6);
      outcome.counted += predicted.launches == item.kernels.size() ? 1 : 0;
      ++outcome.cases;
    }
  return outcome;
}

void report(const Outcome& outcome, const std::string& name, double median, double mean) {
  for (const auto& [group, errors] : outcome.by_group) errors.expect_within("  " + group, 1.0, 1.0);
  outcome.all.expect_within(name, median, mean);
  fmt::print("  as many launches as profiled: {:.1f} %\n", 100.0 * outcome.counted / outcome.cases);
}

TEST(ContractionAccuracy, products_held_out_on_the_h200) {
  const Outcome third = compare(kProducts, {"h200/kernels.jsonl.gz"}, "nvidia-h200-sxm-141gb", true);
  report(third, "products, held-out third", 0.045, 0.07);
  const Outcome random = compare(kProducts, {"h200/random/heldout.jsonl.gz"}, "nvidia-h200-sxm-141gb", false);
  report(random, "products, random shapes", 0.06, 0.08);
  EXPECT_GE(third.counted + random.counted, 0.85 * (third.cases + random.cases));
}

TEST(ContractionAccuracy, attention_held_out_on_the_h200) {
  const Outcome third =
      compare(kAttention, {"h200/kernels.jsonl.gz", "h200/kernels_attention.jsonl.gz"}, "nvidia-h200-sxm-141gb", true);
  report(third, "attention, held-out third", kAttention.median, kAttention.mean);
  const Outcome random = compare(kAttention, {"h200/random/heldout.jsonl.gz"}, "nvidia-h200-sxm-141gb", false);
  report(random, "attention, random shapes", 0.035, kAttention.mean);
  EXPECT_EQ(third.counted, third.cases);
  EXPECT_EQ(random.counted, random.cases);
}

TEST(ContractionAccuracy, convolutions_held_out_on_the_h200) {
  report(compare(kConvolutions, {"h200/kernels_conv.jsonl.gz"}, "nvidia-h200-sxm-141gb", true),
         "convolutions, held-out third", kConvolutions.median, kConvolutions.mean);
}

TEST(ContractionAccuracy, constants_of_the_h200_carry_over_to_an_h100) {
  report(compare(kProducts, {"h100/kernels_random.jsonl.gz"}, "nvidia-h100-sxm5-80gb", false), "products, H100", 0.07,
         0.095);
  report(compare(kAttention, {"h100/kernels_random.jsonl.gz"}, "nvidia-h100-sxm5-80gb", false), "attention, H100", 0.04,
         0.055);
}

}  // namespace
}  // namespace ridgeline
