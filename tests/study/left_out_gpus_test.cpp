// What a range says of a GPU that nobody measured: each measured GPU in turn is left out of the residuals, all its
// boards with it, and nine in ten of its kernels must lie inside the range that the others give it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/chip_distance.h"
#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/accuracy.h"
#include "tests/study/validated.h"

namespace ridgeline {
namespace {

const std::vector<ValidatedCase>& cases() { return validated_kernels(); }

struct Coverage {
  int cases = 0, inside = 0, validated = 0;
  double width = 0;  ///< sum of high / low
  [[nodiscard]] double share() const { return static_cast<double>(inside) / std::max(1, cases); }
};

/// Of the boards whose name has `mark`.
Coverage coverage_without(const std::string& mark) {
  const auto left_out = [&](const ValidatedCase& c) { return c.hardware.find(mark) != std::string::npos; };
  std::vector<ValidatedCase> known;
  for (const ValidatedCase& c : cases())
    if (!left_out(c)) known.push_back(c);
  const ResidualRanges ranges = ResidualRanges::from(nlohmann::json(residual_table(known)));
  Coverage result;
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    const ChipRanges of_chip(ranges, gpu);
    for (const ValidatedCase& c : cases()) {
      // Convolutions were measured on one GPU alone: nothing is known of them without it.
      // As serving libraries run them, the A100's products are what its generation's constants were fitted on.
      if (!left_out(c) || c.hardware != name || c.family == "convolution" || c.source == "public, serving") continue;
      const Seconds predicted = c.predicted.at("analytic");
      const Range range = of_chip.of_family(c.family, predicted, "analytic");
      const double residual = ratio(c.measured, predicted);
      ++result.cases;
      result.inside += residual >= range.low && residual <= range.high;
      result.validated += range.validated;
      result.width += range.high / range.low;
    }
  }
  return result;
}

class LeftOut : public ::testing::TestWithParam<const char*> {};

TEST_P(LeftOut, nine_in_ten_kernels_of_a_gpu_lie_in_the_range_that_other_gpus_give_it) {
  const Coverage c = coverage_without(GetParam());
  fmt::print("{}: {} cases, {:.1f} % inside, ranges {:.2f} wide in the mean\n", GetParam(), c.cases, 100.0 * c.share(),
             c.width / c.cases);
  ASSERT_GT(c.cases, 100);
  EXPECT_GE(c.share(), 0.88);
  EXPECT_LE(c.share(), 0.97) << "wider than it need be";
  EXPECT_EQ(c.validated, 0) << "nobody measured this GPU";
}
INSTANTIATE_TEST_SUITE_P(Gpus, LeftOut, ::testing::Values("h200", "h100", "a100", "t4", "v100"),
                         [](const auto& gpu) { return std::string(gpu.param); });

/// Measured on every chip of this test.
constexpr const char* kFamilies[] = {"gemm", "reduction", "pointwise"};

TEST(ChangedChip, every_number_that_a_law_of_time_reads_makes_it_another_chip_with_a_range_that_is_not_narrower) {
  const ResidualRanges ranges = ResidualRanges::load();
  constexpr Laws kNotOfTime =  // of one GPU
      Law::memory | Law::peak | Law::roofline | (Law::price | Law::description) | Law::boards;
  int changes = 0, wider = 0;
  for (const char* name : {"nvidia-h200-sxm-141gb", "nvidia-h100-sxm5-80gb", "nvidia-t4", "nvidia-v100-pcie-32gb"}) {
    const Gpu gpu = load_gpu(name);
    ASSERT_EQ(ChipRanges(ranges, gpu).distance(), 0.0) << name;
    for (const HardwareKey& key : hardware_keys()) {
      if (!key.is_number() || (key.laws & ~kNotOfTime) == 0 || key.get(gpu) == 0.0) continue;
      for (const double factor : {0.5, 0.97, 1.03, 2.0}) {
        Gpu changed = gpu;
        key.set(changed, key.get(gpu) * factor);
        if (key.get(changed) == key.get(gpu)) continue;  // a count of one
        const ChipRanges now(ranges, changed);
        EXPECT_GT(now.distance(), 0.0) << name << " " << key.key;
        for (const char* family : kFamilies)
          for (const double us : {3.0, 30.0, 300.0}) {
            const Range of_file = ranges.of_family(family, microseconds(us), gpu, "analytic");
            const Range of_changed = now.of_family(family, microseconds(us), "analytic");
            EXPECT_LE(of_changed.low, of_file.low * (1 + 1e-12)) << name << " " << key.key << " " << family;
            EXPECT_GE(of_changed.high, of_file.high * (1 - 1e-12)) << name << " " << key.key << " " << family;
            ++changes;
            wider += of_changed.high > of_file.high;
          }
      }
    }
  }
  EXPECT_GT(changes, 5000);
  EXPECT_GT(wider, changes / 2);
}

TEST(ChangedChip, its_range_grows_with_its_distance_and_without_steps) {
  const ResidualRanges ranges = ResidualRanges::load();
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  double before = 0.0;
  for (int i = 1; i <= 60; ++i) {
    Gpu changed = gpu;
    changed.sm.count = gpu.sm.count + 20 * i;
    changed.dram.bandwidth = gpu.dram.bandwidth * (1.0 + 0.15 * i);
    const double high = ranges.of_family("gemm", microseconds(300), changed, "analytic").high;
    if (before > 0.0) {
      EXPECT_GE(high, before);
      EXPECT_LT(high, 1.03 * before);
    }
    before = high;
  }
}

TEST(ChangedChip, ten_times_an_h200_is_not_validated_whatever_it_is_called) {
  const ResidualRanges ranges = ResidualRanges::load();
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Range measured = ranges.of_family("gemm", microseconds(300), gpu, "analytic");
  EXPECT_TRUE(measured.validated);
  gpu.name = "a name that nobody knows";
  EXPECT_TRUE(ranges.of_family("gemm", microseconds(300), gpu, "analytic").validated) << "numbers decide, not names";
  gpu.sm.count = 1320;
  gpu.dram.bandwidth = Bytes{48e12} / Seconds{1.0};
  const Range invented = ranges.of_family("gemm", microseconds(300), gpu, "analytic");
  EXPECT_FALSE(invented.validated);
  EXPECT_GT(invented.high, 1.1 * measured.high);
  EXPECT_LT(invented.low, measured.low / 1.1);
}

}  // namespace
}  // namespace ridgeline
