// Nine in ten of the cases that no constant saw lie inside their range: ranges of one half of the cases, the other half
// inside them, by family and over all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/scenario/residual_ranges.h"
#include "sim/study/accuracy.h"

namespace ridgeline {
namespace {

struct Coverage {
  int cases = 0, inside = 0;
  [[nodiscard]] double share() const { return cases > 0 ? static_cast<double>(inside) / cases : 1.0; }
};

/// Cases of the H200 and H100 whose position is odd, against ranges of those whose position is even, and the reverse.
std::map<std::string, Coverage> cross_coverage() {
  const auto all = validate_kernels(std::string(RIDGELINE_SOURCE_DIR) + "/measurements", "");
  std::map<std::string, Coverage> result;
  std::map<std::string, Gpu> gpus;
  for (const std::size_t tested : {0, 1}) {
    std::vector<ValidatedCase> known;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % 2 != tested) known.push_back(all[i]);
    const ResidualRanges ranges = ResidualRanges::from(nlohmann::json(residual_table(known)));
    for (std::size_t i = tested; i < all.size(); i += 2) {
      const ValidatedCase& c = all[i];
      if (c.source == "public") continue;
      const auto gpu = gpus.try_emplace(c.hardware, load_gpu(c.hardware)).first;
      const Seconds predicted = c.predicted.at("analytic");
      const Range range = ranges.of_family(c.family, predicted, gpu->second, "analytic");
      const double residual = ratio(c.measured, predicted);
      for (const std::string& group : {std::string("all"), c.family, c.hardware + " " + c.family}) {
        Coverage& coverage = result[group];
        ++coverage.cases;
        coverage.inside += residual >= range.low && residual <= range.high;
      }
    }
  }
  return result;
}

TEST(RangeCoverage, nine_in_ten_unseen_cases_lie_inside_by_family_and_over_all) {
  const auto coverage = cross_coverage();
  for (const auto& [group, c] : coverage)
    fmt::print("{:36} {:5} cases, {:.1f} % inside\n", group, c.cases, 100.0 * c.share());
  for (const char* group : {"all", "gemm", "attention", "reduction", "pointwise", "convolution"}) {
    ASSERT_TRUE(coverage.contains(group)) << group;
    EXPECT_GE(coverage.at(group).share(), 0.9) << group;
  }
}

TEST(RangeCoverage, the_committed_ranges_hold_nine_in_ten_of_each_gpu_and_family) {
  const ResidualRanges ranges = ResidualRanges::load();
  std::map<std::string, Coverage> coverage;
  for (const ValidatedCase& c : validate_kernels(std::string(RIDGELINE_SOURCE_DIR) + "/measurements", "")) {
    if (c.source == "public") continue;
    const Gpu gpu = load_gpu(c.hardware);
    const Range range = ranges.of_family(c.family, c.predicted.at("analytic"), gpu, "analytic");
    const double residual = ratio(c.measured, c.predicted.at("analytic"));
    Coverage& group = coverage[c.hardware + " " + c.family];
    ++group.cases;
    group.inside += residual >= range.low && residual <= range.high;
  }
  ASSERT_GE(coverage.size(), 8u);
  for (const auto& [group, c] : coverage) EXPECT_GE(c.share(), 0.9) << group << ": " << c.inside << " of " << c.cases;
}

}  // namespace
}  // namespace ridgeline
