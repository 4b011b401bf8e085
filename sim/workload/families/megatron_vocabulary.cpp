// Token table and loss of Megatron-LM, split along the vocabulary.
#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families::megatron {

namespace aten = eager::aten;
using eager::Gradients;
using eager::Node;
using eager::SavedTensor;
using Function = PointwiseFunction;

namespace {

Tensor number_each(Eager& eager, Function function, std::initializer_list<const Tensor*> inputs, const Dims& sizes,
                   DType type) {
  Tensor result = eager.empty(sizes, type);
  aten::pointwise(eager, function, inputs, result);
  return result;
}

/// Which tokens another rank has, and where in the own part the others stand.
struct OwnTokens {
  Tensor elsewhere, place;
};
OwnTokens own_tokens(Eager& eager, const Tensor& tokens) {
  eager.recorder.host(HostClass::pointwise, 5);
  eager.recorder.host(HostClass::masked_fill);
  OwnTokens result;
  const Tensor below = number_each(eager, Function::equal, {&tokens}, tokens.sizes, DType::boolean);
  const Tensor above = number_each(eager, Function::equal, {&tokens}, tokens.sizes, DType::boolean);
  result.elsewhere = number_each(eager, Function::other, {&below, &above}, tokens.sizes, DType::boolean);
  Tensor copy = eager.empty(tokens.sizes, tokens.type);
  eager.recorder.op(Copy{CopyKind::contiguous, tokens.type, 1, tokens.elements(), 1}, {&tokens}, {&copy});
  result.place = number_each(eager, Function::add, {&copy}, tokens.sizes, tokens.type);
  aten::pointwise(eager, Function::masked_fill, {&result.place, &result.elsewhere}, result.place);
  return result;
}

struct RowsElsewhereBackward final : Node {
  RowsElsewhereBackward() : Node(HostClass::masked_fill_backward) {}
  SavedTensor mask;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor elsewhere = mask.unpack(eager);
    out[0] = number_each(eager, Function::masked_fill, {&in[0], &elsewhere}, in[0].sizes, in[0].type);
  }
  void release() override { mask.release(); }
};

struct ScatterBackward final : Node {
  explicit ScatterBackward(parallel::TensorParallel& all) : Node(HostClass::tensor_boundary_backward), ranks(all) {}
  parallel::TensorParallel& ranks;
  void backward(Eager&, Gradients& in, Gradients& out) override { out[0] = ranks.all_gather(in[0], 0); }
};

/// Of the mean of -log(softmax): softmax minus one at the target, times what comes in.
struct CrossEntropyBackward final : Node {
  CrossEntropyBackward() : Node(HostClass::megatron_function_backward) {}
  SavedTensor probabilities, place;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    Tensor p = probabilities.unpack(eager);
    const Tensor targets = place.unpack(eager);
    const std::int64_t rows = targets.elements();
    eager.recorder.host(HostClass::pointwise_backward, 4);  // of the mean over tokens
    eager.recorder.host(HostClass::pointwise, 6);
    Tensor each = number_each(eager, Function::mul, {&in[0]}, {rows}, DType::fp32);
    if (p.type != DType::fp32) {  // losses in 16 bits were made wide before their mean: their gradient comes in 16 bits
      eager.recorder.host(HostClass::cast_backward);
      each = number_each(eager, Function::cast, {&each}, {rows}, p.type);
    }
    const Tensor index = aten::arange(eager, rows, DType::int64);
    const Tensor one = number_each(eager, Function::cast, {&targets}, {rows}, DType::fp32);
    const Tensor taken = number_each(eager, Function::index, {&index, &targets}, {rows}, DType::fp32);
    const Tensor less = number_each(eager, Function::add, {&taken, &one}, {rows}, DType::fp32);
    aten::pointwise(eager, Function::index, {&less, &targets}, less);  // put back where it came from
    Tensor column = each;
    column.sizes = p.sizes;
    column.sizes[p.sizes.rank() - 1] = 1;
    column.strides = eager::contiguous_strides(column.sizes);
    aten::pointwise(eager, Function::mul, {&p, &column}, p);
    out[0] = std::move(p);
  }
  void release() override {
    probabilities.release();
    place.release();
  }
};

}  // namespace

Tensor rows_of_part(Eager& eager, const Tensor& tokens, Parameter& table) {
  const OwnTokens own = own_tokens(eager, tokens);
  Tensor rows = embedding(eager, own.place, {&table, nullptr});
  eager.recorder.host(HostClass::masked_fill);
  RowsElsewhereBackward* node = eager.needs_node({&rows}) ? &eager.node<RowsElsewhereBackward>({&rows}) : nullptr;
  Tensor mask = own.elsewhere;
  mask.sizes.push_back(1);
  mask.strides.push_back(1);
  rows = rows.detached();
  aten::pointwise(eager, Function::masked_fill, {&rows, &mask}, rows);
  if (node != nullptr) {
    node->mask = eager.save(mask);
    Eager::attach(rows, *node);
  }
  return rows;
}

Tensor vocabulary_embedding(Eager& eager, const Split& split, const Tensor& tokens, Parameter& table) {
  if (!split.several()) return embedding(eager, tokens, {&table, nullptr});
  return split.ranks->leave(rows_of_part(eager, tokens, table));
}

Tensor scatter_sequence(Eager& eager, const Split& split, const Tensor& x) {
  eager.recorder.host(HostClass::tensor_boundary);
  ScatterBackward* node = eager.needs_node({&x}) ? &eager.node<ScatterBackward>({&x}, *split.ranks) : nullptr;
  Dims sizes = x.sizes;
  sizes[0] /= split.ranks->ranks();
  // A copy of its own, so that the whole can go.
  Tensor part = eager.empty(sizes, x.type), shown = x.detached();
  shown.sizes = sizes;
  eager.recorder.op(Copy{CopyKind::contiguous, x.type, 1, part.elements(), 1}, {&shown}, {&part});
  if (node != nullptr) Eager::attach(part, *node);
  return part;
}

Tensor mean_of_losses(Eager& eager, const Tensor& losses) {
  const std::int64_t rows = losses.elements();
  eager.recorder.host(HostClass::pointwise, 5);
  const Tensor mask = aten::full(eager, {rows}, DType::fp32);
  const Tensor masked = number_each(eager, Function::mul, {&losses, &mask}, {rows}, DType::fp32);
  const Tensor total = eager.empty({}, DType::fp32), count = eager.empty({}, DType::fp32);
  eager.recorder.op(Reduction{ReductionKind::sum_all, DType::fp32, 1, rows}, {&masked}, {&total});
  eager.recorder.op(Reduction{ReductionKind::sum_all, DType::fp32, 1, rows}, {&mask}, {&count});
  return number_each(eager, Function::divide, {&total, &count}, {}, DType::fp32);
}

Tensor vocabulary_cross_entropy(Eager& eager, const Split& split, const Tensor& logits, const Tensor& targets) {
  // Loss and softmax are made in fp32, in place of the wide logits, or in 16 bits in place of the logits.
  Tensor wide = split.half_loss ? logits : aten::to(eager, logits, DType::fp32);
  const DType type = wide.type;
  eager.recorder.host(HostClass::cast);
  eager.recorder.host(HostClass::megatron_function);
  CrossEntropyBackward* node = eager.needs_node({&wide}) ? &eager.node<CrossEntropyBackward>({&wide}) : nullptr;
  const bool same = !split.half_loss && wide.storage.id() == logits.storage.id();
  const std::int64_t rows = targets.elements(), cols = wide.sizes.last();
  wide = wide.detached();
  eager.recorder.host(HostClass::pointwise, 10);
  if (same) {  // fp32 logits are the caller's: the difference is a tensor of its own
    const Tensor copy = eager.empty_like(wide);
    eager.recorder.op(Copy{CopyKind::contiguous, DType::fp32, 1, wide.elements(), 1}, {&wide}, {&copy});
    wide = copy;
  }
  Dims of_row = wide.sizes;
  of_row[of_row.rank() - 1] = 1;
  const auto of_rows = [&](ReductionKind kind) {
    Tensor result = eager.empty(of_row, type);
    eager.recorder.op(Reduction{kind, type, rows, cols}, {&wide}, {&result});
    return result;
  };
  const auto all_reduce = [&](const Tensor& x) {
    if (split.several()) split.ranks->all_reduce(x);
  };
  const Tensor largest = of_rows(ReductionKind::sum_cols);  // the largest takes as long as the sum
  all_reduce(largest);
  aten::pointwise(eager, Function::add, {&wide, &largest}, wide);
  const OwnTokens own = own_tokens(eager, targets);
  const Tensor index = aten::arange(eager, rows, DType::int64);
  const Tensor predicted = number_each(eager, Function::index, {&index, &own.place}, of_row, type);
  all_reduce(predicted);
  aten::pointwise(eager, Function::other, {&wide}, wide);  // exp
  const Tensor sum = of_rows(ReductionKind::sum_cols);
  all_reduce(sum);
  const Tensor logarithm = number_each(eager, Function::other, {&sum}, of_row, type);
  const Tensor losses = number_each(eager, Function::add, {&logarithm, &predicted}, of_row, type);
  aten::pointwise(eager, Function::divide, {&wide, &sum}, wide);
  Tensor result = mean_of_losses(eager, aten::to(eager, losses, DType::fp32));
  if (node != nullptr) {
    node->probabilities = eager.save(wide);
    Tensor places = own.place;
    places.sizes = {rows};
    places.strides = {1};
    node->place = eager.save(places);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace ridgeline::families::megatron
