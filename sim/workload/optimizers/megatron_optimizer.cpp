#include "sim/workload/optimizers/megatron_optimizer.h"

#include <algorithm>
#include <numeric>

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// A part of `buffer` with these sizes.
Tensor part_of(const Tensor& buffer, const eager::Dims& sizes) {
  Tensor part = buffer.detached();
  part.sizes = sizes;
  part.strides = eager::contiguous_strides(sizes);
  part.view = true;
  return part;
}

}  // namespace

MegatronOptimizer::MegatronOptimizer(Eager& eager, Parameters& parameters, const TrainingDescription& training,
                                     parallel::TensorParallel* tensor, std::vector<std::size_t> repeated,
                                     std::int64_t shared_table)
    : eager_(eager),
      parameters_(parameters),
      training_(training),
      tensor_(tensor),
      repeated_(std::move(repeated)),
      shared_table_(shared_table) {
  const std::int64_t ranks = training.parallel.data;
  if (ranks > 1) data_.emplace(eager, GroupKind::data, ranks, "data parallel collectives");
  if (training.parallel.pipelined()) {
    model_.emplace(eager, GroupKind::model, training.parallel.tensor * training.parallel.pipeline,
                   "collectives of all parts of the network");
    if (shared_table > 0) tables_.emplace(eager, GroupKind::embedding, 2, "sum of the token tables");
  }
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters) elements += parameter.value.elements();
  const std::int64_t padded = (elements + ranks - 1) / ranks * ranks;
  const DType type = parameters.front().value.type;
  buffer_ = eager.empty({padded}, type == DType::bf16 && copies() ? DType::fp32 : type);
  eager.recorder.set_category(buffer_.storage.id(), Category::gradients);
  if (distributed()) {
    values_ = eager.empty({padded}, type);
    eager.recorder.set_category(values_.storage.id(), Category::weights);
    for (Parameter& parameter : parameters) parameter.value.storage = values_.storage;
  }
  make_mains();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].after_accumulate = [this, i] { gradient_arrived(i); };
}

void MegatronOptimizer::make_mains() {
  // The buffer holds parameters from the last to the first; the share of the first rank begins with the last.
  const std::int64_t share = buffer_.elements() / training_.parallel.data;
  std::int64_t left = distributed() ? share : buffer_.elements();
  for (std::size_t n = parameters_.size(); n-- > 0 && left > 0;) {
    const std::int64_t elements = std::min(left, parameters_[n].value.elements());
    pieces_.push_back({n, elements});
    left -= elements;
  }
  std::reverse(pieces_.begin(), pieces_.end());
  for (const Piece& piece : pieces_) {
    const Tensor& value = parameters_[piece.parameter].value;
    Parameter& main = mains_.emplace_back();
    const eager::Dims sizes = piece.elements == value.elements() ? value.sizes : eager::Dims{piece.elements};
    if (!copies()) {
      // Values in 16 bits have states in fp32: 22 bytes are moved for each, counted as the 28 of a list in fp32.
      main.value = part_of(value, sizes);
      main.value.type = DType::fp32;
      continue;
    }
    main.value = eager_.empty(sizes, DType::fp32);
    eager_.recorder.set_category(main.value.storage.id(), Category::optimizer_state);
    eager_.recorder.set_layer_like(main.value.storage.id(), value.storage.id());
  }
}

void MegatronOptimizer::begin_step() {
  eager_.recorder.host(HostClass::optimizer_op);
  aten::pointwise(eager_, PointwiseFunction::fill, {}, buffer_);
}

void MegatronOptimizer::gradient_arrived(std::size_t parameter) {
  eager_.recorder.host(HostClass::main_gradient_hook);
  Tensor& gradient = parameters_[parameter].gradient;
  aten::add_in_place(eager_, part_of(buffer_, gradient.sizes), gradient);
  gradient = Tensor{};
}

void MegatronOptimizer::average_loss(const Tensor& loss) {
  eager_.recorder.host(HostClass::pointwise, 2);
  const Tensor copy = eager_.empty({1}, DType::fp32);
  eager_.recorder.op(Copy{CopyKind::contiguous, DType::fp32, 1, 1, 1}, {&loss}, {&copy});
  if (data_) data_->run(CollectiveKind::all_reduce, copy.type, copy.bytes(), copy, copy);
  const Tensor mean = eager_.empty({1}, DType::fp32);
  aten::pointwise(eager_, PointwiseFunction::divide, {&copy}, mean);
}

void MegatronOptimizer::add_up_repeated() {
  if (tensor_ == nullptr || !training_.parallel.sequence_parallel || repeated_.empty()) return;
  std::int64_t elements = 0;
  for (const std::size_t i : repeated_) elements += parameters_[i].value.elements();
  eager_.recorder.host(HostClass::optimizer_op, static_cast<std::int64_t>(repeated_.size()) + 1);
  const Tensor flat = eager_.empty({elements}, buffer_.type);
  const auto copy = [&](const Tensor& from, const Tensor& to, std::int64_t count) {
    eager_.recorder.op(Copy{CopyKind::contiguous, buffer_.type, 1, count, 1}, {&from}, {&to});
  };
  copy(buffer_, flat, elements);
  tensor_->all_reduce(flat);
  for (const std::size_t i : repeated_) copy(flat, buffer_, parameters_[i].value.elements());
}

/// In place, in the buffer.
void MegatronOptimizer::add_up_shared_table() {
  if (!tables_) return;
  const Tensor table = part_of(buffer_, {shared_table_});
  tables_->run(CollectiveKind::all_reduce, table.type, table.bytes(), table, table);
}

void MegatronOptimizer::exchange() {
  add_up_repeated();
  if (distributed()) add_up_shared_table();
  if (data_) {
    eager_.recorder.host(HostClass::optimizer_op);
    aten::pointwise(eager_, PointwiseFunction::divide, {&buffer_}, buffer_);
    data_->run(distributed() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, buffer_.type,
               buffer_.bytes(), buffer_, buffer_);
  }
  if (!distributed()) add_up_shared_table();
}

void MegatronOptimizer::take_gradients() {
  for (Parameter& main : mains_) {
    const Tensor part = part_of(buffer_, main.value.sizes);
    if (buffer_.type == DType::fp32 || !copies()) {
      main.gradient = part;
      continue;
    }
    eager_.recorder.host(HostClass::optimizer_op);
    main.gradient = eager_.empty(main.value.sizes, DType::fp32);
    eager_.recorder.set_category(main.gradient.storage.id(), Category::gradients);
    aten::pointwise(eager_, PointwiseFunction::cast, {&part}, main.gradient);
  }
}

void MegatronOptimizer::agree(const Tensor& number) {
  if (model_) model_->run(CollectiveKind::all_reduce, number.type, number.bytes(), number, number);
  else if (tensor_ != nullptr) tensor_->all_reduce(number);
  if (distributed()) data_->run(CollectiveKind::all_reduce, number.type, number.bytes(), number, number);
}

void MegatronOptimizer::look_for_overflow() {
  if (parameters_.front().value.type != DType::fp16 || !copies()) return;
  eager_.recorder.host(HostClass::unscale_fixed);
  eager_.recorder.host(HostClass::per_parameter_unscale, static_cast<std::int64_t>(mains_.size()));
  const Tensor found = aten::full(eager_, {1}, DType::fp32);
  foreach (eager_, MultiTensorFunction::unscale, DType::fp32, sizes_of(mains_), {gradients_of(mains_)})
    ;
  agree(found);
  read_on_host(eager_, found);
}

void MegatronOptimizer::clip() {
  if (!training_.gradient_clipping) return;
  eager_.recorder.phase = Phase::clipping;
  eager_.recorder.host(HostClass::optimizer_op, 6);
  eager_.recorder.host(HostClass::per_parameter_clip, static_cast<std::int64_t>(mains_.size()));
  const Tensor norm = aten::full(eager_, {1}, DType::fp32);
  foreach (eager_, MultiTensorFunction::norm, DType::fp32, sizes_of(mains_), {gradients_of(mains_)})
    ;
  agree(norm);
  read_on_host(eager_, norm);
  foreach (eager_, MultiTensorFunction::mul, DType::fp32, sizes_of(mains_), {gradients_of(mains_)})
    ;
  eager_.recorder.phase = Phase::optimizer;
}

void MegatronOptimizer::return_values() {
  if (copies()) {
    TensorList values;
    for (const Piece& piece : pieces_) values.push_back(&parameters_[piece.parameter].value);
    // A kernel reads 4 bytes and writes 2; counted as a copy of fp32, which moves 8.
    foreach (eager_, MultiTensorFunction::copy, DType::fp32, sizes_of(mains_), {values_of(mains_), values})
      ;
  }
  for (Parameter& main : mains_) main.gradient = Tensor{};
  if (distributed()) data_->run(CollectiveKind::all_gather, values_.type, values_.bytes(), values_, values_);
}

void MegatronOptimizer::step(Optimizer& optimizer) {
  eager_.recorder.phase = Phase::optimizer;
  eager_.gradients_enabled = false;
  exchange();
  take_gradients();
  look_for_overflow();
  clip();
  const bool first = mains_.front().states.empty();
  optimizer.step(eager_, mains_, Tensor{});
  if (first)
    for (std::size_t i = 0; i < mains_.size(); ++i)
      for (const Tensor& state : mains_[i].states)
        eager_.recorder.set_layer_like(state.storage.id(), parameters_[pieces_[i].parameter].value.storage.id());
  return_values();
  eager_.gradients_enabled = true;
}

}  // namespace ridgeline::optimizers
