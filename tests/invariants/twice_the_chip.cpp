#include <fmt/format.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "tests/invariants/chip_keys.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/timed_step.h"

namespace ridgeline::invariants {
namespace {

constexpr double kMostOff = 0.03;

void settings_of(Draw& draw, Overrides& out) {
  const auto set = [&](const char* key, std::string value) { out.push_back({key, std::move(value), ""}); };
  set("training.micro_batch", fmt::format("{}", draw.size(1, 32)));
  set("training.sequence_length", fmt::format("{}", draw.pick<int>({64, 128, 256, 512})));
  set("training.precision", draw.pick<const char*>({"fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"}));
  set("training.attention", draw.pick<const char*>({"eager", "sdpa", "efficient", "math"}));
  set("training.optimizer.implementation", draw.pick<const char*>({"foreach", "fused"}));
  if (draw.chance(0.25)) set("training.compile", "true");
  if (draw.chance(0.25)) set("training.cuda_graphs", "true");
}

}  // namespace

// Case by case through every GPU and every shipped network, with other settings each time.
CaseResult twice_the_chip(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "twice", index);
  CaseResult result;
  const std::vector<std::string> gpus = hardware_names();
  for (int attempt = 0; attempt < 30; ++attempt) {
    Question question;
    question.engine = random_engine(draw, options.engine, false);
    question.hardware = gpus[index % gpus.size()];
    question.settings = shipped_network(index / gpus.size(), question.engine == "simulate" ? 1 : 2);
    settings_of(draw, question.settings);
    if (question.engine == "simulate") question.settings.push_back({"training.micro_batch", "2", ""});
    const Overrides changes = twice_as_fast(question.hardware);
    try {
      const Scenario before = question.load();
      Scenario after = question.load_with(changes);
      after.host.scale *= 0.5;
      after.host.graph_launch = after.host.graph_launch * 0.5;
      const TimedStep was = timed(before, question.engine), now = timed(after, question.engine);
      result.compared.push_back(question.hardware);
      const double off = std::max(std::abs(2.0 * now.busy / was.busy - 1.0), std::abs(2.0 * now.step / was.step - 1.0));
      if (off <= kMostOff) return result;
      TimedStep half = timed(before, question.engine, true), now_of = timed(after, question.engine, true);
      for (auto& [op, time] : half.ops) time.seconds *= 0.5;
      half.step *= 0.5;
      const bool slow = now.busy > half.busy;
      result.findings.push_back(
          {!std::isfinite(off) ? "NaN" : "not half: " + (slow ? most_grown(half, now_of) : most_grown(now_of, half)),
           question.hardware, off,
           fmt::format("busy {:.4f} -> {:.4f} ms, step {:.4f} -> {:.4f} ms\n      {}{}", 1e3 * was.busy, 1e3 * now.busy,
                       1e3 * was.step, 1e3 * now.step, question.command(),
                       slow ? what_grew(half, now_of) : what_grew(now_of, half))});
      return result;
    } catch (const UserError& error) {
      result.refused.emplace_back(error.what());
    }
  }
  return result;
}

}  // namespace ridgeline::invariants
