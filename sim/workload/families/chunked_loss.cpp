#include "sim/workload/families/chunked_loss.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

struct ChunkedBackward final : eager::Node {
  ChunkedBackward() : Node(HostClass::pointwise_backward) {}
  Tensor of_input, of_weight;
  void backward(Eager& eager, eager::Gradients& in, eager::Gradients& out) override {
    // Is the incoming gradient one? The host asks, and multiplies by it only if not.
    const Tensor one = aten::full(eager, {}, DType::fp32);
    const Tensor same = aten::plain(eager, PointwiseFunction::equal, {}, DType::boolean, {&in[0], &one});
    eager.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&same}, {});
    eager.recorder.wait_for_gpu();
    if (needs(0)) out[0] = of_input;
    if (needs(1)) out[1] = of_weight;
  }
  void release() override {
    of_input = Tensor{};
    of_weight = Tensor{};
  }
};

/// Labels moved one place to the left, and how many of them count: the host waits for the number.
Tensor moved_labels(Eager& eager, const Tensor& labels) {
  eager.recorder.host(HostClass::pointwise, 6);
  const Tensor padded = aten::full(eager, {labels.sizes[0], labels.sizes[1] + 1}, DType::int64);
  eager.recorder.op(Copy{CopyKind::permute, DType::int64, labels.sizes[0], labels.sizes[1], 1}, {&labels}, {&padded});
  Tensor shifted = padded;
  shifted.sizes = labels.sizes;
  const Tensor targets = aten::clamp(eager, aten::contiguous(eager, shifted));
  const Tensor counts = aten::plain(eager, PointwiseFunction::equal, targets.sizes, DType::boolean, {&targets});
  const Tensor count = eager.empty({}, DType::int64);
  eager.recorder.op(Reduction{ReductionKind::sum_all, DType::int64, 1, targets.elements()}, {&counts}, {&count});
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::int64, 1, 1, 1}, {&count}, {});
  eager.recorder.wait_for_gpu();
  return targets;
}

/// One kernel over scores [rows, classes]: a row's statistics, then its gradient in the place of the scores.
void gradient_in_place(Eager& eager, const Tensor& scores, const Tensor& losses) {
  constexpr std::int64_t kArithmetic = 12;  // exponentials, comparisons and sums of one score
  FusedKernel kernel;
  kernel.name = "linear_cross_entropy";
  kernel.shape = FusedKernel::Shape::long_rows;
  kernel.rows = scores.sizes[0];
  kernel.cols = scores.sizes[1];
  kernel.type = scores.type;
  kernel.arithmetic = kArithmetic;
  kernel.reads = {scores.bytes()};
  kernel.writes = {scores.bytes()};
  eager.recorder.host(HostClass::pointwise);
  eager.recorder.op(kernel, {&scores}, {&losses});
}

Tensor rows_from(const Tensor& x, std::int64_t count) {
  Tensor part = x;
  part.sizes[0] = count;
  return part;
}

Tensor wide_rows(Eager& eager, const Tensor& scores, std::int64_t rows) {
  eager.recorder.host(HostClass::pointwise);
  return aten::to(eager, view(eager, scores, {rows, scores.sizes.last()}), DType::fp32);
}

/// One generated kernel, which reads scores [rows, classes] and writes `result`.
void row_kernel(Eager& eager, const Tensor& scores, std::int64_t arithmetic, const Tensor& result) {
  FusedKernel kernel;
  kernel.name = "_log_softmax__to_copy_nll_loss";
  kernel.shape = FusedKernel::Shape::long_rows;
  kernel.rows = scores.sizes[0];
  kernel.cols = scores.sizes[1];
  kernel.type = DType::fp32;
  kernel.arithmetic = arithmetic;
  kernel.reads = {scores.bytes()};
  kernel.writes = {result.bytes()};
  eager.recorder.op(kernel, {&scores}, {&result});
}

struct CompiledLossBackward final : eager::Node {
  CompiledLossBackward() : Node(HostClass::pointwise_backward) {}
  eager::SavedTensor scores;
  void backward(Eager& eager, eager::Gradients&, eager::Gradients& out) override {
    constexpr std::int64_t kArithmetic = 6;
    const Tensor read = scores.unpack(eager);
    out[0] = eager.empty(read.sizes, read.type);
    row_kernel(eager, read, kArithmetic, out[0]);
  }
  void release() override { scores.release(); }
};

/// Cast to fp32, log-softmax and loss in one generated kernel, whose backward pass is another; scores are kept.
Tensor compiled_cross_entropy(Eager& eager, const Tensor& scores) {
  constexpr std::int64_t kArithmetic = 8;
  eager.recorder.host(HostClass::cross_entropy);
  CompiledLossBackward* node = eager.needs_node({&scores}) ? &eager.node<CompiledLossBackward>({&scores}) : nullptr;
  Tensor result = eager.empty({scores.sizes[0]}, DType::fp32);
  row_kernel(eager, scores, kArithmetic, result);
  result.sizes = {};
  result.strides = {};
  if (node != nullptr) {
    node->scores = eager.save(scores);
    Eager::attach(result, *node);
  }
  return result;
}

/// Mean negative log-likelihood of chunks of scores, each cast to fp32 by itself; CEWithChunkedOutputLoss of torchtune.
Tensor sum_of_chunks(Eager& eager, const std::vector<Tensor>& scores, const Tensor& labels, bool compiled) {
  Tensor total;
  for (const Tensor& chunk : scores) {
    const std::int64_t classes = chunk.sizes.last(), rows = chunk.elements() / classes;
    const Tensor targets = contiguous(eager, view(eager, rows_from(labels, rows), {rows}));
    Tensor loss = compiled ? compiled_cross_entropy(eager, view(eager, chunk, {rows, classes}))
                           : cross_entropy(eager, wide_rows(eager, chunk, rows), targets);
    total = total.defined() ? add(eager, total, loss) : std::move(loss);
  }
  eager.recorder.host(HostClass::loss_division);
  return aten::divide(eager, total);
}

}  // namespace

Tensor loss_in_chunks(Eager& eager, const TrainingDescription& training, const Tensor& x, const Affine& head,
                      const Tensor& labels) {
  if (training.loss_code == LossCode::chunked) return chunked_loss(eager, x, head, labels);
  const bool compiled = training.parallel.compiled && training.parallel.block_by_block;
  return chunked_output_loss(eager, x, head, labels, compiled);
}

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
  const std::int64_t parts = ceil_div(vocabulary, width);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ceil_div(rows, parts))));
}

Tensor chunked_output_loss(Eager& eager, const Tensor& x, const Affine& head, const Tensor& labels, bool compiled) {
  constexpr std::int64_t kChunks = 8;  // num_output_chunks
  const std::int64_t length = x.sizes[1], chunks = std::min(kChunks, length);
  const Tensor shifted = eager.empty(labels.sizes, labels.type);
  eager.recorder.host(HostClass::concatenate);
  eager.recorder.op(Copy{CopyKind::concatenate, labels.type, labels.sizes[0], labels.sizes[1] / 2, 2},
                    {&labels, &labels}, {&shifted});
  std::vector<Tensor> scores;
  for (std::int64_t i = 0; i < chunks; ++i) {
    eager.recorder.host(HostClass::view);
    scores.push_back(linear(eager, aten::slice(eager, x, 1, (length + chunks - 1 - i) / chunks), head));
  }
  const ModuleScope module(eager.recorder, "loss");
  return sum_of_chunks(eager, scores, shifted, compiled);
}

Tensor chunked_loss(Eager& eager, const Tensor& x, const Affine& head, const Tensor& labels) {
  const ModuleScope module(eager.recorder, "loss");
  const Tensor targets = moved_labels(eager, labels);
  const Tensor& weight = head.weight->value;
  const std::int64_t width = x.sizes.last(), rows = x.elements() / width, classes = weight.sizes[0],
                     chunk = rows_of_chunk(rows, width, classes);
  Tensor given = view(eager, x, {rows, width});
  const bool cast = eager.autocast.on();
  if (cast) given = aten::to(eager, given, eager.autocast.type());
  ChunkedBackward* node =
      eager.needs_node({&given, &weight}) ? &eager.node<ChunkedBackward>({&given, &weight}) : nullptr;
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  Tensor result;
  {
    const Tensor hidden = given.detached(), table = weight.detached();
    const bool trained = weight.requires_gradient();
    const Tensor of_input = aten::full(eager, hidden.sizes, hidden.type),
                 of_weight = trained ? aten::full(eager, table.sizes, table.type) : Tensor{},
                 losses = aten::full(eager, {rows}, DType::fp32);
    Tensor scores;
    for (std::int64_t at = 0; at < rows; at += chunk) {
      eager.recorder.host(HostClass::matmul, 3);
      const std::int64_t count = std::min(chunk, rows - at);
      const Tensor part = rows_from(hidden, count);
      {
        // A view of the weight is cast anew each time, the weight itself once.
        const Tensor turned = cast ? aten::to(eager, table, eager.autocast.type()) : table;
        scores = aten::mm(eager, part, aten::t(eager, turned));
      }
      gradient_in_place(eager, scores, rows_from(losses, count));
      {
        const Tensor product = aten::mm(eager, scores, eager.autocast.lowered(eager, weight).detached());
        eager.recorder.op(Copy{CopyKind::contiguous, product.type, 1, product.elements(), 1}, {&product}, {&of_input});
      }
      if (!trained) continue;
      const Tensor product = aten::mm(eager, aten::t(eager, scores), part);
      aten::add_in_place(eager, of_weight, aten::to(eager, product, DType::fp32));
    }
    scores = Tensor{};
    result = eager.empty({}, DType::fp32);
    eager.recorder.host(HostClass::pointwise);
    eager.recorder.op(Reduction{ReductionKind::sum_all, DType::fp32, 1, rows}, {&losses}, {&result});
    if (node != nullptr) {
      node->of_input = of_input;
      node->of_weight = of_weight;
    }
  }
  eager.gradients_enabled = gradients_enabled;
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::families
