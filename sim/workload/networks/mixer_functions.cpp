// Operations of a program that mix tokens otherwise than attention: scans, delta rules, short convolutions; and losses
// of several labels and of unaligned texts.
#include <fmt/format.h>

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/state_space.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/function_node.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

namespace aten = eager::aten;

/// A tensor, or the weight of a module.
Tensor weight_of(const CallArguments& a, std::string_view name) {
  if (!a.given(name)) return {};
  const auto* module = std::get_if<ProgramModule*>(&a.value(name));
  if (module == nullptr) return a.tensor_or_none(name);
  a.require((*module)->weights.weight != nullptr, fmt::format("'{}' is a module with a weight", name));
  return (*module)->weights.weight->value;
}
/// The same as products under autocast read it.
Tensor lowered(ProgramNetwork& n, const CallArguments& a, std::string_view name) {
  const Tensor weight = weight_of(a, name);
  return weight.defined() ? n.session().autocast.lowered(n.session(), weight) : weight;
}

void require_filters(const CallArguments& a, const Tensor& x, std::int64_t channels, const Tensor& filters) {
  a.require(filters.defined() && filters.sizes[0] == channels,
            fmt::format("filters for the {} channels of {}", channels, text_of(x.sizes)));
}

ProgramValue causal_conv1d(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const Tensor filters = weight_of(a, "weight"), bias = weight_of(a, "bias");
  a.require(x.sizes.rank() == 3, fmt::format("a tensor {}; expected [batch, channels, length]", text_of(x.sizes)));
  require_filters(a, x, x.sizes[1], filters);
  return aten::causal_convolution(n.session(), n.session().autocast.lowered(n.session(), x), filters,
                                  bias.defined() ? &bias : nullptr);
}

ProgramValue selective_scan(ProgramNetwork& n, const CallArguments& a) {
  const auto in_order = [&](const char* name) { return aten::contiguous(n.session(), a.tensor(name)); };
  const Tensor u = in_order("u"), delta = in_order("delta"), inputs = in_order("inputs"), z = in_order("z");
  a.require(u.sizes.rank() == 3 && delta.sizes == u.sizes && z.sizes == u.sizes && inputs.sizes.rank() == 3 &&
                inputs.sizes[1] % 2 == 0,
            fmt::format("u {}, delta {}, z {} and B and C together {} do not fit", text_of(u.sizes),
                        text_of(delta.sizes), text_of(z.sizes), text_of(inputs.sizes)));
  const Tensor scanned = aten::selective_scan(n.session(), u, delta, inputs, z);
  return aten::with_parameters(n.session(), scanned,
                               {weight_of(a, "states"), weight_of(a, "skip"), weight_of(a, "delta_bias")});
}

ProgramValue mamba_inner(ProgramNetwork& n, const CallArguments& a) {
  const Tensor xz = aten::contiguous(n.session(), n.session().autocast.lowered(n.session(), a.tensor("xz")));
  a.require(xz.sizes.rank() == 3 && xz.sizes[1] % 2 == 0,
            fmt::format("a tensor {}; expected [batch, 2 x channels, length]", text_of(xz.sizes)));
  const aten::Mamba1Weights w{weight_of(a, "convolution"), weight_of(a, "convolution_bias"), lowered(n, a, "inputs"),
                              lowered(n, a, "steps"), lowered(n, a, "output")};
  require_filters(a, xz, xz.sizes[1] / 2, w.convolution);
  a.require(w.inputs.defined() && w.steps.defined() && w.output.defined(), "'inputs', 'steps' and 'output' are linear");
  const std::int64_t rank = w.steps.sizes[1], states = (w.inputs.sizes[0] - rank) / 2;
  const Tensor result = aten::mamba_inner(n.session(), xz, w, rank, states);
  return aten::with_parameters(n.session(), result,
                               {weight_of(a, "states"), weight_of(a, "skip"), weight_of(a, "delta_bias")});
}

ProgramValue mamba2_inner(ProgramNetwork& n, const CallArguments& a) {
  const Tensor x = n.session().autocast.lowered(n.session(), a.tensor("projected"));
  const aten::Mamba2Weights w{weight_of(a, "convolution"), weight_of(a, "convolution_bias"), weight_of(a, "norm"),
                              lowered(n, a, "output")};
  const aten::ScanSizes s{a.count("heads"), a.count("head_width"), a.count("groups"), a.count("states"),
                          a.count("chunk", 256)};
  const std::int64_t inner = s.heads * s.head_width, mixed = inner + 2 * s.groups * s.states;
  a.require(x.sizes.rank() == 3 && x.sizes[2] == inner + mixed + s.heads && w.norm.defined() && w.output.defined(),
            fmt::format("a tensor {}; expected {} columns", text_of(x.sizes), inner + mixed + s.heads));
  require_filters(a, x, mixed, w.convolution);
  const Tensor result = aten::mamba2_inner(n.session(), x, w, s);
  return aten::with_parameters(n.session(), result,
                               {weight_of(a, "states_weight"), weight_of(a, "skip"), weight_of(a, "delta_bias")});
}

ProgramValue gated_delta_rule(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &q = a.tensor("q"), &k = a.tensor("k"), &v = a.tensor("v");
  a.require(q.sizes.rank() == 4 && k.sizes == q.sizes && v.sizes.rank() == 4 && v.sizes[2] == q.sizes[2],
            fmt::format("queries {}, keys {} and values {} do not fit: [batch, length, heads, width] each",
                        text_of(q.sizes), text_of(k.sizes), text_of(v.sizes)));
  return aten::gated_delta_rule(n.session(), q, k, v, a.tensor("decay"), a.tensor("strength"));
}

/// softplus(x) and exp(x), whose gradients read x and the result.
ProgramValue softplus(ProgramNetwork& n, const CallArguments& a) {
  static const aten::Derivative kGradient("other(mul(grad, self))");
  n.session().recorder.host(HostClass::pointwise);
  return aten::apply(n.session(), PointwiseFunction::other, kGradient, a.tensor("x"));
}
ProgramValue exponential(ProgramNetwork& n, const CallArguments& a) {
  static const aten::Derivative kGradient("mul(grad, result)");
  n.session().recorder.host(HostClass::pointwise);
  return aten::apply(n.session(), PointwiseFunction::other, kGradient, a.tensor("x"));
}

/// ctc_loss of scores [batch, frames, vocabulary]: log probabilities in fp32, one kernel that goes through the frames
/// forward, and one of each direction backward (LossCTC.cu).
ProgramValue ctc_loss(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor &scores = a.tensor("scores"), &labels = a.tensor("labels");
  a.require(scores.sizes.rank() == 3 && labels.sizes.rank() == 2,
            fmt::format("scores {} and labels {}; expected [batch, frames, vocabulary] and [batch, characters]",
                        text_of(scores.sizes), text_of(labels.sizes)));
  eager.recorder.host(HostClass::cross_entropy, 3);
  const Tensor logarithms = aten::log_softmax(eager, aten::to(eager, scores, DType::fp32));
  const std::int64_t frames = scores.sizes[1], states = 2 * labels.sizes[1] + 1;
  const auto walk = [frames](eager::Eager& at, const Tensor& from, const Tensor& into) {
    FusedKernel op;
    op.name = "ctc_loss";
    op.rows = into.sizes[0];
    op.cols = into.elements() / into.sizes[0];
    op.arithmetic = 60;
    op.reads = {from.elements() * bytes_of(from.type)};
    op.writes = {into.elements() * bytes_of(into.type)};
    at.recorder.op(op, {&from}, {&into});
  };
  auto* node = eager::node_for<2>(eager, {&logarithms}, HostClass::pointwise_backward, [walk](auto& pass) {
    const Tensor backward = pass.eager.empty(pass.saved[1].sizes, DType::fp32);
    walk(pass.eager, pass.saved[0], backward);
    pass.out[0] = pass.eager.empty(pass.saved[0].sizes, DType::fp32);
    walk(pass.eager, pass.saved[1], pass.out[0]);
  });
  const Tensor alphas = eager.empty({scores.sizes[0], frames, states}, DType::fp32);
  walk(eager, logarithms, alphas);
  if (node != nullptr) node->saved = {eager.save(logarithms), eager.save(alphas)};
  Tensor losses = eager.empty({scores.sizes[0]}, DType::fp32);
  aten::pointwise(eager, PointwiseFunction::other, {&alphas}, losses);
  attach(losses, node);
  return aten::mean_all(eager, losses);
}

constexpr ProgramFunction kMixers[] = {
    {"causal_conv1d", "x, weight, bias=None", causal_conv1d},
    {"selective_scan", "u, delta, inputs, z, states=None, skip=None, delta_bias=None", selective_scan},
    {"mamba_inner",
     "xz, convolution, convolution_bias=None, inputs, steps, output, states=None, skip=None, delta_bias=None",
     mamba_inner},
    {"mamba2_inner",
     "projected, convolution, convolution_bias=None, norm, output, heads, head_width, groups, states, chunk=256, "
     "states_weight=None, skip=None, delta_bias=None",
     mamba2_inner},
    {"gated_delta_rule", "q, k, v, decay, strength", gated_delta_rule},
    {"softplus", "x", softplus},
    {"exp", "x", exponential},
    {"ctc_loss", "scores, labels", ctc_loss},
};

}  // namespace

std::span<const ProgramFunction> mixer_functions() { return kMixers; }

}  // namespace ridgeline::networks
