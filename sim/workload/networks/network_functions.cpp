// Operations of a program that belong to attention, to Transformers' code around it, and to images.
#include <fmt/format.h>

#include "sim/workload/aten/images.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/convolution_bounds.h"
#include "sim/workload/families/image_rows.h"
#include "sim/workload/families/transformers_code.h"
#include "sim/workload/networks/program_functions.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {
namespace {

namespace aten = eager::aten;
namespace f = families;

std::shared_ptr<ProgramList> pair_of(Tensor a, Tensor b) {
  auto list = std::make_shared<ProgramList>();
  list->items.emplace_back(std::move(a));
  list->items.emplace_back(std::move(b));
  return list;
}

ProgramValue attention(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &q = a.tensor("q"), &k = a.tensor("k"), &v = a.tensor("v");
  const Tensor mask = a.tensor_or_none("mask");
  bool fits = q.sizes.rank() == 4 && k.sizes.rank() == 4 && v.sizes.rank() == 4 && q.sizes[0] == k.sizes[0] &&
              k.sizes[0] == v.sizes[0] && k.sizes[1] == v.sizes[1] && k.sizes[2] == v.sizes[2] &&
              q.sizes[3] == k.sizes[3] && q.sizes[1] % k.sizes[1] == 0;
  a.require(fits, fmt::format("queries {}, keys {} and values {} do not fit: [batch, heads, length, width] each",
                              text_of(q.sizes), text_of(k.sizes), text_of(v.sizes)));
  const double dropout = a.given("dropout") ? a.real("dropout") : 0.0;
  const bool causal = a.flag("causal", false);
  a.require(!causal || !mask.defined(), "causal and a mask: give one");
  return n.attended(q, k, v, causal, n.trains() ? dropout : 0.0, mask);
}

ProgramValue enter(ProgramNetwork& n, const CallArguments& a) { return n.layers_of_ranks().enter(a.tensor("x")); }
ProgramValue position_ids(ProgramNetwork& n, const CallArguments& a) {
  Tensor ids = f::position_ids(n.session(), a.count("count"));
  return a.given("rows") ? aten::unsqueeze(n.session(), ids, 0) : ids;
}
ProgramValue find_packed_sequences(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& positions = a.tensor("positions");
  f::look_for_packed_sequences(n.session(), positions, a.count("rows"), positions.sizes.last());
  return {};
}
ProgramValue causal_mask(ProgramNetwork& n, const CallArguments& a) {
  const std::int64_t tokens = a.count("length");
  return f::causal_mask(n.session(), n.weight_type(), a.count("rows"), tokens, tokens);
}
ProgramValue rotary(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &positions = a.tensor("positions"), &frequencies = a.tensor("frequencies");
  const std::int64_t half = frequencies.elements();
  const f::Rotation by =
      f::rotation(n.session(), positions, frequencies, positions.sizes.last(), 2 * half, n.weight_type());
  return pair_of(by.cosine, by.sine);
}
ProgramValue rotate(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  require_broadcast(a, x, a.tensor("cosine"));
  a.require(x.sizes.last() % 2 == 0, fmt::format("{} turns in pairs", text_of(x.sizes)));
  return f::rotated(n.session(), x, {a.tensor("cosine"), a.tensor("sine")});
}
/// Cosines and sines of each position times as many frequencies, joined: the steps of a diffusion.
ProgramValue sinusoids(ProgramNetwork& n, const CallArguments& a) {
  using F = PointwiseFunction;
  eager::Eager& eager = n.session();
  const std::int64_t rows = a.tensor("positions").elements(), half = a.count("width") / 2;
  a.require(half > 0 && a.tensor("positions").sizes.rank() == 1, "expected positions [batch] and a width of 2 or more");
  eager.recorder.host(HostClass::pointwise, 7);
  Tensor frequencies = aten::arange(eager, half, DType::fp32);
  for (const F function : {F::scale, F::divide, F::other})
    frequencies = aten::plain(eager, function, {half}, DType::fp32, {&frequencies});
  const Tensor wide = aten::plain(eager, F::cast, {rows, 1}, DType::fp32, {&a.tensor("positions")}),
               angles = aten::plain(eager, F::mul, {rows, half}, DType::fp32, {&wide, &frequencies}),
               cosine = aten::plain(eager, F::rope, {rows, half}, DType::fp32, {&angles}),
               sine = aten::plain(eager, F::rope, {rows, half}, DType::fp32, {&angles});
  eager.recorder.host(HostClass::concatenate);
  return aten::to(eager, aten::join(eager, {&cosine, &sine}), n.weight_type());
}
/// Rows of an image in the place of marked tokens.
ProgramValue place_rows(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &x = a.tensor("x"), &rows = a.tensor("rows");
  a.require(x.sizes.rank() == 3 && rows.sizes.rank() == 3 && rows.sizes[0] == x.sizes[0] &&
                rows.sizes[2] == x.sizes[2] && (rows.sizes[1] <= x.sizes[1] || !n.session().gradients_enabled),
            fmt::format("rows {} do not fit among {}: training.sequence_length counts an image's rows",
                        text_of(rows.sizes), text_of(x.sizes)));
  return f::with_image_rows(n.session(), x, a.tensor("ids"), rows);
}
ProgramValue repeat_kv(ProgramNetwork& n, const CallArguments& a) {
  a.require(a.tensor("x").sizes.rank() == 4, "expected [batch, heads, length, width]");
  return f::repeated(n.session(), a.tensor("x"), a.count("times"));
}
/// Labels one place to the left: padded on the right, cut on the left, made contiguous.
ProgramValue next_tokens(ProgramNetwork& n, const CallArguments& a) {
  eager::Eager& eager = n.session();
  const Tensor& labels = a.tensor("labels");
  a.require(labels.sizes.rank() == 2, fmt::format("labels {}; expected [batch, length]", text_of(labels.sizes)));
  eager.recorder.host(HostClass::pointwise, 4);
  const Tensor padded = aten::full(eager, {labels.sizes[0], labels.sizes[1] + 1}, DType::int64);
  eager.recorder.op(Copy{CopyKind::permute, DType::int64, labels.sizes[0], labels.sizes[1], 1}, {&labels}, {&padded});
  Tensor shifted = padded;
  shifted.sizes = labels.sizes;
  return pair_of(padded, aten::contiguous(eager, shifted));
}

ProgramValue weight_norm(ProgramNetwork& n, const CallArguments& a) {
  const Tensor &v = a.tensor("v"), &g = a.tensor("g");
  a.require(v.sizes.rank() == 3 && g.elements() == v.sizes[2],
            fmt::format("weights {} of norms {}", text_of(v.sizes), text_of(g.sizes)));
  n.session().recorder.host(HostClass::pointwise);
  return aten::weight_norm(n.session(), v, g);
}
ProgramValue convolution(ProgramNetwork& n, const CallArguments& a) {
  return convolved(n, a, a.tensor("weight"), a.tensor_or_none("bias"),
                   {a.count("stride", 1), a.whole("padding", 0), a.count("groups", 1)});
}
ProgramValue requires_grad(ProgramNetwork& n, const CallArguments& a) { return n.leaf(a.tensor("x")); }

const Tensor& image(const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  a.require(x.sizes.rank() == 4 && x.sizes[2] <= kLargestImageSide && x.sizes[3] <= kLargestImageSide,
            fmt::format("a tensor {}; expected an image [batch, channels, height, width]", text_of(x.sizes)));
  return x;
}
template <Tensor (*Pool)(eager::Eager&, const Tensor&, const aten::PoolingSteps&)>
ProgramValue pool(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = image(a);
  aten::PoolingSteps steps;
  steps.window = a.count("kernel");
  steps.stride = a.count("stride", steps.window);
  steps.padding = a.whole("padding", 0);
  const std::int64_t shorter = std::min(x.sizes[2], x.sizes[3]);
  a.require(steps.padding >= 0 && 2 * steps.padding <= steps.window && shorter + 2 * steps.padding >= steps.window,
            fmt::format("windows of {} with {} around {}", steps.window, steps.padding, text_of(x.sizes)));
  n.session().recorder.host(HostClass::pointwise);
  return Pool(n.session(), x, steps);
}
ProgramValue interpolate(ProgramNetwork& n, const CallArguments& a) {
  n.session().recorder.host(HostClass::pointwise);
  return aten::upsampled_nearest(n.session(), image(a));
}

ProgramValue upsample_bilinear(ProgramNetwork& n, const CallArguments& a) {
  const std::int64_t height = a.count("height"), width = a.count("width");
  a.require(height <= kLargestImageSide && width <= kLargestImageSide, fmt::format("{} x {} pixels", height, width));
  n.session().recorder.host(HostClass::pointwise);
  return aten::upsampled_bilinear(n.session(), image(a), height, width);
}

/// Over the last dimensions, or the middle one of three.
ProgramValue mean(ProgramNetwork& n, const CallArguments& a) {
  const Tensor& x = a.tensor("x");
  const std::vector<std::int64_t> dims = a.wholes("dim");
  const int rank = x.sizes.rank(), count = static_cast<int>(dims.size());
  bool trailing = count >= 1 && count <= rank;
  for (int i = 0; trailing && i < count; ++i) {
    const std::int64_t dim = dims[static_cast<std::size_t>(i)];
    trailing = (dim < 0 ? dim + rank : dim) == rank - count + i;
  }
  n.session().recorder.host(HostClass::pointwise);
  if (trailing) return aten::mean_trailing(n.session(), x, count, a.flag("keepdim", false));
  a.require(rank == 3 && count == 1 && dims[0] == 1 && !a.flag("keepdim", false),
            fmt::format("the last dimensions, or the middle one of three; not {} of {}", fmt::join(dims, ", "),
                        text_of(x.sizes)));
  return aten::mean_middle(n.session(), x);
}

constexpr ProgramFunction kOperations[] = {
    {"attention", "q, k, v, causal=False, mask=None, dropout=0.0", attention},
    {"enter", "x", enter},
    {"position_ids", "count, rows=None", position_ids},
    {"find_packed_sequences", "positions, rows", find_packed_sequences},
    {"causal_mask", "rows, length", causal_mask},
    {"rotary", "positions, frequencies", rotary},
    {"rotate", "x, cosine, sine", rotate},
    {"sinusoids", "positions, width", sinusoids},
    {"place_rows", "x, ids, rows", place_rows},
    {"repeat_kv", "x, times", repeat_kv},
    {"next_tokens", "labels", next_tokens},
    {"weight_norm", "v, g", weight_norm},
    {"conv1d", "x, weight, bias=None, stride=1, padding=0, groups=1", convolution},
    {"conv2d", "x, weight, bias=None, stride=1, padding=0, groups=1", convolution},
    {"requires_grad", "x", requires_grad},
    {"max_pool2d", "x, kernel, stride=None, padding=0", pool<aten::max_pool>},
    {"avg_pool2d", "x, kernel, stride=None, padding=0", pool<aten::average_pool>},
    {"upsample_nearest", "x", interpolate},
    {"upsample_bilinear", "x, height, width", upsample_bilinear},
    {"mean", "x, dim, keepdim=False", mean},
};

}  // namespace

std::span<const ProgramFunction> network_functions() { return kOperations; }

const ProgramFunction* find_program_function(std::string_view name) {
  for (const std::span<const ProgramFunction> list :
       {arithmetic_functions(), shape_functions(), network_functions(), mixer_functions()})
    for (const ProgramFunction& function : list)
      if (function.name == name) return &function;
  return nullptr;
}

std::vector<std::string> program_function_names() {
  std::vector<std::string> names;
  for (const std::span<const ProgramFunction> list :
       {arithmetic_functions(), shape_functions(), network_functions(), mixer_functions()})
    for (const ProgramFunction& function : list) names.emplace_back(function.name);
  return names;
}

}  // namespace ridgeline::networks
