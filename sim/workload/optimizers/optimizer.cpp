#include "sim/workload/optimizers/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/units/user_error.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/adafactor.h"
#include "sim/workload/optimizers/adam.h"
#include "sim/workload/optimizers/bert_adam.h"
#include "sim/workload/optimizers/bits_and_bytes.h"
#include "sim/workload/optimizers/lamb.h"
#include "sim/workload/optimizers/lion.h"
#include "sim/workload/optimizers/muon.h"
#include "sim/workload/optimizers/schedule_free.h"
#include "sim/workload/optimizers/sgd.h"

namespace ridgeline::optimizers {

using eager::Dims;
using eager::Eager;
using eager::Parameters;
using eager::Tensor;

namespace {

class NoOptimizer final : public Optimizer {
 public:
  void step(Eager&, Parameters&, const Tensor&) override {}
};

}  // namespace

void with_those(Parameters& parameters, const std::function<bool(const eager::Parameter&)>& belongs,
                const std::function<void(Parameters&)>& use) {
  Parameters list;
  std::vector<eager::Parameter*> owners;
  for (auto& parameter : parameters) {
    if (!belongs(parameter)) continue;
    owners.push_back(&parameter);
    eager::Parameter& one = list.emplace_back();
    one.value = parameter.value;
    one.accumulate.layer = parameter.accumulate.layer;
    one.gradient = std::exchange(parameter.gradient, Tensor{});
    one.states = std::exchange(parameter.states, {});
  }
  if (list.empty()) return;
  use(list);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    owners[i]->gradient = std::exchange(list[i].gradient, Tensor{});
    owners[i]->states = std::exchange(list[i].states, {});
  }
}

void for_each_type(Parameters& parameters, const std::function<void(Parameters&)>& use) {
  std::vector<DType> types;
  for (const auto& parameter : parameters)
    if (std::find(types.begin(), types.end(), parameter.value.type) == types.end())
      types.push_back(parameter.value.type);
  if (types.size() < 2) return use(parameters);
  for (const DType type : types)
    with_those(
        parameters, [&](const eager::Parameter& parameter) { return parameter.value.type == type; }, use);
}

void Optimizer::update(Eager& eager, Parameters& parameters, const Tensor& overflow_flag) {
  for_each_type(parameters, [&](Parameters& of_type) { step(eager, of_type, overflow_flag); });
}

void Optimizer::clear_gradients(Eager& eager, Parameters& parameters, bool keep) {
  if (!keep) {
    eager.recorder.host(HostClass::per_parameter_zero_grad, static_cast<std::int64_t>(parameters.size()));
    for (auto& parameter : parameters) parameter.gradient = Tensor{};
    return;
  }
  for (auto& parameter : parameters) {
    const Tensor& gradient = parameter.gradient;
    if (!gradient.defined()) continue;
    eager.recorder.host(HostClass::optimizer_op);
    eager.recorder.op(Memset{gradient.elements() * bytes_of(gradient.type)}, {}, {&gradient});
  }
}

std::unique_ptr<Optimizer> make_optimizer(const TrainingDescription& training) {
  const auto implementation = training.optimizer.implementation;
  const int lists = training.foreach_adam_lists;
  BlockStates blocks{.block = training.eight_bit_block, .paged = training.optimizer.paged};
  const auto no_fused = [&](std::string_view name) {
    if (implementation == OptimizerImplementation::fused)
      throw UserError(fmt::format("training.optimizer: {} has no fused implementation; use foreach or for-loop", name));
  };
  switch (training.optimizer.kind) {
    case OptimizerKind::adamw:
      if (!training.optimizer.paged) return std::make_unique<Adam>(implementation, true, false, lists);
      blocks.quantized = false;
      return std::make_unique<BitsAndBytes>(blocks);
    case OptimizerKind::adam: return std::make_unique<Adam>(implementation, false, false, lists);
    case OptimizerKind::adamw_kahan:
      no_fused("adamw-kahan");
      return std::make_unique<Adam>(implementation, true, true, lists);
    case OptimizerKind::sgd: return std::make_unique<Sgd>(implementation, false);
    case OptimizerKind::sgd_momentum: return std::make_unique<Sgd>(implementation, true);
    case OptimizerKind::adafactor: no_fused("adafactor"); return std::make_unique<Adafactor>();
    case OptimizerKind::none: return std::make_unique<NoOptimizer>();
    case OptimizerKind::bert_adam: return std::make_unique<BertAdam>(training.clipping_style);
    case OptimizerKind::adamw_8bit: return std::make_unique<BitsAndBytes>(blocks);
    case OptimizerKind::lion_8bit: blocks.states = 1; return std::make_unique<BitsAndBytes>(blocks);
    case OptimizerKind::lion:
      if (!training.optimizer.of_bitsandbytes())
        return std::make_unique<Lion>(implementation == OptimizerImplementation::foreach);
      blocks.states = 1, blocks.quantized = false;
      return std::make_unique<BitsAndBytes>(blocks);
    case OptimizerKind::lamb:
      if (implementation != OptimizerImplementation::fused)
        throw UserError("training.optimizer: lamb is apex's FusedLAMB; use implementation: fused");
      return std::make_unique<Lamb>();
    case OptimizerKind::schedule_free_adamw:
      no_fused("schedule-free-adamw");
      return std::make_unique<ScheduleFree>(implementation == OptimizerImplementation::foreach);
    case OptimizerKind::muon: return std::make_unique<Muon>(implementation, lists);
  }
  throw UserError("training.optimizer: unknown optimizer");
}

std::shared_ptr<const std::vector<std::int64_t>> sizes_of(const Parameters& parameters) {
  auto sizes = std::make_shared<std::vector<std::int64_t>>();
  sizes->reserve(parameters.size());
  for (const auto& parameter : parameters) sizes->push_back(parameter.value.elements());
  return sizes;
}

TensorList values_of(const Parameters& parameters) {
  TensorList list;
  for (const auto& parameter : parameters) list.push_back(&parameter.value);
  return list;
}
TensorList gradients_of(const Parameters& parameters) {
  TensorList list;
  for (const auto& parameter : parameters) list.push_back(&parameter.gradient);
  return list;
}
TensorList states_of(const Parameters& parameters, std::size_t state) {
  TensorList list;
  for (const auto& parameter : parameters) list.push_back(&parameter.states.at(state));
  return list;
}
TensorList all_of(const std::vector<Tensor>& tensors) {
  TensorList list;
  for (const auto& tensor : tensors) list.push_back(&tensor);
  return list;
}

void foreach (Eager& eager, MultiTensorFunction function, DType type,
              const std::shared_ptr<const std::vector<std::int64_t>>& sizes, std::initializer_list<TensorList> lists,
              bool scalar_per_tensor) {
  TensorList operands;
  for (const TensorList& list : lists) operands.insert(operands.end(), list.begin(), list.end());
  // A parameter that took no gradient has no place in the lists, but its size is among them.
  const bool known = std::all_of(operands.begin(), operands.end(), [](const Tensor* t) { return t->defined(); });
  if (!known) operands.clear();
  eager.recorder.op(MultiTensor{function, type, sizes, scalar_per_tensor}, operands, {});
}

void read_on_host(Eager& eager, const Tensor& number) {
  eager.recorder.op(Copy{CopyKind::device_to_host, number.type, 1, 1, 1}, {&number}, {});
  eager.recorder.wait_for_gpu();
}

Tensor zero_state(Eager& eager, const Dims& sizes, DType type) {
  Tensor state = eager::aten::full(eager, sizes, type);
  eager.recorder.set_category(state.storage.id(), Category::optimizer_state);
  return state;
}

}  // namespace ridgeline::optimizers
