#include "sim/workload/families/chunked_loss.h"

#include <algorithm>
#include <bit>

#include "sim/units/ceil_div.h"
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

}  // namespace

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
  const std::int64_t parts = ceil_div(vocabulary, width);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ceil_div(rows, parts))));
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
    const Tensor of_input = aten::full(eager, hidden.sizes, hidden.type),
                 of_weight = aten::full(eager, table.sizes, table.type),
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
      const Tensor product = aten::mm(eager, aten::t(eager, scores), part);
      aten::add_in_place(eager, of_weight, aten::to(eager, product, of_weight.type));
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
