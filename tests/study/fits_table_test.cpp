// The table of ways to train and precisions: each cell is the batch that fits, and one sequence more does not.
#include "sim/study/fits_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/answer/changes.h"
#include "sim/report/fits_report.h"
#include "sim/scenario/descriptions.h"

namespace ridgeline {
namespace {

Scenario one_sequence(const std::string& model, const std::string& gpu) {
  ScenarioSource source;
  source.text = "model: " + model + "\nhardware: " + gpu + "\ntraining: {micro_batch: 1, sequence_length: 512}\n";
  source.text_name = "test";
  return load_scenario(source);
}

TEST(FitsTable, EachCellHoldsItsBatchAndNotOneMore) {
  Session session;
  const Scenario asked = one_sequence("gpt2-large", "nvidia-rtx-3090");
  const std::vector<FitsRow> rows = fits_table(session, *asked.asked, 16, "analytic");
  ASSERT_EQ(rows.size(), training_ways(16).size());
  int cells = 0;
  for (const FitsRow& row : rows) {
    ASSERT_EQ(row.cells.size(), std::size(kFitsPrecisions));
    for (const FitsCell& cell : row.cells) {
      if (!cell.largest) continue;
      ++cells;
      std::vector<std::string> sets = row.way.sets;
      sets.push_back("training.precision=" + cell.precision);
      const auto memory_of = [&](std::int64_t batch) {
        std::vector<std::string> all = sets;
        all.push_back("training.micro_batch=" + std::to_string(batch));
        return StepRun(session, load_changed(*asked.asked, overrides_of(all), session.descriptions()), "analytic")
            .memory();
      };
      EXPECT_TRUE(memory_of(cell.largest->micro_batch).runs) << row.way.label << cell.precision;
      EXPECT_FALSE(memory_of(cell.largest->micro_batch + 1).runs) << row.way.label << cell.precision;
    }
  }
  EXPECT_GE(cells, 12);
}

TEST(FitsTable, AdaptersFitWhereTheWholeNetworkDoesNot) {
  Session session;
  const Scenario asked = one_sequence("llama-3-8b", "nvidia-rtx-3090");
  const std::vector<FitsRow> rows = fits_table(session, *asked.asked, 16, "analytic");
  EXPECT_FALSE(rows[0].cells[0].largest);
  EXPECT_GT(rows[0].cells[0].needed, std::int64_t{60} << 30) << "8 B weights, gradients and states in 16 bits";
  ASSERT_TRUE(rows[1].cells[0].largest);
  ASSERT_TRUE(rows[2].cells[0].largest);
  EXPECT_GT(rows[2].cells[0].largest->micro_batch, rows[1].cells[0].largest->micro_batch);
  std::istringstream lines(fits_text(asked, rows));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace ridgeline
