#include "sim/workload/networks/program_modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/aten/convolution.h"
#include "sim/workload/aten/images.h"
#include "sim/workload/convolution_bounds.h"
#include "sim/workload/families/transformers_code.h"
#include "sim/workload/networks/expert_module.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

namespace aten = eager::aten;
using families::Affine;

constexpr double kMostWeights = 1e13;

Dims weight_sizes(const CallArguments& a, std::initializer_list<std::int64_t> sizes) {
  double elements = 1.0;
  Dims result;
  for (const std::int64_t size : sizes) {
    elements *= static_cast<double>(size);
    result.push_back(size);
  }
  a.require(elements <= kMostWeights, fmt::format("{} weights are more than any GPU could ever hold", elements));
  return result;
}

std::optional<LinearRole> role_of(const CallArguments& a) {
  const std::string given = a.text("role", "");
  if (given.empty()) return std::nullopt;
  std::vector<std::string> known;
  for (const auto& [name, role] : kLinearRoles) {
    if (name == given) return role;
    known.emplace_back(name);
  }
  a.fail(fmt::format("no role '{}'; expected {}", given, few_of(known)));
}

/// This rank's part of what is split over tensor parallel ranks.
std::int64_t share_of(const ProgramNetwork& n, const CallArguments& a, const char* side) {
  const std::int64_t whole = a.count(side), ranks = n.training().parallel.tensor;
  a.require(whole % ranks == 0, fmt::format("'{}' of {} is split over {} tensor parallel ranks, which do not divide it",
                                            side, whole, ranks));
  return whole / ranks;
}
void make_column_linear(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const std::int64_t in = a.count("in"), out = share_of(n, a, "out");
  weight_sizes(a, {out, in});
  m.weights = n.new_linear(out, in, a.flag("bias", true), role_of(a), a.flag("by_inputs", false));
  m.numbers = {in};
}
void make_row_linear(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const std::int64_t in = share_of(n, a, "in"), out = a.count("out");
  weight_sizes(a, {out, in});
  m.weights = n.new_linear(out, in, a.flag("bias", true), role_of(a), a.flag("by_inputs", false));
  m.numbers = {in};
}

void make_linear(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const std::int64_t in = a.count("in"), out = a.count("out");
  weight_sizes(a, {out, in});
  if (a.given("tied") && !n.training().parallel.pipelined()) {  // a pipeline ties nothing
    const auto* other = std::get_if<ProgramModule*>(&a.value("tied"));
    a.require(other != nullptr && (*other)->weights.weight != nullptr, "'tied' is another module with a weight");
    m.weights.weight = (*other)->weights.weight;
    a.require(
        m.weights.weight->value.sizes == Dims({out, in}),
        fmt::format("tied to a weight of {}, not {}", text_of(m.weights.weight->value.sizes), text_of(Dims{out, in})));
    if (a.flag("bias", true)) m.weights.bias = n.new_parameter({out});
    return;
  }
  m.weights = n.new_linear(out, in, a.flag("bias", true), role_of(a), a.flag("by_inputs", false));
  m.numbers = {in};
}

const Tensor& rows_of(const CallArguments& a, const ProgramModule& m) {
  const Tensor& x = a.tensor("x");
  const std::int64_t in = m.numbers.empty() ? m.weights.weight->value.sizes[1] : m.numbers[0];
  a.require(x.sizes.rank() > 0 && x.sizes.last() == in,
            fmt::format("a tensor {} for a layer of {} inputs", text_of(x.sizes), in));
  return x;
}
Tensor run_linear(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  return families::linear(n.session(), rows_of(a, m), m.weights);
}
Tensor run_column_linear(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  return n.layers_of_ranks().column_linear(rows_of(a, m), m.weights);
}
Tensor run_row_linear(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  return n.layers_of_ranks().row_linear(rows_of(a, m), m.weights);
}

void make_embedding(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  m.weights.weight = n.new_parameter(weight_sizes(a, {a.count("rows"), a.count("width")}));
}
Tensor run_embedding(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  a.require(a.tensor("ids").type == DType::int64, "expected ids (int64)");
  return families::embedding(n.session(), a.tensor("ids"), m.weights);
}

void make_layer_norm(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  m.weights.weight = n.new_parameter({a.count("width")});
  if (a.flag("bias", true)) m.weights.bias = n.new_parameter({a.count("width")});
}
void require_width(const CallArguments& a, const ProgramModule& m) {
  const Tensor& x = a.tensor("x");
  const std::int64_t width = m.weights.weight->value.sizes[0];
  a.require(x.sizes.rank() > 0 && x.sizes.last() == width,
            fmt::format("a tensor {} for a norm of {}", text_of(x.sizes), width));
}
Tensor run_layer_norm(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  require_width(a, m);
  return families::layer_norm(n.session(), aten::contiguous(n.session(), a.tensor("x")), m.weights, true);
}

void make_rms_norm(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  m.weights.weight = n.new_parameter({a.count("width")});
}
Tensor run_rms_norm(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  require_width(a, m);
  return families::rms_norm(n.session(), a.tensor("x"), m.weights);
}

void make_convolution(ProgramNetwork& n, const CallArguments& a, ProgramModule& m, bool image) {
  const std::int64_t in = a.count("in"), out = a.count("out"), kernel = a.count("kernel"),
                     groups = a.count("groups", 1);
  const std::int64_t padding = a.whole("padding", 0);
  a.require(in % groups == 0 && out % groups == 0, fmt::format("{} groups of {} and {} channels", groups, in, out));
  a.require(padding >= 0 && padding <= kLargestKernelOrStride && kernel <= kLargestKernelOrStride, "padding or kernel");
  m.weights.weight = n.new_parameter(image ? weight_sizes(a, {out, in / groups, kernel, kernel})
                                           : weight_sizes(a, {out, in / groups, kernel}));
  if (a.flag("bias", true)) m.weights.bias = n.new_parameter({out});
  m.numbers = {a.count("stride", 1), padding, groups};
}
void make_conv2d(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) { make_convolution(n, a, m, true); }
void make_conv1d(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) { make_convolution(n, a, m, false); }

Tensor run_convolution(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  return convolved(n, a, m.weights.weight->value, m.weights.bias != nullptr ? m.weights.bias->value : Tensor{},
                   {m.numbers[0], m.numbers[1], m.numbers[2]});
}

void make_batch_norm(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const std::int64_t channels = a.count("channels");
  m.weights = {n.new_parameter({channels}), n.new_parameter({channels})};
  for (int i = 0; i < 2; ++i) m.buffers.push_back(n.new_buffer({channels}, n.weight_type()));  // running statistics
  m.buffers.push_back(n.new_buffer({}, DType::int64));                                         // batches so far
}
void require_channels(const CallArguments& a, const ProgramModule& m) {
  const Tensor& x = a.tensor("x");
  const std::int64_t channels = m.weights.weight->value.sizes[0];
  a.require(x.sizes.rank() > 1 && x.sizes[1] == channels,
            fmt::format("a tensor {} for {} channels", text_of(x.sizes), channels));
}
Tensor run_batch_norm(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  require_channels(a, m);
  eager::Eager& eager = n.session();
  if (n.trains()) {
    eager.recorder.host(HostClass::pointwise);
    aten::pointwise(eager, PointwiseFunction::add, {&m.buffers[2]}, m.buffers[2]);
  }
  eager.recorder.host(HostClass::batch_norm);
  return aten::batch_norm(eager, a.tensor("x"), m.weights.weight->value, m.weights.bias->value, !n.trains());
}

void make_group_norm(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const std::int64_t channels = a.count("channels"), groups = a.count("groups");
  a.require(channels % groups == 0, fmt::format("{} groups of {} channels", groups, channels));
  m.weights = {n.new_parameter({channels}), n.new_parameter({channels})};
  m.numbers = {groups};
}
Tensor run_group_norm(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m) {
  require_channels(a, m);
  eager::Eager& eager = n.session();
  eager.recorder.host(HostClass::layer_norm_module);
  const Tensor& x = a.tensor("x");
  const Tensor wide = eager.autocast.on() ? aten::to(eager, x, DType::fp32) : x;
  return aten::group_norm(eager, wide, m.weights.weight->value, m.weights.bias->value, m.numbers[0]);
}

void make_parameter(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const Dims sizes = a.dims("sizes");
  for (int i = 0; i < sizes.rank(); ++i) a.require(sizes[i] > 0, fmt::format("a dimension of {}", sizes[i]));
  m.weights.weight = n.new_parameter(sizes);
}
void make_buffer(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const Dims sizes = a.dims("sizes");
  for (int i = 0; i < sizes.rank(); ++i) a.require(sizes[i] > 0, fmt::format("a dimension of {}", sizes[i]));
  const std::string type = a.text("type", "as weights");
  a.require(type == "as weights" || type == "float32" || type == "int64",
            fmt::format("no type '{}'; expected \"float32\" or \"int64\"", type));
  m.buffers.push_back(n.new_buffer(sizes, type == "float32" ? DType::fp32
                                          : type == "int64" ? DType::int64
                                                            : n.weight_type()));
}

void make_frozen(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  const Dims sizes = a.dims("sizes");
  for (int i = 0; i < sizes.rank(); ++i) a.require(sizes[i] > 0, fmt::format("a dimension of {}", sizes[i]));
  m.buffers.push_back(n.new_frozen(sizes));
}

constexpr ModuleKind kKinds[] = {
    {"linear", "in, out, bias=True, role=None, tied=None, by_inputs=False", make_linear, run_linear},
    {"column_linear", "in, out, bias=True, role=None, by_inputs=False", make_column_linear, run_column_linear},
    {"row_linear", "in, out, bias=True, role=None, by_inputs=False", make_row_linear, run_row_linear},
    {"embedding", "rows, width", make_embedding, run_embedding},
    {"layer_norm", "width, bias=True", make_layer_norm, run_layer_norm},
    {"rms_norm", "width", make_rms_norm, run_rms_norm},
    {"conv2d", "in, out, kernel, stride=1, padding=0, groups=1, bias=True", make_conv2d, run_convolution},
    {"conv1d", "in, out, kernel, stride=1, padding=0, groups=1, bias=True", make_conv1d, run_convolution},
    {"batch_norm", "channels", make_batch_norm, run_batch_norm},
    {"group_norm", "groups, channels", make_group_norm, run_group_norm},
    {"experts",
     "hidden, inner, count, chosen, shared=0, shared_gate=False, gated=True, router=\"softmax\", correction=False, "
     "activation=\"silu\"",
     make_experts, run_experts},
    {"parameter", "*sizes", make_parameter, nullptr},
    {"frozen", "*sizes", make_frozen, nullptr},
    {"buffer", "sizes, type=\"as weights\"", make_buffer, nullptr},
};

}  // namespace

Tensor convolved(ProgramNetwork& n, const CallArguments& a, const Tensor& weight, const Tensor& bias,
                 const aten::ConvolutionSteps& steps) {
  eager::Eager& eager = n.session();
  const Tensor& x = a.tensor("x");
  const int rank = x.sizes.rank();
  a.require(
      (rank == 3 || rank == 4) && rank == weight.sizes.rank() && x.sizes[1] == weight.sizes[1] * steps.groups &&
          weight.sizes[0] % steps.groups == 0,
      fmt::format("a tensor {} by kernels {} in {} groups", text_of(x.sizes), text_of(weight.sizes), steps.groups));
  a.require(steps.padding >= 0 && steps.padding <= kLargestKernelOrStride && steps.stride <= kLargestKernelOrStride,
            fmt::format("padding {} and stride {}", steps.padding, steps.stride));
  for (int i = 2; i < rank; ++i)
    a.require(x.sizes[i] <= kLargestImageSide && aten::convolved_side(x.sizes[i], weight.sizes[i], steps) >= 1,
              fmt::format("a side of {} by a kernel of {}", x.sizes[i], weight.sizes[i]));
  eager.recorder.host(HostClass::convolution);
  const Tensor input = eager.autocast.lowered(eager, x), kernel = eager.autocast.lowered(eager, weight);
  return aten::convolution(eager, input, kernel, bias.defined() ? eager.autocast.lowered(eager, bias) : Tensor{},
                           steps);
}

std::span<const ModuleKind> module_kinds() { return kKinds; }

const ModuleKind* find_module_kind(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const ModuleKind& k) { return k.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

std::vector<std::string> module_kind_names() {
  std::vector<std::string> names;
  for (const ModuleKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace ridgeline::networks
