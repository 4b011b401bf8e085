#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/answer/step_run.h"
#include "sim/network/load_cluster.h"
#include "tests/invariants/checks.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {
namespace {

config::Override change(std::string key, std::string value) { return {std::move(key), std::move(value), ""}; }

/// Numbers of a cluster; `scaled` makes each better.
enum class LinkNumber : std::uint8_t {
  link_rate,
  link_efficiency,
  pcie_rate,
  host_rate,
  nic_rate,
  nic_efficiency,
  nic_latency,
  oversubscription,
  count
};

config::Override scaled(const Cluster& c, LinkNumber number, double better) {
  const auto rate = [&](const char* key, double value) { return change(key, fmt::format("{} B/s", value)); };
  const auto share = [&](const char* key, double value) {
    return change(key, fmt::format("{}", std::min(1.0, value)));
  };
  switch (number) {
    case LinkNumber::link_rate: return rate("cluster.links.rate", c.links.rate.value() * better);
    case LinkNumber::link_efficiency: return share("cluster.links.efficiency", c.links.efficiency * better);
    case LinkNumber::pcie_rate: return rate("cluster.pcie.rate", c.pcie.rate.value() * better);
    case LinkNumber::host_rate: return rate("cluster.pcie.host", c.pcie.host.value() * better);
    case LinkNumber::nic_rate: return rate("cluster.nics.rate", c.nics.rate.value() * better);
    case LinkNumber::nic_efficiency: return share("cluster.nics.efficiency", c.nics.efficiency * better);
    case LinkNumber::nic_latency:
      return change("cluster.nics.latency", fmt::format("{} s", c.nics.latency.value() / better));
    case LinkNumber::oversubscription:
    case LinkNumber::count: break;
  }
  return change("cluster.oversubscription", fmt::format("{}", std::max(1.0, c.oversubscription / better)));
}

/// A divisor of `left`, by which that is divided.
std::int64_t some_of(Draw& draw, std::int64_t& left) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t n = 1; n <= left; ++n)
    if (left % n == 0) divisors.push_back(n);
  const std::int64_t taken = draw.pick(divisors);
  left /= taken;
  return taken;
}

/// An inline mapping under construction.
class Mapping {
 public:
  explicit Mapping(Draw& draw) : draw_(draw) {}
  void set(const char* key, const auto& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
  }
  void maybe(double probability, const char* key, std::initializer_list<const char*> values) {
    if (draw_.chance(probability)) set(key, draw_.pick<const char*>(values));
  }
  [[nodiscard]] std::string text() const { return "{" + text_ + "}"; }

 private:
  Draw& draw_;
  std::string text_;
};

/// DeepSpeed's stages of ZeRO over all GPUs.
std::string random_zero(Draw& draw, std::int64_t gpus) {
  Mapping way(draw), stage(draw);
  way.set("framework", "deepspeed");
  way.set("data", gpus);
  const std::string_view name = draw.pick<const char*>({"zero1", "zero2", "zero3", "zero3"});
  way.set("strategy", name);
  stage.maybe(0.5, "reduce_bucket_size", {"1", "1e6", "5e7", "5e8"});
  stage.maybe(0.3, "overlap_comm", {"true", "false"});
  stage.maybe(0.2, "contiguous_gradients", {"true", "false"});
  stage.maybe(0.2, "reduce_scatter", {"true", "false"});
  if (name == "zero3") {
    stage.maybe(0.4, "stage3_prefetch_bucket_size", {"0", "1e6", "5e7"});
    stage.maybe(0.4, "stage3_param_persistence_threshold", {"0", "1e4", "1e6"});
    stage.maybe(0.4, "stage3_max_live_parameters", {"0", "1e7", "1e9"});
    stage.maybe(0.4, "stage3_max_reuse_distance", {"0", "1e6", "1e9"});
    stage.maybe(0.3, "sub_group_size", {"1e5", "1e7", "1e9"});
  } else {
    stage.maybe(0.2, "use_multi_rank_bucket_allreduce", {"true", "false"});
  }
  if (draw.chance(0.7)) way.set("zero_optimization", stage.text());
  return way.text();
}

std::string random_parallel(Draw& draw, std::int64_t gpus) {
  Mapping way(draw);
  const auto set = [&](const char* key, const auto& value) { way.set(key, value); };
  const auto maybe = [&](double probability, const char* key, std::initializer_list<const char*> values) {
    way.maybe(probability, key, values);
  };
  std::int64_t left = gpus;
  const bool megatron = draw.chance(0.15);
  if (megatron) set("framework", "megatron");
  if (draw.chance(0.3)) {
    const std::int64_t tensor = some_of(draw, left);
    set("tensor", tensor);
    if (tensor > 1 && !megatron) maybe(0.8, "tensor_style", {"by-hand"});
    if (tensor > 1) maybe(0.2, "sequence_parallel", {"true"});
    if (tensor > 1) maybe(0.1, "loss_parallel", {"true"});
    if (tensor > 1) maybe(0.1, "prepared_inputs", {"true"});
  }
  if (draw.chance(0.25)) {
    const std::int64_t stages = some_of(draw, left);
    set("pipeline", stages);
    if (stages > 1) {
      const std::string_view schedule =
          draw.pick<const char*>({"gpipe", "1f1b", "1f1b", "interleaved", "zb1p", "zbv", "interleaved-zero-bubble"});
      set("schedule", schedule);
      if (schedule.starts_with("interleaved")) set("virtual_stages", draw.pick<std::int64_t>({2, 2, 3}));
    }
  }
  if (draw.chance(0.15)) {
    set("context", some_of(draw, left));
    maybe(0.3, "rotate_method", {"allgather", "alltoall"});
  }
  if (left == gpus && !megatron && draw.chance(0.05)) {
    set("split", left);
    maybe(0.5, "pieces", {"2", "4"});
    return way.text();
  }
  set("data", left);
  if (draw.chance(0.2)) {
    std::int64_t of = left;
    set("expert", some_of(draw, of));
    maybe(0.5, "expert_capacity", {"1", "1.25", "2", "dropless"});
  }
  if (left == 1 || megatron) return way.text();
  const std::string_view name =
      draw.pick<const char*>({"ddp", "ddp", "zero1", "zero2", "fsdp", "fsdp", "hsdp", "fsdp1", "dataparallel"});
  set("strategy", name);
  if (name == "hsdp") set("replicate", 2);
  if (name == "ddp") {
    maybe(0.2, "bucket_cap", {"1 MiB", "100 MiB"});
    maybe(0.2, "gradient_as_bucket_view", {"true"});
    maybe(0.1, "compression", {"fp16", "bf16"});
    maybe(0.1, "static_graph", {"true"});
    maybe(0.1, "find_unused_parameters", {"true"});
    maybe(0.15, "broadcast_buffers", {"true", "false"});
  }
  if (name == "zero1") maybe(0.3, "parameters_as_bucket_view", {"true"});
  if (name == "fsdp1") maybe(0.5, "sharding", {"full", "gradients"});
  if (name == "fsdp" || name == "hsdp") maybe(0.2, "reshard_after_forward", {"true", "false", "2"});
  if (name == "fsdp" || name == "hsdp" || name == "zero2" || name == "fsdp1") {
    maybe(0.2, "parameter_type", {"bf16", "fp16"});
    maybe(0.2, "reduce_type", {"fp32"});
    maybe(0.1, "wrap", {"2", "model"});
  }
  if (left == gpus && (name == "fsdp" || name == "hsdp" || name == "zero2")) maybe(0.25, "offload", {"true"});
  maybe(0.2, "no_sync", {"true", "false"});
  return way.text();
}

/// What the ways of some wrappers ask of the rest of the training: without it, nearly all such questions are refused.
void make_suitable(Overrides& settings, Draw& draw, const std::string& parallel) {
  const bool deepspeed = parallel.find("deepspeed") != parallel.npos,
             offload = parallel.find("offload") != parallel.npos;
  if (!deepspeed && !offload) return;
  std::erase_if(settings, [&](const config::Override& o) {
    return o.key == "training.optimizer" || o.key == "training.precision" || o.key == "training.activation_offload" ||
           o.key == (deepspeed ? "training.compile" : "training.gradient_clipping");
  });
  settings.push_back(change("training.precision",
                            draw.pick<const char*>({"fp32", "tf32", "amp-bf16", deepspeed ? "amp-fp16" : "bf16"})));
  settings.push_back(change(
      "training.optimizer",
      draw.pick<const char*>({"{name: adamw}", "{name: adamw, implementation: foreach}",
                              "{name: adam, implementation: fused}", deepspeed ? "{name: sgd}" : "{name: adam}"})));
}

/// A network of a few layers, over the GPUs of a shipped cluster or of several of its nodes.
Question random_question(Draw& draw) {
  Question question;
  const std::string name = draw.pick(cluster_names());
  const Cluster shipped = load_cluster(name, {});
  question.settings = common_settings(draw, "analytic");
  std::erase_if(question.settings,
                [](const config::Override& o) { return o.key == "training.cuda_graphs" || (o.key == "model.layers"); });
  question.settings.push_back(change("cluster", name));
  std::int64_t gpus = shipped.gpus;
  if (shipped.nics.count > 0 && draw.chance(0.5)) {
    const std::int64_t nodes = draw.whole(2, 9);
    question.settings.push_back(change("cluster.nodes", fmt::format("{}", nodes)));
    gpus *= nodes;
  }
  if (draw.chance(0.3))
    question.settings.push_back(change("training.gradient_accumulation", fmt::format("{}", draw.whole(1, 9))));
  const std::string parallel = draw.chance(0.12) ? random_zero(draw, gpus) : random_parallel(draw, gpus);
  make_suitable(question.settings, draw, parallel);
  question.settings.push_back(change("training.parallel", parallel));
  if (draw.chance(0.5))
    question.chip.push_back(
        scaled(shipped, static_cast<LinkNumber>(draw.whole(0, static_cast<std::int64_t>(LinkNumber::count) - 1)),
               draw.between(0.1, 10.0)));
  return question;
}

}  // namespace

CaseResult several_gpus(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "gpus", index);
  auto number = LinkNumber::count;
  double factor = 1.0;
  const auto drawn = [&] {
    Question question = random_question(draw);
    number = static_cast<LinkNumber>(draw.whole(0, static_cast<std::int64_t>(LinkNumber::count) - 1));
    factor = draw.between(1.02, 4.0);
    return question;
  };
  return first_answered(options, 60, drawn, [&](const Question& question, CaseResult& result) {
    Session session;
    const Scenario scenario = question.load();
    const StepRun run(session, scenario, question.engine);
    static_cast<void>(run.prediction());
    result.compared.emplace_back("step");
    check_answer(run, question, result);
    const config::Override better = scaled(*scenario.cluster, number, factor);
    const StepRun faster(session, question.load_with({better}), question.engine);
    const double was = run.prediction().step.time.value(), now = faster.prediction().step.time.value();
    result.compared.push_back(better.key);
    if (now > was * kSlower)
      result.findings.push_back({"slower with better links", better.key, now / was - 1.0,
                                 fmt::format("{:.4f} -> {:.4f} ms with {}={}\n      {}", 1e3 * was, 1e3 * now,
                                             better.key, better.value, question.command())});
  });
}

}  // namespace ridgeline::invariants
