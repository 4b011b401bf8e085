#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "tests/invariants/chip_keys.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/timed_step.h"

namespace ridgeline::invariants {
namespace {

struct Improvement {
  std::string name;
  Overrides changes;
};

/// Keys that are limits of each other, so that one alone is refused or idle.
const std::vector<std::vector<std::string_view>> kTogether{
    {"sm.l1_and_shared", "sm.shared_per_sm", "sm.shared_per_block"},
    {"sm.max_warps", "sm.max_blocks", "sm.max_threads_per_block", "sm.registers"},
    {"l2.resident_full", "l2.resident_none"},
    {"sm.count", "l2.read_bandwidth", "l2.write_bandwidth", "l2.shared_read_bandwidth", "dram.bandwidth"},
};

Improvement whole_group(Draw& draw, const std::vector<ChipKey>& keys, std::string name,
                        const std::function<bool(const ChipKey&)>& belongs) {
  Improvement result{std::move(name), {}};
  const double factor = draw.between(1.02, 4.0);
  for (const ChipKey& key : keys)
    if (belongs(key)) result.changes.push_back(improved(key, factor));
  return result;
}

/// Keys whose current value another of the scenario's own changes has set are read from the changed chip.
std::vector<ChipKey> keys_to_improve(const Question& question) {
  std::vector<ChipKey> keys = keys_of(question.hardware);
  for (const config::Override& change : question.chip)
    for (ChipKey& key : keys)
      if ("hardware." + key.key == change.key && !key.flag) key.value = std::stod(change.value);
  std::erase_if(keys, [](const ChipKey& key) {
    return key.better == Better::neither || (key.value == 0.0 && !key.flag) || (key.flag && key.value != 0.0);
  });
  return keys;
}

Improvement random_improvement(Draw& draw, const std::vector<ChipKey>& keys) {
  const double share = draw.share();
  if (share < 0.55) {
    const ChipKey& key = draw.pick(keys);
    return {key.key, {improved(key, draw.between(1.02, 4.0))}};
  }
  if (share < 0.65) {
    const std::string section(section_of(draw.pick(keys).key));
    return whole_group(draw, keys, section + ".*", [&](const ChipKey& key) { return section_of(key.key) == section; });
  }
  if (share < 0.75) {
    const auto& names = draw.pick(kTogether);
    return whole_group(
        draw, keys, fmt::format("{} and {} more", names.front(), names.size() - 1),
        [&](const ChipKey& key) { return std::find(names.begin(), names.end(), key.key) != names.end(); });
  }
  if (share < 0.8)
    return whole_group(draw, keys, "sm.rates.*", [&](const ChipKey& key) { return key.key.starts_with("sm.rates."); });
  Improvement result{"several keys", {}};
  for (std::int64_t i = draw.whole(2, 8); i > 0; --i) {
    const ChipKey& key = draw.pick(keys);
    const auto same = [&](const config::Override& change) { return change.key == "hardware." + key.key; };
    if (std::none_of(result.changes.begin(), result.changes.end(), same))
      result.changes.push_back(improved(key, draw.between(1.02, 4.0)));
  }
  return result;
}

}  // namespace

CaseResult better_chip(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "pairs", index);
  CaseResult result;
  for (int attempt = 0; attempt < 30; ++attempt) {
    Question question;
    question.engine = random_engine(draw, options.engine, false);
    question.hardware = draw.pick(hardware_names());
    question.settings = common_settings(draw, question.engine);
    if (draw.chance(0.25)) question.chip = random_chip(draw, question.hardware, 4, 4.0);
    const Improvement better = random_improvement(draw, keys_to_improve(question));
    if (options.tell) fmt::print(stderr, "{}\n", question.command());
    try {
      const Scenario before = question.load(), after = question.load_with(better.changes);
      const TimedStep was = timed(before, question.engine), now = timed(after, question.engine);
      result.compared.push_back(better.name);
      if (now.step <= was.step * kSlower) return result;
      const TimedStep was_of = timed(before, question.engine, true), now_of = timed(after, question.engine, true);
      std::string changes;
      for (const config::Override& change : better.changes)
        changes += fmt::format(" --set '{}={}'", change.key, change.value);
      const bool number = std::isfinite(now.step) && std::isfinite(was.step);
      result.findings.push_back({number ? "slower: " + most_grown(was_of, now_of) : "NaN", better.name,
                                 number ? now.step / was.step - 1.0 : 1.0,
                                 fmt::format("{:.4f} -> {:.4f} ms with{}\n      {}{}", 1e3 * was.step, 1e3 * now.step,
                                             changes, question.command(), what_grew(was_of, now_of))});
      return result;
    } catch (const UserError& error) {
      result.refused.emplace_back(error.what());
    }
  }
  return result;
}

}  // namespace ridgeline::invariants
