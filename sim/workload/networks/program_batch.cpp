// Inputs of a program: what its script feeds it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/networks/evaluate_expression.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

/// Sizes of the model, and the batch and length of a training.
class InputSizes final : public ExpressionEvaluator {
 public:
  InputSizes(const ProgramModel& model, std::int64_t batch, std::int64_t length)
      : ExpressionEvaluator(model.program), model_(model), batch_(batch), length_(length) {}

 protected:
  ProgramValue value_of(const Expression& name) override {
    if (name.scope == NameScope::size) return model_.sizes[static_cast<std::size_t>(name.slot)];
    if (name.text == "batch") return batch_;
    if (name.text == "length") return length_;
    fail(name.place, fmt::format("'{}' is not known before the network runs", name.text));
  }

 private:
  const ProgramModel& model_;
  std::int64_t batch_, length_;
};

}  // namespace

std::int64_t length_of(const ProgramModel& model) {
  InputSizes sizes(model, 1, 1);
  const Expression& said = model.program.length.front();
  const std::int64_t length = sizes.whole(said);
  if (length < 1) model.program.fail(said.place, fmt::format("a length of {}", length));
  return length;
}

families::Batch make_program_batch(eager::Eager& eager, const ProgramModel& model,
                                   const TrainingDescription& training) {
  const std::int64_t rows = training.micro_batch * (training.parallel.pipelined() ? training.gradient_accumulation : 1);
  InputSizes sizes(model, rows, model.fixed_length > 0 ? model.fixed_length : training.tokens_of_rank());
  families::Batch batch;
  bool first = true;
  std::vector<std::string> names;
  std::vector<Tensor> all;
  const auto made_before = [&](const std::string& name) {
    return all[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  };
  for (const ProgramInput& input : model.program.inputs) {
    if (!input.same_as.empty()) {
      batch.targets.push_back(made_before(input.same_as));
      continue;
    }
    Dims dims;
    double elements = 1.0;
    if (input.sizes.size() > Dims::kMost)
      model.program.fail(input.place, fmt::format("more than {} dimensions", Dims::kMost));
    for (const Expression& size : input.sizes) {
      const std::int64_t side = sizes.whole(size);
      elements *= static_cast<double>(side);
      constexpr double kMost = 1e13;
      if (side < 1 || elements > kMost) model.program.fail(size.place, fmt::format("a dimension of {}", side));
      dims.push_back(side);
    }
    Tensor made = eager.empty(dims, input.integers ? DType::int64 : families::type_of_parameters(training));
    eager.recorder.set_category(made.storage.id(), Category::inputs);
    names.push_back(input.name);
    all.push_back(made);
    if (input.target) batch.targets.push_back(std::move(made));
    else if (std::exchange(first, false)) batch.tokens = std::move(made);
    else batch.others.push_back(std::move(made));
  }
  return batch;
}

}  // namespace ridgeline::networks
