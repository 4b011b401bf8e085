// The call of the dispatcher that runs an interpolation, a padding, a sampling or an unfolding.
#include <fmt/format.h>

#include "sim/trace/aten/aten_call_of.h"
#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {

/// One row of pixels: what images of two dimensions are made of depends on no side alone.
AtenCall resampling_call(const Resampling& op) {
  AtenCall call;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const auto none = [] { return Argument{}; };
  const auto named = [&](std::string_view name) { call.name = name; };
  const auto add = [&](std::vector<Argument> arguments) {
    call.inputs.insert(call.inputs.end(), arguments.begin(), arguments.end());
  };
  using R = ResamplingFunction;
  const AtenTensor x = fresh(op.type, {op.batch, op.channels, 1, op.inputs}),
                   y = fresh(op.type, {op.batch, op.channels, 1, op.outputs}),
                   grid = fresh(op.type, {op.batch, 1, op.outputs, 2});
  const Numbers in{number(op.batch), number(op.channels), 1.0, number(op.inputs)}, out{1.0, number(op.outputs)};
  const auto in_one_dimension = [&] {
    named(op.backward ? "aten::upsample_linear1d_backward" : "aten::upsample_linear1d");
    const AtenTensor small = fresh(op.type, {op.batch, op.channels, op.inputs}),
                     large = fresh(op.type, {op.batch, op.channels, op.outputs});
    const Numbers sizes{number(op.batch), number(op.channels), number(op.inputs)}, side{number(op.outputs)};
    if (op.backward) add({large, side, sizes, 0.0, none()});
    else add({small, side, 0.0, none()});
  };
  const auto scaled = [&](std::string_view name) {
    named(fmt::format("{}{}", name, op.backward ? "_backward" : ""));
    if (op.backward) add({y, out, in, 0.0, none(), none()});
    else add({x, out, 0.0, none(), none()});
  };
  const auto padded = [&](std::string_view name) {
    named(fmt::format("{}{}", name, op.backward ? "_backward" : ""));
    const Numbers widths{0.0, number(op.outputs - op.inputs), 0.0, 0.0};
    if (op.backward) add({y, x, widths});
    else add({x, widths});
  };
  const auto sampled = [&](double mode) {
    named(op.backward ? "aten::grid_sampler_2d_backward" : "aten::grid_sampler_2d");
    if (op.backward) add({y});
    add({x, grid, mode, 0.0, 0.0});
  };
  switch (op.function) {
    case R::nearest: scaled("aten::upsample_nearest2d"); break;
    case R::linear: in_one_dimension(); break;
    case R::bilinear: scaled("aten::upsample_bilinear2d"); break;
    case R::bicubic: scaled("aten::upsample_bicubic2d"); break;
    case R::reflection_pad: padded("aten::reflection_pad2d"); break;
    case R::replication_pad: padded("aten::replication_pad2d"); break;
    case R::grid_nearest: sampled(1.0); break;
    case R::grid_bilinear: sampled(0.0); break;
    case R::unfold:
    case R::fold: {
      const AtenTensor columns = fresh(op.type, {op.batch, op.channels * op.taps, op.outputs});
      const bool unfolds = op.function == R::unfold;
      named(unfolds ? "aten::im2col" : "aten::col2im");
      add({unfolds ? x : columns});
      if (!unfolds) add({Numbers{1.0, number(op.inputs)}});
      add({Numbers{1.0, number(op.taps)}, Numbers{1.0, 1.0}, Numbers{0.0, 0.0}, Numbers{1.0, 1.0}});
    }
  }
  return call;
}

}  // namespace ridgeline::trace
