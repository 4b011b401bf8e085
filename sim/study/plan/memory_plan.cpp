#include "sim/study/plan/memory_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "sim/units/ceil_div.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::uint8_t bit(BlockPart part) { return static_cast<std::uint8_t>(part); }

/// The cheap ones before those that save more.
constexpr std::array<std::uint8_t, 6> kTreatments{
    bit(BlockPart::activation),   bit(BlockPart::attention),
    bit(BlockPart::feed_forward), static_cast<std::uint8_t>(bit(BlockPart::attention) | bit(BlockPart::activation)),
    bit(BlockPart::block),        bit(BlockPart::offload)};
/// Combinations whose memory is predicted, and whose time is, at most.
constexpr int kMostTried = 160, kMostTimed = 12;

/// Counts of blocks of two options, the first at the beginning of the network.
struct Combination {
  std::size_t one = 0, other = 0;
  std::int64_t of_one = 0, of_other = 0;
  double cost = 0.0;
};

class MemorySearch {
 public:
  MemorySearch(Session& session, const Scenario& scenario, std::int64_t budget, std::string_view engine)
      : session_(session), scenario_(scenario), engine_(engine) {
    plan_.budget = budget;
    plan_.blocks = scenario.model.layers;
  }

  MemoryPlan run() {
    const StepRun before(session_, scenario_, engine_);
    plan_.needed_before = before.memory().needed;
    plan_.time_before = before.timeline().step;
    plan_.predictions = 1;
    take({}, plan_.needed_before, plan_.time_before);
    if (plan_.fits) return std::move(plan_);
    for (const std::uint8_t parts : kTreatments) try_on_all(parts);
    search();
    return std::move(plan_);
  }

 private:
  void take(std::vector<TreatedBlocks> treated, std::int64_t needed, Seconds time) {
    const bool fits = needed <= plan_.budget;
    const bool better = plan_.time == Seconds{} || (fits != plan_.fits ? fits
                                                    : fits             ? time < plan_.time
                                                                       : needed < plan_.needed);
    if (!better) return;
    plan_.treated = std::move(treated);
    plan_.needed = needed;
    plan_.time = time;
    plan_.fits = fits;
  }

  void try_on_all(std::uint8_t parts) {
    const std::vector<TreatedBlocks> all{{0, plan_.blocks - 1, parts}};
    try {
      const StepRun run(session_, with_treated_blocks(scenario_, all), engine_);
      const std::int64_t needed = run.memory().needed;
      const Seconds time = run.timeline().step;
      ++plan_.predictions;
      take(all, needed, time);
      if (needed >= plan_.needed_before) return;
      const auto blocks = static_cast<double>(plan_.blocks);
      plan_.options.push_back({parts, (plan_.needed_before - needed) / plan_.blocks,
                               std::max(Seconds{}, (time - plan_.time_before) / blocks)});
    } catch (const UserError& error) {
      plan_.refused.push_back(words_of_parts(parts) + ": " + error.what());
    }
  }

  [[nodiscard]] std::vector<Combination> combinations() const {
    std::vector<Combination> result;
    const std::int64_t missing = plan_.needed_before - plan_.budget;
    for (std::size_t one = 0; one < plan_.options.size(); ++one)
      for (std::size_t other = 0; other < plan_.options.size(); ++other) {
        if (one == other) continue;
        for (std::int64_t n = 0; n <= plan_.blocks; ++n) {
          const std::int64_t left = missing - n * plan_.options[one].saved;
          // One block less than the estimate asks for: averages leave out what the peak has besides.
          const std::int64_t each = std::max<std::int64_t>(1, plan_.options[other].saved);
          const std::int64_t least = left <= 0 ? 0 : ceil_div(left, each) - 1;
          for (std::int64_t m = least; m <= std::min(plan_.blocks - n, least + 2); ++m)
            if (n + m > 0)
              result.push_back({one, other, n, m,
                                static_cast<double>(n) * plan_.options[one].cost.value() +
                                    static_cast<double>(m) * plan_.options[other].cost.value()});
        }
      }
    std::stable_sort(result.begin(), result.end(),
                     [](const Combination& a, const Combination& b) { return a.cost < b.cost; });
    return result;
  }

  [[nodiscard]] std::vector<TreatedBlocks> blocks_of(const Combination& c) const {
    std::vector<TreatedBlocks> treated;
    if (c.of_one > 0) treated.push_back({0, c.of_one - 1, plan_.options[c.one].parts});
    if (c.of_other > 0) treated.push_back({c.of_one, c.of_one + c.of_other - 1, plan_.options[c.other].parts});
    return treated;
  }

  void search() {
    constexpr double kEstimates = 1.02;  // what one is off against another
    int tried = 0, timed = 0;
    std::map<std::vector<std::uint8_t>, bool> seen;
    double best = std::numeric_limits<double>::infinity();
    for (const Combination& c : combinations()) {
      if (tried >= kMostTried || timed >= kMostTimed) break;
      if (plan_.time_before.value() + c.cost > kEstimates * best) break;
      const std::vector<TreatedBlocks> treated = blocks_of(c);
      const Scenario scenario = with_treated_blocks(scenario_, treated);
      if (!seen.emplace(scenario.training.treated_blocks.parts, true).second) continue;
      const StepRun run(session_, scenario, engine_);
      const std::int64_t needed = run.memory().needed;
      ++tried;
      ++plan_.predictions;
      if (needed > plan_.budget) continue;
      const Seconds time = run.timeline().step;
      ++timed;
      best = std::min(best, time.value());
      take(treated, needed, time);
    }
  }

  Session& session_;
  const Scenario& scenario_;
  std::string engine_;
  MemoryPlan plan_;
};

}  // namespace

Scenario with_treated_blocks(const Scenario& scenario, const std::vector<TreatedBlocks>& treated) {
  Scenario result = scenario;
  std::vector<std::uint8_t> parts;
  for (const TreatedBlocks& blocks : treated) {
    parts.resize(static_cast<std::size_t>(blocks.last + 1), 0);
    for (std::int64_t i = blocks.first; i <= blocks.last; ++i) parts[static_cast<std::size_t>(i)] |= blocks.parts;
  }
  parts.push_back(0);
  result.training.treated_blocks.parts = std::move(parts);
  result.training.activation_checkpointing =
      result.training.treated_blocks.any() ? ActivationCheckpointing::parts : ActivationCheckpointing::none;
  return result;
}

std::string words_of_parts(std::uint8_t parts) {
  std::string words;
  for (const auto& [name, part] : kBlockParts) {
    if ((parts & bit(part)) == 0) continue;
    if (!words.empty()) words += " + ";
    words += name;
  }
  return words.empty() ? "kept" : words;
}

MemoryPlan plan_memory(Session& session, const Scenario& scenario, std::int64_t budget, std::string_view engine) {
  const TrainingDescription& t = scenario.training;
  if (scenario.recorded || t.inference)
    throw UserError("--memory: parts of blocks are chosen for the training of a described network");
  if (scenario.compile || t.parallel.megatron() || t.parallel.pipelined())
    throw UserError(
        "--memory: parts of blocks go with eager code and a network whole on each rank; expected neither compile, "
        "Megatron-LM nor a pipeline");
  Scenario plain = scenario;
  plain.training.activation_checkpointing = ActivationCheckpointing::none;
  plain.training.checkpointed_every = 1;
  plain.training.treated_blocks = {};
  return MemorySearch(session, plain, budget, engine).run();
}

}  // namespace ridgeline
