// The largest batch that a GPU holds, for each way to train a network and each precision.
//
// Tested by tests/study/fits_table_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/fit.h"

namespace ridgeline {

/// A way to train: its name, and its changes as --set takes them.
struct TrainingWay {
  std::string label;
  std::vector<std::string> sets;
};
/// All weights, LoRA, QLoRA, 8-bit Adam, saved tensors in the host's memory.
std::vector<TrainingWay> training_ways(std::int64_t rank);

struct FitsCell {
  std::string precision;
  std::string refused;                  ///< why the program does not take it; empty: it does
  std::optional<FittingBatch> largest;  ///< empty: not even one sequence fits
  std::int64_t needed = 0;              ///< bytes of one sequence, where none fits
};
struct FitsRow {
  TrainingWay way;
  std::vector<FitsCell> cells;  ///< by kFitsPrecisions
};
inline constexpr const char* kFitsPrecisions[] = {"bf16", "amp-bf16", "fp32"};

/// `asked`: one sequence of the length that is asked for, of a model that is trained on one GPU. Cells are searched in
/// parallel, under the budget of the question. Throws as load_scenario does where no cell can be had.
std::vector<FitsRow> fits_table(Session& session, const AskedScenario& asked, std::int64_t rank,
                                std::string_view engine);

}  // namespace ridgeline
