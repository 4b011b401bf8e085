#include "sim/scenario/read_experts.h"

#include <fmt/format.h>

#include "sim/workload/composition.h"

namespace ridgeline {

using config::Mapping;
using config::Value;

namespace {

constexpr double kMostCapacity = 1024.0;

std::string name_of(const ModelDescription& model) { return model.name.empty() ? "the model" : model.name; }

}  // namespace

void read_experts(const Mapping& mapping, ParallelDescription& result) {
  const Value expert = mapping["expert"], capacity = mapping["expert_capacity"];
  result.expert = expert.integer({1, 1 << 20}, 1);
  if (result.expert == 1) {
    if (capacity.exists()) capacity.fail("goes with expert: of two ranks or more");
    return;
  }
  if (result.megatron())
    expert.fail("Megatron-LM's layers of experts are not modelled: expected 1, or framework: torch");
  if (result.split > 1) expert.fail("one process with its layers on several devices (split) goes with no other ranks");
  if (result.strategy != DataStrategy::ddp && result.strategy != DataStrategy::fsdp &&
      result.strategy != DataStrategy::zero2)
    mapping["strategy"].fail("with experts over ranks: expected ddp, fsdp or zero2");
  if (result.gradient_ranks() % result.expert != 0)
    expert.fail(fmt::format("experts are spread over {}parallel ranks: {} does not divide the {} of them",
                            result.context > 1 ? "data and context " : "data ", result.expert,
                            result.gradient_ranks()));
  if (!capacity.is("dropless")) result.expert_capacity = capacity.number({0.01, kMostCapacity}, 0.0);
}

void check_experts(const ModelDescription& model, const TrainingDescription& training, const Value& section) {
  const ParallelDescription& how = training.parallel;
  if (how.expert == 1) return;
  const Value key = section["expert"];
  const std::int64_t experts = model.composition.given() ? model.composition->stack.experts : 0;
  if (experts == 0) key.fail(fmt::format("{} has no experts: expected 1", name_of(model)));
  if (experts % how.expert != 0)
    key.fail(fmt::format("{} does not divide the {} experts of {}: allowed are divisors of {}", how.expert, experts,
                         name_of(model), experts));
  if (training.precision == Precision::amp_fp16 || training.precision == Precision::apex_o2)
    key.fail(
        "an overflow of fp16 is not agreed on between ranks of experts: expected training.precision: amp-bf16, "
        "bf16, tf32 or fp32");
}

}  // namespace ridgeline
