#include "sim/workload/families/split_layers.h"

#include "sim/workload/families/loss_parallel.h"
#include "sim/workload/families/megatron_functions.h"
#include "sim/workload/parallel/redistribute.h"

namespace ridgeline::families {

namespace aten = eager::aten;
namespace dtensor_ops = parallel::dtensor;

namespace {

/// One linear layer: transpose, two views, the product; backward as many and one more product.
constexpr int kLinearOperations = 5;

struct DispatchedBackward final : eager::Node {
  explicit DispatchedBackward(int operations) : Node(HostClass::dtensor_op_backward), count(operations) {}
  int count;
  void backward(Eager& eager, eager::Gradients& in, eager::Gradients& out) override {
    eager.recorder.host(HostClass::dtensor_op_backward, count - 1);
    out[0] = in[0];
  }
};

}  // namespace

std::int64_t SplitLayers::vocabulary(std::int64_t whole) const {
  // DTensor's shards are as torch.chunk cuts, and the first is the fullest.
  const std::int64_t ranks = training_.parallel.tensor;
  return dtensor() ? (whole + ranks - 1) / ranks : whole;
}

Tensor SplitLayers::dispatched(const Tensor& x, int count) {
  if (!dtensor()) return x;
  eager_.recorder.host(HostClass::dtensor_op, count);
  Tensor result = x.detached();
  if (eager_.needs_node({&x})) Eager::attach(result, eager_.node<DispatchedBackward>({&x}, count));
  return result;
}

Tensor SplitLayers::enter_module(const Tensor& x) {
  return dtensor() && cuts_sequence() ? dtensor_ops::gather_sequence(eager_, *ranks_, x) : enter_whole(x);
}

Tensor SplitLayers::enter(const Tensor& x) {
  return dtensor() && !training_.parallel.prepared_inputs ? x : enter_module(x);
}

Tensor SplitLayers::enter_whole(const Tensor& x) {
  if (ranks_ == nullptr) return x;
  return dtensor() ? dtensor_ops::replicate(eager_, *ranks_, x) : ranks_->enter(x);
}

Tensor SplitLayers::enter_layer(const Tensor& x) {
  return dtensor() && !training_.parallel.prepared_inputs ? enter_module(x) : x;
}

Tensor SplitLayers::column_linear(const Tensor& x, const Affine& layer) {
  if (!dtensor()) return linear(eager_, x, layer);
  return dispatched(linear(eager_, enter_layer(x), layer), kLinearOperations);
}

Tensor SplitLayers::partial_linear(const Tensor& x, const Affine& layer) {
  return dispatched(linear(eager_, x, layer), kLinearOperations);
}

Tensor SplitLayers::leave(const Tensor& partial) {
  if (ranks_ == nullptr) return partial;
  if (!dtensor()) return ranks_->leave(partial);
  return cuts_sequence() ? dtensor_ops::scatter_sequence(eager_, *ranks_, partial)
                         : dtensor_ops::add_up(eager_, *ranks_, partial);
}

Tensor SplitLayers::row_linear(const Tensor& x, const Affine& layer) {
  if (ranks_ == nullptr) return linear(eager_, x, layer);
  if (dtensor()) return leave(partial_linear(x, layer));
  Affine product = layer;
  product.bias = nullptr;
  const Tensor sum = ranks_->leave(linear(eager_, x, product));
  return layer.bias != nullptr ? add(eager_, sum, layer.bias->value) : sum;
}

Tensor SplitLayers::gather_columns(const Tensor& x, std::int64_t columns) {
  if (ranks_ == nullptr) return x;
  return dtensor() ? dtensor_ops::gather_columns(eager_, *ranks_, x, columns) : ranks_->gather_columns(x);
}

Tensor SplitLayers::own_columns(const Tensor& x) {
  if (ranks_ == nullptr) return x;
  return dtensor() ? dtensor_ops::own_columns(eager_, *ranks_, x) : ranks_->own_columns(x);
}

Tensor SplitLayers::whole_sequence(const Tensor& x) {
  return dtensor() && cuts_sequence() ? dtensor_ops::whole_sequence(eager_, *ranks_, x) : x;
}

Tensor SplitLayers::own_sequence(const Tensor& x) {
  return dtensor() && cuts_sequence() ? dtensor_ops::own_sequence(eager_, *ranks_, x) : x;
}

Tensor SplitLayers::embedding(const Tensor& tokens, const Affine& table, bool cut) {
  if (!dtensor()) return families::embedding(eager_, tokens, table);
  const Tensor rows = dispatched(megatron::rows_of_part(eager_, tokens, *table.weight), 1);
  return cut && cuts_sequence() ? dtensor_ops::scatter_sequence(eager_, *ranks_, rows)
                                : dtensor_ops::add_up(eager_, *ranks_, rows);
}

Tensor SplitLayers::output_projection(const Tensor& x, const Affine& layer, bool inside) {
  if (!dtensor()) return linear(eager_, x, layer);
  const Tensor whole = cuts_sequence() && !inside ? dtensor_ops::gather_sequence(eager_, *ranks_, x)
                                                  : dtensor_ops::replicate(eager_, *ranks_, x);
  return dispatched(linear(eager_, whole, layer), kLinearOperations);
}

Tensor SplitLayers::split_loss(const Tensor& logits, const Tensor& targets) {
  return loss_parallel(eager_, *ranks_, logits, targets);
}

void SplitLayers::add_up_gradients(eager::Parameters& updated) {
  if (ranks_ == nullptr || training_.parallel.megatron()) return;
  for (eager::Parameter& parameter : updated) {
    if (!parameter.partial_gradient || !parameter.gradient.defined()) continue;
    if (dtensor()) parameter.gradient = dtensor_ops::sum_of_ranks(eager_, *ranks_, parameter.gradient);
    else ranks_->all_reduce(parameter.gradient);
  }
}

}  // namespace ridgeline::families
