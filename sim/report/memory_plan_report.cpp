#include "sim/report/memory_plan_report.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/report/text/memory_words.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

std::string words_of_range(const TreatedBlocks& blocks) {
  return blocks.first == blocks.last ? fmt::format("{}", blocks.first)
                                     : fmt::format("{}-{}", blocks.first, blocks.last);
}

double percent_slower(const MemoryPlan& plan) { return 100.0 * (ratio(plan.time, plan.time_before) - 1.0); }

}  // namespace

std::vector<std::string> memory_plan_keys(const MemoryPlan& plan) {
  std::map<std::string, std::string> blocks;
  for (const TreatedBlocks& treated : plan.treated)
    for (const auto& [name, part] : kBlockParts) {
      if ((treated.parts & static_cast<std::uint8_t>(part)) == 0) continue;
      std::string& list = blocks[std::string(name)];
      if (!list.empty()) list += ", ";
      list += words_of_range(treated);
    }
  std::vector<std::string> keys;
  for (const auto& [name, list] : blocks)
    keys.push_back(fmt::format("training.activation_checkpointing.{}={}", name,
                               list.find(',') == std::string::npos ? list : "[" + list + "]"));
  return keys;
}

std::string memory_plan_text(const Scenario& scenario, const MemoryPlan& plan) {
  std::string out = fmt::format("{}\n{} {}: needs {}\n\n", scenario.title, plan.fits ? "FITS" : "DOES NOT FIT",
                                gib(plan.budget), gib(plan.needed));
  const auto row = [&](std::string_view label, const std::string& words) {
    out += fmt::format("  {:<14}{}\n", label, words);
  };
  row("all kept", fmt::format("needs {}, {} a step", gib(plan.needed_before), to_string(plan.time_before)));
  row("chosen",
      fmt::format("needs {}, {} a step ({:+.1f} %)", gib(plan.needed), to_string(plan.time), percent_slower(plan)));
  std::int64_t next = 0;
  for (const TreatedBlocks& blocks : plan.treated) {
    const bool offloads = (blocks.parts & static_cast<std::uint8_t>(BlockPart::offload)) != 0;
    row(offloads ? "on the host" : "runs again",
        fmt::format("blocks {}: {}", words_of_range(blocks), words_of_parts(blocks.parts)));
    next = blocks.last + 1;
  }
  if (next < plan.blocks) row("kept", fmt::format("blocks {}", words_of_range({next, plan.blocks - 1, 0})));
  if (!plan.options.empty()) out += fmt::format("\n  {:<24}{:>16}{:>16}\n", "of one block", "saves", "costs");
  for (const BlockOption& option : plan.options)
    out +=
        fmt::format("  {:<24}{:>16}{:>16}\n", words_of_parts(option.parts),
                    fmt::format("{:.1f} MiB", static_cast<double>(option.saved) / (1 << 20)), to_string(option.cost));
  for (const std::string& why : plan.refused) out += fmt::format("  not tried     {}\n", why);
  if (!plan.treated.empty()) out += "\n";
  for (const std::string& key : memory_plan_keys(plan)) out += fmt::format("  --set {}\n", key);
  out +=
      fmt::format("\n  {} predictions; time and memory of the choice are predicted, not estimated\n", plan.predictions);
  return out;
}

nlohmann::ordered_json memory_plan_json(const MemoryPlan& plan) {
  nlohmann::ordered_json treated = nlohmann::ordered_json::array(), options = nlohmann::ordered_json::array();
  for (const TreatedBlocks& blocks : plan.treated)
    treated.push_back({{"first", blocks.first}, {"last", blocks.last}, {"parts", words_of_parts(blocks.parts)}});
  for (const BlockOption& option : plan.options)
    options.push_back({{"parts", words_of_parts(option.parts)},
                       {"saved_bytes_a_block", option.saved},
                       {"cost_s_a_block", option.cost.value()}});
  return {{"budget_bytes", plan.budget},
          {"fits", plan.fits},
          {"blocks", plan.blocks},
          {"needed_before_bytes", plan.needed_before},
          {"time_before_s", plan.time_before.value()},
          {"needed_bytes", plan.needed},
          {"time_s", plan.time.value()},
          {"treated", treated},
          {"options", options},
          {"set", memory_plan_keys(plan)},
          {"predictions", plan.predictions}};
}

}  // namespace ridgeline
