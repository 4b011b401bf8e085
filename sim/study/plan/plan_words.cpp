#include <fmt/format.h>

#include "sim/study/plan/plan.h"

namespace ridgeline {

std::string split_words(const PlanCandidate& c) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (c.data > 1 || (c.tensor == 1 && c.pipeline == 1 && c.context == 1))
    add(fmt::format("data {}{}", c.data, c.data > 1 && !c.strategy.empty() ? " " + c.strategy : ""));
  if (c.replicate > 1) add(fmt::format("{} replicas", c.replicate));
  if (c.tensor > 1) add(fmt::format("tensor {}{}", c.tensor, c.tensor_style.empty() ? "" : " " + c.tensor_style));
  if (c.sequence_parallel) add("sequence");
  if (c.pipeline > 1) {
    add(fmt::format("pipeline {}{}", c.pipeline, c.schedule.empty() ? "" : " " + c.schedule));
    if (c.virtual_stages > 0) add(fmt::format("{} stages a rank", c.virtual_stages));
  }
  if (c.context > 1) add(fmt::format("context {}", c.context));
  if (c.expert > 1) add(fmt::format("expert {}", c.expert));
  return out;
}

std::string step_words(const PlanCandidate& c) {
  return fmt::format("{} x {}{}", c.accumulation, c.micro_batch,
                     c.recompute.empty() || c.recompute == "none" ? "" : ", recompute " + c.recompute);
}

}  // namespace ridgeline
