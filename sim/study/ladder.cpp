#include "sim/study/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <tuple>

#include "sim/answer/advice.h"
#include "sim/answer/changes.h"
#include "sim/network/load_cluster.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Sets = std::vector<std::string>;

constexpr double kWorthARow = 0.98;  ///< of the memory without the row's changes

/// A row that stands by itself, before it is predicted. Of several `tries` the first that fits is the row, else the
/// last.
struct Rung {
  std::string label;
  std::vector<Sets> tries;
};

Sets joined(Sets a, const Sets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Shipped clusters of one node of these GPUs: the smallest first, those without a faster link before others.
std::vector<std::tuple<int, bool, std::string>> clusters_of(const std::string& gpu) {
  std::vector<std::tuple<int, bool, std::string>> found;
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    if (cluster.gpu_name == gpu && cluster.nodes == 1)
      found.emplace_back(cluster.gpus, name.find("pcie") == name.npos, name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The scenario with the changes; nothing where the program refuses the changes.
std::optional<Scenario> changed_by(const Sets& sets, const StepRun& run, Descriptions& known) {
  try {
    return load_changed(*run.scenario().asked, overrides_of(sets), known);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

/// Nothing where the program refuses the changes or the GPU lacks what they ask for.
std::optional<LadderRow> predicted(const std::string& label, const Sets& sets, const StepRun& run,
                                   Descriptions& known) {
  keep_budget("trying ways to make it fit");
  std::optional<Scenario> scenario = changed_by(sets, run, known);
  if (!scenario || (scenario->training == run.scenario().training && !scenario->cluster)) return std::nullopt;
  try {
    const StepRun other(run.session(), std::move(*scenario), run.engine() == "simulate" ? "analytic" : run.engine());
    LadderRow row{label, false, sets, sets, other.memory(), {}};
    if (row.memory.runs) row.step = other.step();
    return row;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::optional<LadderRow> predicted(const Rung& rung, const StepRun& run, Descriptions& known) {
  std::optional<LadderRow> row;
  for (const Sets& sets : rung.tries) {
    std::optional<LadderRow> tried = predicted(rung.label, sets, run, known);
    if (!tried) continue;
    row = std::move(tried);
    if (row->memory.fits) break;
  }
  return row;
}

/// "the same batch, one sequence after the other", as --set takes it.
std::string one_at_a_time(const TrainingDescription& t) {
  return fmt::format("training.micro_batch=1 training.gradient_accumulation={}",
                     t.micro_batch * t.gradient_accumulation);
}

/// Rows of which each keeps the changes of the one above, until one surely fits. A change that saves next to nothing is
/// no row.
class Climb {
 public:
  Climb(const StepRun& run, Descriptions& known)
      : run_(run), known_(known), needed_(static_cast<double>(run.memory().needed)) {}

  void add(const std::string& label, const std::string& set) {
    if (!rows_.empty() && rows_.back().memory.fits) return;
    std::optional<LadderRow> row = predicted(label, joined(all_, {set}), run_, known_);
    if (!row || static_cast<double>(row->memory.needed) > kWorthARow * needed_) return;
    row->adds = !rows_.empty();
    row->own = {set};
    all_ = row->all;
    needed_ = static_cast<double>(row->memory.needed);
    rows_.push_back(std::move(*row));
  }
  std::vector<LadderRow> take() { return std::move(rows_); }

 private:
  const StepRun& run_;
  Descriptions& known_;
  Sets all_;
  double needed_;
  std::vector<LadderRow> rows_;
};

/// Sixteen bits, where the GPU has them and they are not there yet.
Sets sixteen_bits(const Scenario& asked) {
  if (asked.training.precision == Precision::bf16 || asked.gpu.sm.rates.tensor_bf16 <= 0.0) return {};
  return {std::string(asked.training.inference ? "inference" : "training") + ".precision=bf16"};
}

/// All weights trained, or the model used.
std::vector<LadderRow> climbed(const StepRun& run, Descriptions& known) {
  const Scenario& asked = run.scenario();
  const TrainingDescription& t = asked.training;
  Climb climb(run, known);
  for (const std::string& set : sixteen_bits(asked)) climb.add("bf16", set);
  if (t.inference) {
    if (t.inference->sequences > 1) climb.add("1 sequence", "inference.sequences=1");
    return climb.take();
  }
  if (t.optimizer.kind == OptimizerKind::adamw || t.optimizer.kind == OptimizerKind::adam)
    climb.add("8-bit Adam", "training.optimizer.name=adamw-8bit");
  if (t.activation_checkpointing == ActivationCheckpointing::none)
    climb.add("checkpointing", "training.activation_checkpointing=block");
  if (t.micro_batch > 1 && !t.parallel.pipelined()) climb.add("1 at a time", one_at_a_time(t));
  if (t.parallel.several() && t.parallel.strategy == DataStrategy::ddp)
    climb.add("FSDP", "training.parallel.strategy=fsdp");
  climb.add("offload to host",
            t.parallel.several() ? "training.parallel.offload=true" : "training.activation_offload=pinned");
  return climb.take();
}

/// By itself, with checkpointed blocks, one sequence at a time.
Rung rung_of(std::string label, Sets base, const TrainingDescription& t) {
  Rung rung{std::move(label), {std::move(base)}};
  if (t.activation_checkpointing == ActivationCheckpointing::none)
    rung.tries.push_back(joined(rung.tries.back(), {"training.activation_checkpointing=block"}));
  if (t.micro_batch > 1 && !t.parallel.pipelined()) rung.tries.push_back(joined(rung.tries.back(), {one_at_a_time(t)}));
  return rung;
}

std::vector<Rung> rungs_of(const Scenario& asked) {
  const TrainingDescription& t = asked.training;
  std::vector<Rung> rungs;
  if (t.inference) return rungs;
  const Sets base = sixteen_bits(asked);
  constexpr std::int64_t kUsualRank = 16;
  const std::int64_t rank = t.lora ? t.lora->rank : kUsualRank;
  const Sets lora = joined(base, {fmt::format("training.lora.rank={}", rank)});
  if (!t.lora) rungs.push_back(rung_of(fmt::format("LoRA, rank {}", rank), lora, t));
  if (!t.lora || t.lora->frozen == FrozenWeights::as_stored)
    rungs.push_back(
        rung_of(fmt::format("QLoRA, rank {}", rank), joined(lora, {"training.lora.frozen_weights=nf4-double"}), t));
  if (asked.cluster) return rungs;
  const auto clusters = clusters_of(asked.gpu.name);
  for (const int gpus : {2, 4, 8}) {
    const auto found =
        std::find_if(clusters.begin(), clusters.end(), [&](const auto& one) { return std::get<0>(one) >= gpus; });
    if (found == clusters.end()) continue;
    Sets sets = joined(base, {"cluster=" + std::get<2>(*found), "training.parallel.strategy=fsdp"});
    if (std::get<0>(*found) > gpus) sets.push_back(fmt::format("training.parallel.data={}", gpus));
    rungs.push_back(rung_of(fmt::format("{} GPUs, FSDP", gpus), std::move(sets), t));
  }
  return rungs;
}

}  // namespace

std::vector<LadderRow> ladder_of(const StepRun& run) {
  const Scenario& asked = run.scenario();
  if (asked.asked == nullptr || asked.recorded != nullptr || run.trace().calls.size() > kMostCallsToTry) return {};
  const std::vector<Rung> rungs = rungs_of(asked);
  Descriptions known;
  std::vector<std::future<std::optional<LadderRow>>> trials;
  for (const Rung& rung : rungs)
    trials.push_back(std::async(
        std::launch::async, with_same_budget([&] { return evaluated([&] { return predicted(rung, run, known); }); })));
  std::vector<LadderRow> rows = evaluated([&] { return climbed(run, known); });
  const auto needed = static_cast<double>(run.memory().needed);
  double least = needed;  // of adapters beside weights as they are
  for (auto& trial : trials) {
    std::optional<LadderRow> row = trial.get();
    if (!row || static_cast<double>(row->memory.needed) > kWorthARow * needed) continue;
    if (row->label.starts_with("QLoRA") && static_cast<double>(row->memory.needed) > kWorthARow * least) continue;
    if (row->label.starts_with("LoRA")) least = static_cast<double>(row->memory.needed);
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace ridgeline
