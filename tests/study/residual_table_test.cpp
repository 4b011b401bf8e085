// The table of ranges from cases made by hand.
#include "sim/study/validation/residual_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/answer/ranges/residual_ranges.h"

namespace ridgeline {
namespace {

using nlohmann::json;

ValidatedCase made_case(const char* hardware, const char* operation, double measured_us, double analytic_us) {
  ValidatedCase c;
  c.hardware = hardware, c.kind = {operation, "fp32", "simt", "gemm"}, c.source = "ours", c.software = "pytorch-2.11";
  c.measured = microseconds(measured_us);
  c.predicted = {{"analytic", microseconds(analytic_us)}, {"analytic-datasheet", microseconds(1)}};
  return c;
}

json engine_of(const json& table, const char* gpu) { return table["gpus"][gpu]["engines"]["analytic"]; }

// Measured over predicted from 0.80 to 1.18 in steps of 0.02: the levels of 20 cases are their ends.
TEST(ResidualTable, TwentyRowsOfAKindMakeItsRange) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 20; ++i) cases.push_back(made_case("a", "mm", 50 * (0.8 + 0.02 * i), 50));
  const json table = residual_table(cases);
  const json kinds = engine_of(table, "a")["kinds"];
  EXPECT_EQ(kinds["mm/fp32/simt"]["medium"], json({0.8, 1.18, 20, 59.0}));
  EXPECT_EQ(kinds["mm/fp32/simt"]["any"], kinds["mm/fp32/simt"]["medium"]);
  EXPECT_FALSE(kinds["mm/fp32/simt"].contains("small"));
  EXPECT_EQ(table["gpus"]["a"]["software"], json::array({"pytorch-2.11"}));
  EXPECT_FALSE(table["gpus"]["a"]["engines"].contains("analytic-datasheet"));
  EXPECT_FALSE(table.contains("steps"));
}

// Twenty published cases, all slower, are a population of their own.
TEST(ResidualTable, ARangeIsTheWidestOfItsPopulations) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 20; ++i) {
    cases.push_back(made_case("a", "mm", 50, 50));
    cases.push_back(made_case("a", "mm", 100, 50));
    cases.back().source = "public";
  }
  EXPECT_EQ(engine_of(residual_table(cases), "a")["kinds"]["mm/fp32/simt"]["any"], json({1.0, 2.0, 40, 100.0}));
}

// Ten exact rows have half of the weight; the other half is that of the other kind, all of whose rows take twice as
// long. Two rows are no evidence.
TEST(ResidualTable, FewRowsShareTheirRangeWithOtherKindsAndTwoHaveNone) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 20; ++i) cases.push_back(made_case("a", "mm", 100, 50));
  for (int i = 0; i < 10; ++i) cases.push_back(made_case("a", "bmm", 50, 50));
  for (int i = 0; i < 2; ++i) cases.push_back(made_case("a", "rare", 50, 50));
  const json kinds = engine_of(residual_table(cases), "a")["kinds"];
  EXPECT_EQ(kinds["bmm/fp32/simt"]["any"], json({1.0, 2.0, 10, 50.0}));
  EXPECT_EQ(kinds["mm/fp32/simt"]["any"], json({2.0, 2.0, 20, 100.0}));
  EXPECT_FALSE(kinds.contains("rare/fp32/simt"));
}

// A kind of 1,000 rows says no more of an unmeasured one than a kind of ten.
TEST(ResidualTable, AnUnmeasuredKindHasTheErrorsOfTheOthersInEqualParts) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 1000; ++i) cases.push_back(made_case("a", "mm", 50, 50));
  for (const char* operation : {"b", "c", "d", "e"})
    for (int i = 0; i < 10; ++i) cases.push_back(made_case("a", operation, 75, 50));
  EXPECT_EQ(engine_of(residual_table(cases), "a")["families"]["gemm"]["any"], json({1.0, 1.5}));
}

// Boards of one die are one GPU, and one of 1,000 rows counts as one of twenty.
TEST(ResidualTable, AnUnmeasuredGpuHasTheErrorsOfDiesInEqualParts) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 1000; ++i) cases.push_back(made_case("a", "mm", 50, 50));
  for (int i = 0; i < 20; ++i) cases.push_back(made_case("b", "mm", 75, 50));
  EXPECT_EQ(json(residual_table(cases)["elsewhere"]["analytic"]["gemm"]["any"]), json({1.0, 1.5}));
  for (int board = 0; board < 30; ++board)
    for (int i = 0; i < 20; ++i) {
      cases.push_back(made_case(("c" + std::to_string(board)).c_str(), "mm", 50, 50));
      cases.back().die = "one";
    }
  EXPECT_EQ(json(residual_table(cases)["elsewhere"]["analytic"]["gemm"]["any"]), json({1.0, 1.5}));
}

TEST(ResidualTable, CasesByTheirBytesAreTheRangeOfOperationsWithoutALaw) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 20; ++i) {
    cases.push_back(made_case("a", "softmax", 50, 50));
    cases.back().kind.family = "reduction";
    cases.back().by_bytes = microseconds(20);
  }
  const json families = engine_of(residual_table(cases), "a")["families"];
  EXPECT_EQ(families["reduction"]["any"], json({1.0, 1.0}));
  EXPECT_EQ(families["other"]["any"], json({2.5, 2.5}));
}

TEST(ResidualTable, TheFileHasALineForEachKindAndIsReadBack) {
  std::vector<ValidatedCase> cases;
  for (int i = 0; i < 20; ++i) cases.push_back(made_case("nvidia-t4", "mm", 50, 50));
  const auto table = residual_table(cases);
  const std::string text = residual_text(table);
  EXPECT_NE(text.find("\"mm/fp32/simt\": {\"medium\":[1.0,1.0,20,50.0],\"any\":[1.0,1.0,20,50.0]}"), text.npos) << text;
  EXPECT_EQ(json::parse(text), json(table));
}

ValidatedStep made_step(const char* publisher, double measured, bool known_host = false, const char* seen_by = "") {
  ValidatedStep step;
  step.measured.publisher = publisher, step.measured.seen_by = seen_by, step.measured.source = "public";
  step.measured.step_time = Seconds{measured};
  step.predicted.step.time = Seconds{1.0};
  step.scenario.gpu.name = "a";
  step.scenario.host.known = known_host;
  return step;
}

// Five publishers have a fifth of the weight each: one of 1,000 rows hides no other.
TEST(ResidualTable, RunsOfUnknownMachinesWeighByTheirPublishers) {
  std::vector<ValidatedStep> steps(1000, made_step("many", 1.0));
  for (const auto& [publisher, measured] : {std::pair{"b", 0.9}, {"c", 1.1}, {"d", 1.2}, {"e", 1.05}})
    steps.push_back(made_step(publisher, measured));
  EXPECT_EQ(json(residual_table({}, steps)["runs"]), json({0.9, 1.2, 5, 1004}));
  const RunErrors without = errors_of_unknown_runs(steps, "d");
  EXPECT_EQ(without.publishers, 4);
  EXPECT_DOUBLE_EQ(without.high, 1.1);
  EXPECT_FALSE(residual_table({}, std::vector<ValidatedStep>(99, made_step("one", 1.0))).contains("runs"));
}

TEST(ResidualTable, RunsThatAFitSawOrBesideKnownHostsSayNothingOfOthers) {
  std::vector<ValidatedStep> steps;
  for (const char* publisher : {"a", "b", "c", "d", "e"}) steps.push_back(made_step(publisher, 1.0));
  steps.push_back(made_step("f", 3.0, true));
  steps.push_back(made_step("g", 3.0, false, "scale of its host"));
  steps.push_back(made_step("", 3.0));
  steps.push_back(made_step("h", 3.0));
  steps.back().measured.source = "public, not comparable";
  EXPECT_EQ(json(residual_table({}, steps)["runs"]), json({1.0, 1.0, 5, 5}));
}

TEST(ResidualTable, APublisherIsTheRepositoryOrPageOfASource) {
  EXPECT_EQ(publisher_of("pytorch/ao@36027d82:README.md (8 H100)"), "pytorch/ao");
  EXPECT_EQ(publisher_of("fla-org/flash-linear-attention issue 32"), "fla-org/flash-linear-attention");
  EXPECT_EQ(publisher_of("arXiv:2205.05198, table 5"), "arXiv:2205.05198");
}

}  // namespace
}  // namespace ridgeline
