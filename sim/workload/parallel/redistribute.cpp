#include "sim/workload/parallel/redistribute.h"

#include <utility>

#include "sim/workload/aten/views.h"

namespace ridgeline::parallel::dtensor {

using eager::Dims;
using eager::Eager;
using eager::Gradients;
using eager::Node;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// A collective on the group's stream, and the wait for it.
void exchange(TensorParallel& ranks, CollectiveKind kind, std::int64_t bytes, const Tensor& from, const Tensor& to) {
  ProcessGroup& group = ranks.group();
  group.wait(group.start(kind, from.type, bytes, from, to));
}

/// Parts of all ranks, one behind the other, put side by side along `dimension`.
Tensor gathered(Eager& eager, TensorParallel& ranks, const Tensor& part, int dimension) {
  eager.recorder.host(HostClass::dtensor_redistribute);
  const Tensor own = aten::contiguous(eager, part.detached());
  Dims stacked = own.sizes, sizes = own.sizes;
  stacked[0] *= ranks.ranks();
  sizes[dimension] *= ranks.ranks();
  const Tensor all = eager.empty(stacked, own.type);
  exchange(ranks, CollectiveKind::all_gather, all.bytes(), own, all);
  Tensor whole = eager.empty(sizes, own.type);
  eager.recorder.op(Copy{CopyKind::permute, own.type, whole.elements() / sizes.last(), sizes.last(), 1}, {&all},
                    {&whole});
  return whole;
}

/// The other way round: added up, each rank keeps its part along the second dimension.
Tensor scattered(Eager& eager, TensorParallel& ranks, const Tensor& whole) {
  eager.recorder.host(HostClass::dtensor_redistribute);
  Dims stacked = whole.sizes, sizes = whole.sizes;
  stacked[0] *= ranks.ranks();
  stacked[1] /= ranks.ranks();
  sizes[1] /= ranks.ranks();
  const Tensor parts = eager.empty(stacked, whole.type);
  eager.recorder.op(Copy{CopyKind::permute, whole.type, parts.elements() / sizes.last(), sizes.last(), 1}, {&whole},
                    {&parts});
  Tensor part = eager.empty(sizes, whole.type);
  exchange(ranks, CollectiveKind::reduce_scatter, parts.bytes(), parts, part);
  return part;
}

/// This rank's part of `size` along `dimension`.
Tensor sliced(Eager& eager, const Tensor& whole, int dimension, std::int64_t size) {
  Dims sizes = whole.sizes;
  sizes[dimension] = size;
  Tensor part = eager.empty(sizes, whole.type);
  eager.recorder.op(Copy{CopyKind::permute, whole.type, part.elements() / sizes.last(), sizes.last(), 1}, {&whole},
                    {&part});
  return part;
}

enum class Change : std::uint8_t { gathered, scattered, summed, none, sliced };

struct RedistributeBackward final : Node {
  RedistributeBackward(TensorParallel& all, Change what, int along, std::int64_t part)
      : Node(HostClass::dtensor_op_backward), ranks(all), change(what), dimension(along), size(part) {}
  TensorParallel& ranks;
  Change change;
  int dimension;      ///< that is gathered or cut
  std::int64_t size;  ///< of the input along it
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    switch (change) {
      case Change::gathered: out[0] = gathered(eager, ranks, in[0], dimension); break;
      case Change::scattered: out[0] = scattered(eager, ranks, in[0]); break;
      case Change::summed: out[0] = sum_of_ranks(eager, ranks, in[0]); break;
      case Change::none: out[0] = in[0]; break;
      case Change::sliced: out[0] = sliced(eager, in[0], dimension, size); break;
    }
  }
};

Tensor with_node(Eager& eager, TensorParallel& ranks, const Tensor& x, Tensor result, Change backward,
                 int dimension = 1) {
  if (eager.needs_node({&x}))
    Eager::attach(result, eager.node<RedistributeBackward>({&x}, ranks, backward, dimension, x.sizes[dimension]));
  return result;
}

}  // namespace

Tensor sum_of_ranks(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  eager.recorder.host(HostClass::dtensor_redistribute);
  Tensor copy = eager.empty(x.sizes, x.type);
  eager.recorder.op(Copy{CopyKind::contiguous, x.type, 1, x.elements(), 1}, {&x}, {&copy});
  exchange(ranks, CollectiveKind::all_reduce, copy.bytes(), copy, copy);
  return copy;
}

Tensor gather_sequence(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  return with_node(eager, ranks, x, gathered(eager, ranks, x, 1), Change::scattered);
}
Tensor scatter_sequence(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  return with_node(eager, ranks, x, scattered(eager, ranks, x), Change::gathered);
}
Tensor add_up(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  return with_node(eager, ranks, x, sum_of_ranks(eager, ranks, x.detached()), Change::none);
}
Tensor replicate(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  // A module's input made a DTensor: 180 us at 15 us an operation (dtensor_op in hw/hosts/default.yaml says of which
  // steps).
  constexpr int kHooks = 12;
  eager.recorder.host(HostClass::dtensor_op, kHooks);
  return with_node(eager, ranks, x, x.detached(), Change::summed);
}
Tensor gather_columns(Eager& eager, TensorParallel& ranks, const Tensor& x, std::int64_t columns) {
  const int last = x.sizes.rank() - 1;
  Tensor whole = gathered(eager, ranks, x, last);
  whole.sizes[last] = columns;  // a view of the padded parts
  return with_node(eager, ranks, x, std::move(whole), Change::sliced, last);
}
Tensor own_columns(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  const int last = x.sizes.rank() - 1;
  eager.recorder.host(HostClass::dtensor_redistribute);
  return with_node(eager, ranks, x, sliced(eager, x, last, x.sizes[last] / ranks.ranks()), Change::gathered, last);
}
Tensor whole_sequence(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  return with_node(eager, ranks, x, gathered(eager, ranks, x, 1), Change::sliced);
}
Tensor own_sequence(Eager& eager, TensorParallel& ranks, const Tensor& x) {
  eager.recorder.host(HostClass::dtensor_redistribute);
  return with_node(eager, ranks, x, sliced(eager, x, 1, x.sizes[1] / ranks.ranks()), Change::gathered);
}

}  // namespace ridgeline::parallel::dtensor
