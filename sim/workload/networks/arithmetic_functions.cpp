// Operations of a program on elements and rows: activations, products, softmax, norms, losses.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/aten/images.h"
#include "sim/workload/aten/loss.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/function_node.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {

namespace aten = eager::aten;
namespace f = families;

void require_broadcast(const CallArguments& a, const Tensor& x, const Tensor& y) {
  const int shorter = std::min(x.sizes.rank(), y.sizes.rank());
  for (int i = 0; i < shorter; ++i)
    if (x.sizes.last(i) != y.sizes.last(i) && x.sizes.last(i) != 1 && y.sizes.last(i) != 1)
      a.fail(fmt::format("tensors {} and {} do not fit", text_of(x.sizes), text_of(y.sizes)));
}

namespace {

using Activate = aten::ActivationKind;

template <Activate Activation>
ProgramValue activation(ProgramNetwork& n, const CallArguments& a) {
  return f::activate(n.session(), a.tensor("x"), Activation);
}
/// Of `count` operations written out.
template <Tensor (*Function)(eager::Eager&, const Tensor&), int Count>
ProgramValue written_out(ProgramNetwork& n, const CallArguments& a) {
  n.session().recorder.host(HostClass::pointwise, Count);
  return Function(n.session(), a.tensor("x"));
}

ProgramValue gelu(ProgramNetwork& n, const CallArguments& a) {
  const std::string by = a.text("approximate", "none");
  a.require(by == "none" || by == "tanh", fmt::format("approximate \"{}\"; expected \"none\" or \"tanh\"", by));
  return f::activate(n.session(), a.tensor("x"), by == "tanh" ? Activate::gelu_tanh : Activate::gelu);
}

ProgramValue relu_in_place(ProgramNetwork& n, const CallArguments& a) {
  n.session().recorder.host(HostClass::pointwise);
  return aten::relu_in_place(n.session(), a.tensor("x"));
}
ProgramValue add_in_place(ProgramNetwork& n, const CallArguments& a) {
  require_broadcast(a, a.tensor("x"), a.tensor("y"));
  n.session().recorder.host(HostClass::pointwise);
  return aten::added_to(n.session(), a.tensor("x"), a.tensor("y"));
}

ProgramValue add(ProgramNetwork& n, const CallArguments& a) {
  require_broadcast(a, a.tensor("x"), a.tensor("y"));
  return f::add(n.session(), a.tensor("x"), a.tensor("y"));
}
ProgramValue mul(ProgramNetwork& n, const CallArguments& a) {
  require_broadcast(a, a.tensor("x"), a.tensor("y"));
  return f::mul(n.session(), a.tensor("x"), a.tensor("y"));
}
ProgramValue scale(ProgramNetwork& n, const CallArguments& a) { return f::scale(n.session(), a.tensor("x")); }

ProgramValue matmul(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &x = a.tensor("x"), &y = a.tensor("y");
  const int rank = x.sizes.rank();
  bool fits = rank >= 2 && rank <= 4 && y.sizes.rank() == rank && x.sizes.last() == y.sizes.last(1);
  for (int i = 0; fits && i < rank - 2; ++i) fits = x.sizes[i] == y.sizes[i] || y.sizes[i] == 1;
  a.require(fits, fmt::format("tensors {} and {} do not fit", text_of(x.sizes), text_of(y.sizes)));
  return f::matmul(n.session(), x, y);
}

ProgramValue softmax(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor& x = a.tensor("x");
  a.require(a.dimension("dim", x, -1) == x.sizes.rank() - 1, "along the last dimension alone");
  if (a.text("type", "") != "float32") return f::softmax(eager, x);
  return x.type == DType::fp16 ? f::softmax_of_fp16(eager, x) : f::softmax(eager, aten::to(eager, x, DType::fp32));
}

ProgramValue dropout(ProgramNetwork& n, const CallArguments& a) {
  const double p = a.real("p");
  a.require(p >= 0.0 && p < 1.0, fmt::format("a probability of {}", p));
  return f::dropout(n.session(), a.tensor("x"), n.trains() ? p : 0.0);
}

/// Branches of some samples set to zero, the others made larger (timm's and Transformers' DropPath).
ProgramValue drop_path(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  if (!(a.real("p") > 0.0) || !n.trains()) return x;
  eager::Eager& eager = n.session();
  eager.recorder.host(HostClass::pointwise, 5);
  using F = PointwiseFunction;
  Dims sizes{x.sizes[0]};
  while (sizes.rank() < x.sizes.rank()) sizes.push_back(1);
  Tensor kept = aten::plain(eager, F::other, sizes, x.type, {});
  kept = aten::plain(eager, F::add, sizes, x.type, {&kept});
  kept = aten::plain(eager, F::other, sizes, x.type, {&kept});
  const Tensor larger = aten::divide(eager, x);
  return aten::mul(eager, larger, kept);
}

ProgramValue layer_norm(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor x = aten::contiguous(eager, a.tensor("x")), weight = a.tensor_or_none("weight"),
               bias = a.tensor_or_none("bias");
  a.require(!weight.defined() || weight.sizes == Dims({x.sizes.last()}),
            fmt::format("a tensor {} for a norm of {}", text_of(x.sizes), text_of(weight.sizes)));
  eager.recorder.host(HostClass::layer_norm);
  const Tensor wide = eager.autocast.on() && x.type != DType::fp32 ? aten::to(eager, x, DType::fp32) : x;
  if (!weight.defined()) return aten::layer_norm(eager, wide);
  return aten::layer_norm(eager, wide, weight, bias.defined() ? &bias : nullptr);
}

ProgramValue masked_fill(ProgramNetwork& n, const CallArguments& a) {
  require_broadcast(a, a.tensor("x"), a.tensor("mask"));
  return f::masked_fill(n.session(), a.tensor("x"), a.tensor("mask"));
}
ProgramValue is_zero(ProgramNetwork& n, const CallArguments& a) {
  n.session().recorder.host(HostClass::pointwise);
  return aten::equal_number(n.session(), a.tensor("x"));
}

ProgramValue cast(ProgramNetwork& n, const CallArguments& a) {
  const std::string name = a.text("type", "float32");
  DType type = DType::fp32;
  if (name == "as weights") type = n.weight_type();
  else a.require(name == "float32", fmt::format("no type '{}'; expected \"float32\" or \"as weights\"", name));
  return aten::to(n.session(), a.tensor("x"), type);
}

ProgramValue type_as(ProgramNetwork& n, const CallArguments& a) {
  return aten::to(n.session(), a.tensor("x"), a.tensor("y").type);
}

ProgramValue cross_entropy(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor &scores = a.tensor("scores"), &labels = a.tensor("labels");
  if (scores.sizes.rank() == 4) {
    const Dims pixels{scores.sizes[0], scores.sizes[2], scores.sizes[3]};
    a.require(labels.sizes == pixels,
              fmt::format("scores {} for labels {}", text_of(scores.sizes), text_of(labels.sizes)));
    return aten::pixel_cross_entropy(eager, scores, labels);
  }
  const std::int64_t classes = scores.sizes.rank() > 0 ? scores.sizes.last() : 1, rows = scores.elements() / classes;
  a.require(labels.elements() == rows,
            fmt::format("scores {} for labels {}", text_of(scores.sizes), text_of(labels.sizes)));
  const bool flat = scores.sizes.rank() == 2 && labels.sizes.rank() == 1 && !a.flag("views", false);
  if (flat) return f::cross_entropy(eager, scores, labels);
  const Tensor rows_of_scores = f::view(eager, scores, {rows, classes});
  return f::cross_entropy(eager, rows_of_scores, f::view(eager, labels, {rows}));
}

ProgramValue mean_squared_error(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  a.require(a.tensor("x").sizes == a.tensor("y").sizes, "tensors of different sizes");
  eager.recorder.host(HostClass::pointwise, 2);
  const bool wide = eager.autocast.on();
  const Tensor x = wide ? aten::to(eager, a.tensor("x"), DType::fp32) : a.tensor("x"),
               y = wide ? aten::to(eager, a.tensor("y"), DType::fp32) : a.tensor("y");
  const Tensor error = aten::add(eager, x, y);
  return aten::mean_all(eager, aten::square(eager, error));
}

ProgramValue mean_all(ProgramNetwork& n, const CallArguments& a) {
  n.session().recorder.host(HostClass::pointwise);
  return aten::mean_all(n.session(), a.tensor("x"));
}

/// The largest of each row; its gradient is shared by those that are as large.
ProgramValue largest(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor& x = a.tensor("x");
  a.require(x.sizes.rank() > 0, "expected rows");
  const std::int64_t cols = x.sizes.last(), rows = x.elements() / cols;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = 1;
  eager.recorder.host(HostClass::pointwise, 2);
  auto* const node = eager::node_for<2>(eager, {&x}, HostClass::pointwise_backward, [rows, cols](auto& pass) {
    using F = PointwiseFunction;
    const auto& [given, most] = pass.saved;
    const Tensor where = aten::plain(pass.eager, F::equal, given.sizes, DType::boolean, {&given, &most}),
                 count = pass.eager.empty(most.sizes, DType::int64);
    pass.eager.recorder.op(Reduction{ReductionKind::sum_cols, DType::int64, rows, cols}, {&where}, {&count});
    const Tensor each = aten::plain(pass.eager, F::divide, most.sizes, pass.in[0].type, {&pass.in[0], &count});
    pass.out[0] = aten::plain(pass.eager, F::mul, given.sizes, given.type, {&each, &where});
  });
  Tensor result = eager.empty(sizes, x.type);
  eager.recorder.op(Reduction{ReductionKind::sum_cols, x.type, rows, cols}, {&x}, {&result});
  if (node != nullptr) node->saved = {eager.save(x), eager.save(result)};
  eager::attach(result, node);
  return result;
}

constexpr ProgramFunction kArithmetic[] = {
    {"gelu", "x, approximate=\"none\"", gelu},
    {"silu", "x", activation<Activate::silu>},
    {"relu", "x", activation<Activate::relu>},
    {"relu_", "x", relu_in_place},
    {"add_", "x, y", add_in_place},
    {"tanh", "x", activation<Activate::tanh>},
    {"sigmoid", "x", written_out<aten::sigmoid, 1>},
    {"new_gelu", "x", written_out<aten::gelu_written_out, 8>},
    {"quick_gelu", "x", written_out<aten::quick_gelu, 3>},
    {"add", "x, y", add},
    {"mul", "x, y", mul},
    {"scale", "x", scale},
    {"matmul", "x, y", matmul},
    {"softmax", "x, dim=-1, type=None", softmax},
    {"dropout", "x, p", dropout},
    {"drop_path", "x, p", drop_path},
    {"layer_norm", "x, weight=None, bias=None", layer_norm},
    {"masked_fill", "x, mask", masked_fill},
    {"is_zero", "x", is_zero},
    {"to", "x, type=\"float32\"", cast},
    {"type_as", "x, y", type_as},
    {"cross_entropy", "scores, labels, views=False", cross_entropy},
    {"mse_loss", "x, y", mean_squared_error},
    {"mean_all", "x", mean_all},
    {"amax", "x", largest},
};

}  // namespace

std::span<const ProgramFunction> arithmetic_functions() { return kArithmetic; }

}  // namespace ridgeline::networks
