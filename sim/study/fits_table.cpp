#include "sim/study/fits_table.h"

#include <fmt/format.h>

#include <future>

#include "sim/answer/changes.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

FitsCell cell_of(Session& session, const AskedScenario& asked, const TrainingWay& way, const std::string& precision,
                 std::string_view engine) {
  FitsCell cell{precision, "", std::nullopt, 0};
  std::vector<std::string> sets = way.sets;
  sets.push_back("training.precision=" + precision);
  try {
    FitResult found =
        fit_batch(session, load_changed(asked, overrides_of(sets), session.descriptions()), engine, false);
    cell.largest = std::move(found.largest);
    if (!cell.largest && found.failing) cell.needed = found.failing->needed;
  } catch (const UserError& error) {
    cell.refused = error.what();
  }
  return cell;
}

}  // namespace

std::vector<TrainingWay> training_ways(std::int64_t rank) {
  const std::string adapters = fmt::format("training.lora.rank={}", rank);
  return {{"full", {}},
          {fmt::format("LoRA {}", rank), {adapters}},
          {fmt::format("QLoRA {}", rank), {adapters, "training.lora.frozen_weights=nf4-double"}},
          {"8-bit Adam", {"training.optimizer.name=adamw-8bit"}},
          {"offload", {"training.activation_offload=pinned"}}};
}

std::vector<FitsRow> fits_table(Session& session, const AskedScenario& asked, std::int64_t rank,
                                std::string_view engine) {
  std::vector<FitsRow> rows;
  std::vector<std::vector<std::future<FitsCell>>> searched;
  for (TrainingWay& way : training_ways(rank)) rows.push_back({std::move(way), {}});
  for (const FitsRow& row : rows) {
    auto& cells = searched.emplace_back();
    for (const char* precision : kFitsPrecisions)
      cells.push_back(std::async(std::launch::async, with_same_budget([&session, &asked, &row, precision, engine] {
                                   return evaluated(
                                       [&] { return cell_of(session, asked, row.way, precision, engine); });
                                 })));
  }
  std::string refused;
  bool any = false;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (auto& cell : searched[i]) {
      rows[i].cells.push_back(cell.get());
      if (rows[i].cells.back().refused.empty()) any = true;
      else if (refused.empty()) refused = rows[i].cells.back().refused;
    }
  if (!any) throw UserError(refused);
  return rows;
}

}  // namespace ridgeline
