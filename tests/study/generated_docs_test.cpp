// What is generated from the measurements is what stands in the tree.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/report/text/accuracy_text.h"
#include "sim/study/validation/accuracy.h"
#include "tests/study/validated.h"

namespace ridgeline {
namespace {

std::string contents(const std::string& name) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Tables {
  const std::vector<ValidatedCase>& cases = validated_kernels();
  const std::vector<ValidatedStep>& steps = validated_steps();
  std::vector<FamilyAccuracy> families = family_accuracy(cases);
  std::vector<StepAccuracy> step_rows = rows_of_steps();

  static std::vector<StepAccuracy> rows_of_steps() {
    std::vector<StepAccuracy> rows = step_accuracy(validated_steps());
    const std::vector<StepAccuracy> published = step_accuracy(validated_published_training());
    rows.insert(rows.end(), published.begin(), published.end());
    return rows;
  }
};
const Tables& tables() {
  static const Tables t;
  return t;
}
constexpr const char* kHint =
    "run `build/ridgeline validate --write-residuals && build/ridgeline validate --write-docs`";

TEST(GeneratedDocs, TheErrorTablesAreTodays) {
  EXPECT_EQ(contents("docs/accuracy.md"), accuracy_markdown(tables().families, tables().step_rows, tables().steps))
      << kHint;
}

TEST(GeneratedDocs, TheReadmeShowsTodaysErrors) {
  EXPECT_NE(contents("README.md").find(accuracy_summary(accuracy_overview(tables().families, tables().step_rows))),
            std::string::npos)
      << kHint;
}

TEST(GeneratedDocs, TheRangesAreTodaysResiduals) {
  EXPECT_EQ(contents("hw/residuals.json"), residual_table(validated_kernels_of_every_engine()).dump(1) + "\n") << kHint;
}

TEST(GeneratedDocs, NineInTenUnseenKernelsLieInTheirRange) {
  // The ranges come from one half of the unseen cases and are tried on the other, both ways.
  std::size_t inside = 0, tried = 0;
  for (const int half : {0, 1}) {
    std::vector<ValidatedCase> learned, unseen;
    for (std::size_t i = 0; i < tables().cases.size(); ++i) {
      const ValidatedCase& c = tables().cases[i];
      if (c.source.starts_with("public")) continue;
      (static_cast<int>(i % 2) == half ? learned : unseen).push_back(c);
    }
    const auto ranges = residual_table(learned)["ranges"];
    for (const ValidatedCase& c : unseen) {
      const Seconds t = c.predicted.at("analytic");
      for (const std::string_view bucket : {size_bucket(t), std::string_view("any")}) {
        const std::string key = "analytic/" + c.hardware + "/" + c.family + "/" + std::string(bucket);
        if (!ranges.contains(key)) continue;
        ++tried;
        const double residual = ratio(c.measured, t);
        if (residual >= ranges[key]["low"] && residual <= ranges[key]["high"]) ++inside;
        break;
      }
    }
  }
  ASSERT_GT(tried, 3000u);
  const double coverage = static_cast<double>(inside) / static_cast<double>(tried);
  EXPECT_GE(coverage, 0.88);
  EXPECT_LE(coverage, 0.95) << "ranges wider than they need to be say nothing";
}

}  // namespace
}  // namespace ridgeline
