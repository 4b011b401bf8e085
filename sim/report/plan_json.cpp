#include <nlohmann/json.hpp>

#include "sim/report/plan_report.h"
#include "sim/report/text/comparison_words.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

constexpr std::array<const char*, kPlanFates> kFates{"predicted", "does not fit", "cannot run", "too large",
                                                     "too slow"};

/// A text, or null where nothing is said.
ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }
ordered_json positive_or_null(double number) { return number > 0.0 ? ordered_json(number) : ordered_json(); }
ordered_json positive_or_null(std::int64_t number) { return number > 0 ? ordered_json(number) : ordered_json(); }

std::string reason_of(const PlanEntry& entry) {
  const PlanCandidate& c = entry.candidate;
  if (!entry.why.empty()) return entry.why;
  return (c.refused_key.empty() ? "" : c.refused_key + ": ") + c.refused;
}

ordered_json way_json(const PlanEntry& entry) {
  const PlanCandidate& c = entry.candidate;
  ordered_json set = ordered_json::array();
  for (const config::Override& change : c.changes) set.push_back(change.key + "=" + change.value);
  return {{"gpus", c.gpus},
          {"data", c.data},
          {"strategy", text_or_null(c.strategy)},
          {"replicate", positive_or_null(c.replicate)},
          {"tensor", c.tensor},
          {"tensor_style", text_or_null(c.tensor_style)},
          {"sequence_parallel", c.sequence_parallel},
          {"pipeline", c.pipeline},
          {"schedule", text_or_null(c.schedule)},
          {"virtual_stages", positive_or_null(c.virtual_stages)},
          {"context", c.context},
          {"expert", c.expert},
          {"micro_batch", c.micro_batch},
          {"gradient_accumulation", c.accumulation},
          {"activation_checkpointing", text_or_null(c.recompute)},
          {"no_sync", c.no_sync},
          {"fate", kFates[static_cast<std::size_t>(entry.fate)]},
          {"why", entry.fate == PlanFate::refused ? text_or_null(reason_of(entry)) : ordered_json()},
          {"refusals", entry.fate == PlanFate::refused ? ordered_json(c.refusals) : ordered_json()},
          {"step_time_s", positive_or_null(entry.time.value())},
          {"memory_bytes", positive_or_null(entry.memory)},
          {"least_time_s", positive_or_null(c.least_time.value())},
          {"least_memory_bytes", positive_or_null(c.least_memory)},
          {"set", std::move(set)}};
}

ordered_json against_best(const Difference& d, const ComparedScenario& best, const ComparedScenario& own) {
  ordered_json classes = ordered_json::array();
  for (const ClassDifference& part : d.classes)
    classes.push_back({{"class", part.kernel_class ? name_of(*part.kernel_class) : "idle"},
                       {"difference_s", part.difference.value()},
                       {"reason", reason_for(part, best, own)}});
  return {{"time_s", d.time.value()}, {"memory_bytes", d.memory}, {"classes", std::move(classes)}};
}

ordered_json row_json(const PlanAnswer& answer, std::size_t i, const PlanCandidate& c) {
  const PlanRow& row = answer.rows[i];
  const Prediction& p = row.side.prediction;
  const auto gpus = static_cast<double>(c.gpus);
  const double price = row.side.scenario().gpu.price_per_hour * gpus;
  return {
      {"way", row.entry},
      {"label", row.side.label},
      {"step_time_s", p.step.time.value()},
      {"low_s", p.step.low.value()},
      {"high_s", p.step.high.value()},
      {"samples_per_s", p.step.samples_per_s},
      {"tokens_per_s", p.step.tokens_per_s},
      {"tokens_per_s_a_gpu", p.step.tokens_per_s / gpus},
      {"mfu", p.step.mfu},
      {"memory_bytes", p.memory.device_used},
      {"energy_j", p.step.energy.energy.value() * gpus},
      {"price_usd_per_hour", positive_or_null(price)},
      {"price_usd_per_million", positive_or_null(price / 3600.0 / p.step.samples_per_s * 1e6)},
      {"exposed_communication_s", p.parallel ? p.parallel->exposed.value() : 0.0},
      {"bubble_s", p.parallel ? p.parallel->bubble.value() : 0.0},
      {"against_best", i == 0 ? ordered_json() : against_best(row.against_best, answer.rows.front().side, row.side)}};
}

ordered_json changes_json(const PlanAnswer& answer) {
  ordered_json changes = ordered_json::array();
  for (const PlanChange& change : answer.changes)
    changes.push_back({{"what", change.what},
                       {"way", answer.rows[change.row].entry},
                       {"step_time_s", change.time.value()},
                       {"best_step_time_s", change.of_best.value()}});
  return changes;
}

}  // namespace

ordered_json plan_json(const PlanQuestion& question, const PlanSearch& search, const PlanAnswer& answer) {
  ordered_json best = ordered_json::array(), ways = ordered_json::array(), left_out = ordered_json::array();
  for (std::size_t i = 0; i < answer.rows.size(); ++i)
    best.push_back(row_json(answer, i, question.candidates[answer.rows[i].entry]));
  for (const PlanEntry& entry : search.entries) ways.push_back(way_json(entry));
  for (const LeftOut& one : left_out_of(search)) left_out.push_back({{"why", one.why}, {"ways", one.ways}});
  ordered_json order, memory;
  if (answer.order)
    order = {{"overlap", answer.order->overlap},
             {"common", answer.order->common},
             {"least_ratio", answer.order->least},
             {"most_ratio", answer.order->most},
             {"holds", answer.order->holds()}};
  if (answer.with_memory)
    memory = {{"way", answer.with_memory->entry},
              {"step_time_s", answer.with_memory->time.value()},
              {"memory_bytes", answer.with_memory->memory}};
  return {{"title", question.title},
          {"hardware", question.hardware},
          {"cluster", question.cluster},
          {"assumed", text_or_null(question.assumed)},
          {"engine", question.sweep.engine},
          {"sequences", question.batch},
          {"capacity_bytes", question.capacity},
          {"predictions", search.predictions},
          {"best", std::move(best)},
          {"front", search.front},
          {"order", std::move(order)},
          {"changes", changes_json(answer)},
          {"with_more_memory", std::move(memory)},
          {"left_out", std::move(left_out)},
          {"ways", std::move(ways)}};
}

}  // namespace ridgeline
