// Trained numbers that no loss reads, and what runs with them.
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// They never have a gradient.
void StackNetwork::keep_unread(const Dims& sizes) {
  unread_.push_back(eager_.empty(sizes, site_.type));
  eager_.recorder.set_category(unread_.back().storage.id(), Category::weights);
  frozen_ += sizes.product();
}

void StackNetwork::make_unread_top() {
  if (s_.unread_top == UnreadTop::none) return;
  const ModuleScope module(eager_.recorder, "pooler");
  const std::int64_t d = s_.hidden;
  top_ = unread_.size();
  const auto linear_of = [&](std::int64_t out, std::int64_t in) {
    keep_unread({out, in});
    keep_unread({out});
  };
  if (s_.unread_top == UnreadTop::probe) {
    keep_unread({1, 1, d});
    linear_of(3 * d, d);
    linear_of(d, d);
    linear_of(s_.inner(), d);
    linear_of(d, s_.inner());
  }
  if (s_.unread_top == UnreadTop::dense) return linear_of(d, d);
  keep_unread({d});
  keep_unread({d});
}

void StackNetwork::run_unread_top(const Tensor& x) {
  if (s_.unread_top == UnreadTop::none) return;
  const ModuleScope module(eager_.recorder, "pooler");
  const std::int64_t batch = x.sizes[0], length = x.sizes[1], d = s_.hidden;
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise);
  if (s_.unread_top == UnreadTop::norm) {
    aten::plain(eager_, F::other, {batch, d}, x.type, {&x});
    return;
  }
  // Of the first `out` rows of a weight.
  const auto product = [&](const Tensor& of, std::size_t weight, std::int64_t rows, std::int64_t out) {
    eager_.recorder.host(HostClass::linear);
    Tensor w = unread_[top_ + weight];
    w.sizes[0] = out;
    const std::int64_t in = w.sizes[1];
    const Tensor flat = view(eager_, eager_.autocast.lowered(eager_, of), {rows, in});
    return aten::mm(eager_, flat, aten::t(eager_, eager_.autocast.lowered(eager_, w)));
  };
  if (s_.unread_top == UnreadTop::dense) {
    activated(product(aten::plain(eager_, F::other, {batch, d}, x.type, {&x}), 0, batch, d), ComposedActivation::tanh);
    return;
  }
  const Tensor probe = aten::plain(eager_, F::other, {batch, d}, x.type, {&unread_[top_]});
  const Tensor queries = product(probe, 1, batch, d), pairs = product(x, 1, batch * length, 2 * d);
  eager_.recorder.host(HostClass::contiguous);
  const Tensor apart = aten::plain(eager_, F::other, pairs.sizes, pairs.type, {&pairs});
  eager_.recorder.host(HostClass::attention_fused);  // of one query: its time is that of reading keys and values
  Tensor attended = aten::plain(eager_, F::other, {batch, d}, apart.type, {&apart, &queries});
  attended = product(attended, 3, batch, d);
  Tensor inner = product(attended, 5, batch, s_.inner());
  inner = activated(inner, s_.activation);
  product(inner, 7, batch, d);
}

}  // namespace ridgeline::families
