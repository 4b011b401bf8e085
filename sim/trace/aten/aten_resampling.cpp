// Interpolation, padding, sampling and unfolding of images.
#include <algorithm>
#include <cmath>

#include "sim/trace/aten/aten_rules.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline::trace {
namespace {

/// Sizes of an image, of which the last one, two or three are sides: [batch, channels, ...] or without a batch.
struct Planes {
  std::int64_t batch = 1, channels = 1, pixels = 1;
};
Planes planes_of(const AtenTensor& x, std::size_t sides) {
  Planes planes;
  const std::size_t rank = x.sizes.size();
  for (std::size_t i = 0; i < rank; ++i) {
    if (i + sides >= rank) planes.pixels *= x.sizes[i];
    else if (i + sides + 1 == rank) planes.channels = x.sizes[i];
    else planes.batch *= x.sizes[i];
  }
  return planes;
}

/// The tensor of which a list of a call says the sizes, or its recorded result.
std::optional<AtenTensor> sized(const AtenCall& call, DType type, const Numbers* sizes) {
  if (!call.outputs.empty() && call.outputs.front().elements() > 0) return call.outputs.front();
  if (sizes == nullptr || sizes->empty()) return std::nullopt;
  AtenTensor result = fresh(type, {});
  for (const double size : *sizes) result.sizes.push_back(whole_number(size, 1));
  return result.elements() > 0 ? std::optional(result) : std::nullopt;
}

MappedOps resampled(ResamplingFunction function, bool backward, const AtenTensor& image, const AtenTensor& result,
                    std::size_t sides, std::vector<AtenTensor> inputs, std::int64_t taps = 1) {
  const AtenTensor &small = backward ? result : image, &large = backward ? image : result;
  const Planes from = planes_of(small, sides), to = planes_of(large, sides);
  if (from.batch < 1 || from.channels < 1 || from.pixels < 1 || to.pixels < 1) return nothing();
  const Resampling op{.function = function,
                      .backward = backward,
                      .channels_last = image.channels_last(),
                      .type = image.type,
                      .batch = from.batch,
                      .channels = from.channels,
                      .inputs = from.pixels,
                      .outputs = to.pixels,
                      .taps = taps};
  return one({op, std::move(inputs), {result}});
}

/// Images of twice the side are taken as the operation that networks are described with.
bool doubled(const AtenTensor& small, const AtenTensor& large) {
  return small.sizes.size() == 4 && large.sizes.size() == 4 && large.sizes[2] == 2 * small.sizes[2] &&
         large.sizes[3] == 2 * small.sizes[3] && large.sizes[2] == large.sizes[3];
}
MappedOps doubled_nearest(bool backward, const AtenTensor& image, const AtenTensor& result) {
  const AtenTensor& large = backward ? image : result;
  const ImageOp op{.function = ImageFunction::upsample_nearest2d,
                   .backward = backward,
                   .channels_last = large.channels_last(),
                   .type = image.type,
                   .batch = large.sizes[0],
                   .channels = large.sizes[1],
                   .size = large.sizes[2]};
  return one({op, {image}, {result}});
}

/// (x, sizes of the sides, ...).
template <ResamplingFunction Function, std::size_t Sides>
MappedOps interpolated(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* sides = call.numbers(1);
  if (x == nullptr || x->sizes.size() != Sides + 2 || x->elements() < 1) return std::nullopt;
  AtenTensor y = fresh(x->type, x->sizes);
  if (!call.outputs.empty() && call.outputs.front().elements() > 0) y = call.outputs.front();
  else if (sides == nullptr || sides->size() != Sides) return std::nullopt;
  else
    for (std::size_t i = 0; i < Sides; ++i) y.sizes[2 + i] = whole_number((*sides)[i], 1);
  if (y.sizes.size() != x->sizes.size()) return std::nullopt;
  if (Function == ResamplingFunction::nearest && doubled(*x, y)) return doubled_nearest(false, *x, y);
  return resampled(Function, false, *x, y, Sides, {*x});
}
/// (dy, sizes of dy's sides, sizes of x, ...).
template <ResamplingFunction Function, std::size_t Sides>
MappedOps interpolated_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor* dy = call.tensor(0);
  if (dy == nullptr || dy->sizes.size() != Sides + 2 || dy->elements() < 1) return std::nullopt;
  const auto dx = sized(call, dy->type, call.numbers(2));
  if (!dx || dx->sizes.size() != dy->sizes.size()) return std::nullopt;
  if (Function == ResamplingFunction::nearest && doubled(*dx, *dy)) return doubled_nearest(true, *dy, *dx);
  return resampled(Function, true, *dy, *dx, Sides, {*dy});
}

/// (x, widths of the edges from the last dimension on).
template <ResamplingFunction Function>
MappedOps padded(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* widths = call.numbers(1);
  if (x == nullptr || widths == nullptr || widths->size() % 2 != 0 || widths->empty() ||
      widths->size() / 2 > x->sizes.size() || x->elements() < 1)
    return std::nullopt;
  AtenTensor y = fresh(x->type, x->sizes);
  for (std::size_t i = 0; i + 1 < widths->size(); i += 2)
    y.sizes[x->sizes.size() - 1 - i / 2] += whole_number((*widths)[i] + (*widths)[i + 1], 0);
  if (!call.outputs.empty() && call.outputs.front().sizes.size() == y.sizes.size()) y = call.outputs.front();
  return y.elements() < 1 ? nothing() : resampled(Function, false, *x, y, widths->size() / 2, {*x});
}
/// (dy, x, widths).
template <ResamplingFunction Function>
MappedOps padded_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1);
  const Numbers* widths = call.numbers(2);
  if (dy == nullptr || x == nullptr || widths == nullptr || widths->empty() || x->elements() < 1 ||
      widths->size() / 2 > x->sizes.size() || dy->sizes.size() != x->sizes.size())
    return std::nullopt;
  return resampled(Function, true, *dy, result_of(call, 0, fresh(x->type, x->sizes)), widths->size() / 2, {*dy});
}

ResamplingFunction sampling_of(double mode) {
  constexpr double kNearest = 1.0;
  return mode == kNearest ? ResamplingFunction::grid_nearest : ResamplingFunction::grid_bilinear;
}
/// (x, grid [batch, height, width, 2], mode, ...).
MappedOps sampled(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *grid = call.tensor(1);
  if (x == nullptr || grid == nullptr || x->sizes.size() != 4 || grid->sizes.size() != 4) return std::nullopt;
  const AtenTensor y = result_of(call, 0, fresh(x->type, {x->sizes[0], x->sizes[1], grid->sizes[1], grid->sizes[2]}));
  if (y.elements() < 1 || y.sizes.size() != 4) return nothing();
  return resampled(sampling_of(call.number(2).value_or(0.0)), false, *x, y, 2, {*x, *grid});
}
/// (dy, x, grid, mode, ...).
MappedOps sampled_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *dy = call.tensor(0), *x = call.tensor(1), *grid = call.tensor(2);
  if (dy == nullptr || x == nullptr || grid == nullptr || dy->sizes.size() != 4 || x->sizes.size() != 4)
    return std::nullopt;
  return resampled(sampling_of(call.number(3).value_or(0.0)), true, *dy, result_of(call, 0, fresh(x->type, x->sizes)),
                   2, {*dy, *x, *grid});
}

/// (x, kernel, dilation, padding, stride): [batch, channels * taps, windows].
MappedOps unfolded(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const Numbers* kernel = call.numbers(1);
  if (x == nullptr || kernel == nullptr || kernel->size() != 2 || call.outputs.empty() || x->sizes.size() != 4)
    return std::nullopt;
  const AtenTensor& columns = call.outputs.front();
  const std::int64_t taps = std::max<std::int64_t>(1, whole_number((*kernel)[0] * (*kernel)[1], 1));
  if (columns.elements() < 1 || x->elements() < 1) return nothing();
  const Resampling op{.function = ResamplingFunction::unfold,
                      .type = x->type,
                      .batch = x->sizes[0],
                      .channels = x->sizes[1],
                      .inputs = x->sizes[2] * x->sizes[3],
                      .outputs = columns.last(),
                      .taps = taps};
  return one({op, {*x}, {columns}});
}
/// (columns, sides, kernel, dilation, padding, stride).
MappedOps folded(const AtenCall& call, const MapContext&) {
  const AtenTensor* columns = call.tensor(0);
  const Numbers *sides = call.numbers(1), *kernel = call.numbers(2);
  if (columns == nullptr || sides == nullptr || kernel == nullptr || sides->size() != 2 || kernel->size() != 2 ||
      columns->sizes.size() != 3 || columns->elements() < 1)
    return std::nullopt;
  const std::int64_t taps = std::max<std::int64_t>(1, whole_number((*kernel)[0] * (*kernel)[1], 1));
  const std::int64_t channels = std::max<std::int64_t>(1, columns->sizes[1] / taps);
  const AtenTensor y = result_of(
      call, 0,
      fresh(columns->type, {columns->sizes[0], channels, whole_number((*sides)[0], 1), whole_number((*sides)[1], 1)}));
  if (y.elements() < 1) return nothing();
  const Resampling op{.function = ResamplingFunction::fold,
                      .type = columns->type,
                      .batch = columns->sizes[0],
                      .channels = channels,
                      .inputs = std::max<std::int64_t>(1, y.elements() / columns->sizes[0] / channels),
                      .outputs = columns->last(),
                      .taps = taps};
  return one({op, {*columns}, {y}});
}

/// Pixels of blocks become channels or the reverse: a copy of permuted dimensions.
MappedOps shuffled(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  const std::int64_t factor = call.whole(1, 2);
  if (x == nullptr || x->sizes.size() < 3 || factor < 1) return std::nullopt;
  if (x->elements() < 1) return nothing();
  const std::size_t rank = x->sizes.size();
  AtenTensor y = fresh(x->type, x->sizes);
  const bool widens = call.name == "aten::pixel_shuffle";
  const std::int64_t square = factor * factor;
  y.sizes[rank - 3] = widens ? x->sizes[rank - 3] / square : x->sizes[rank - 3] * square;
  for (const std::size_t i : {rank - 2, rank - 1}) y.sizes[i] = widens ? x->sizes[i] * factor : x->sizes[i] / factor;
  y = result_of(call, 0, y);
  const std::int64_t cols = std::max<std::int64_t>(1, y.last());
  Copy op{CopyKind::transpose, x->type, x->elements() / cols, cols, 1};
  // Sizes of each image: channels, then for each dimension of pixels the blocks and what is within one.
  const std::vector<std::int64_t> strides = x->given_strides();
  const auto of = [&](std::size_t from_last) { return x->sizes[rank - from_last]; };
  const auto step = [&](std::size_t from_last) { return strides[rank - from_last]; };
  const std::int64_t images = x->elements() / std::max<std::int64_t>(1, of(1) * of(2) * of(3)),
                     image = rank > 3 ? strides[rank - 4] : 0;
  if (widens) {
    const std::int64_t sizes[] = {images, of(3) / square, of(2), factor, of(1), factor},
                       from[] = {image, step(3) * square, step(2), step(3) * factor, step(1), step(3)};
    op.walked = walked_dimensions(sizes, from);
  } else {
    const std::int64_t sizes[] = {images, of(3), factor, factor, of(2) / factor, of(1) / factor},
                       from[] = {image, step(3), step(2), step(1), step(2) * factor, step(1) * factor};
    op.walked = walked_dimensions(sizes, from);
  }
  return one({op, {*x}, {y}});
}

}  // namespace

void add_resampling_rules(RuleTable& table) {
  using R = ResamplingFunction;
  add(table, "aten::upsample_nearest1d", interpolated<R::nearest, 1>);
  add(table, "aten::upsample_nearest2d aten::_upsample_nearest_exact2d", interpolated<R::nearest, 2>);
  add(table, "aten::upsample_nearest3d", interpolated<R::nearest, 3>);
  add(table, "aten::upsample_linear1d", interpolated<R::linear, 1>);
  add(table, "aten::upsample_bilinear2d", interpolated<R::bilinear, 2>);
  add(table, "aten::upsample_bicubic2d", interpolated<R::bicubic, 2>);
  add(table, "aten::upsample_nearest1d_backward", interpolated_backward<R::nearest, 1>);
  add(table, "aten::upsample_nearest2d_backward aten::_upsample_nearest_exact2d_backward",
      interpolated_backward<R::nearest, 2>);
  add(table, "aten::upsample_nearest3d_backward", interpolated_backward<R::nearest, 3>);
  add(table, "aten::upsample_linear1d_backward", interpolated_backward<R::linear, 1>);
  add(table, "aten::upsample_bilinear2d_backward", interpolated_backward<R::bilinear, 2>);
  add(table, "aten::upsample_bicubic2d_backward", interpolated_backward<R::bicubic, 2>);
  add(table, "aten::reflection_pad1d aten::reflection_pad2d aten::reflection_pad3d", padded<R::reflection_pad>);
  add(table, "aten::replication_pad1d aten::replication_pad2d aten::replication_pad3d", padded<R::replication_pad>);
  add(table,
      "aten::reflection_pad1d_backward aten::reflection_pad2d_backward "
      "aten::reflection_pad3d_backward",
      padded_backward<R::reflection_pad>);
  add(table,
      "aten::replication_pad1d_backward aten::replication_pad2d_backward "
      "aten::replication_pad3d_backward",
      padded_backward<R::replication_pad>);
  add(table, "aten::grid_sampler_2d aten::cudnn_grid_sampler", sampled);
  add(table, "aten::grid_sampler_2d_backward", sampled_backward);
  add(table, "aten::im2col", unfolded);
  add(table, "aten::col2im", folded);
  add(table, "aten::pixel_shuffle aten::pixel_unshuffle", shuffled);
}

}  // namespace ridgeline::trace
