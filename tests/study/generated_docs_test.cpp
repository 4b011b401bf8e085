// What is generated from the measurements is what stands in the tree.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/report/text/accuracy_text.h"
#include "sim/study/validation/residual_table.h"
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

TEST(GeneratedDocs, TheErrorTablesNameEveryShippedGpu) {
  const std::string page = contents("docs/accuracy.md");
  for (const std::string& name : hardware_names()) {
    const std::string gpu = name.substr(std::string_view("nvidia-").size());
    const bool row = page.find("\n| " + gpu + " ") != page.npos;
    const bool line =
        page.find("Without a row: ") != page.npos && page.find(gpu, page.find("Without a row: ")) != page.npos;
    EXPECT_TRUE(row || line) << name;
  }
}

TEST(GeneratedDocs, TheReadmeShowsTodaysErrors) {
  EXPECT_NE(contents("README.md").find(accuracy_lines(accuracy_overview(tables().families, tables().step_rows))),
            std::string::npos)
      << kHint;
}

TEST(GeneratedDocs, TheRangesAreTodaysResiduals) {
  std::vector<ValidatedStep> steps = validated_steps();
  const std::vector<ValidatedStep>& published = validated_published_training();
  steps.insert(steps.end(), published.begin(), published.end());
  EXPECT_EQ(contents("hw/residuals.json"), residual_text(residual_table(validated_kernels_of_every_engine(), steps)))
      << kHint;
}

}  // namespace
}  // namespace ridgeline
