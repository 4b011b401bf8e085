#include "sim/trace/aten/aten_call_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/workload/pointwise_functions.h"

namespace ridgeline::trace {
namespace {

using Extents = std::vector<std::int64_t>;

AtenTensor tensor(DType type, Extents sizes, Extents strides = {}) {
  AtenTensor result;
  result.type = type;
  result.sizes = std::move(sizes);
  result.strides = std::move(strides);
  return result;
}
double number(std::int64_t value) { return static_cast<double>(value); }
Argument none() { return {}; }

/// A factor of a product: [rows, cols], lying as is or transposed.
AtenTensor factor(DType type, std::int64_t batch, std::int64_t rows, std::int64_t cols, bool transposed) {
  Extents sizes{rows, cols}, strides = transposed ? Extents{1, rows} : Extents{cols, 1};
  if (batch > 1) {
    sizes.insert(sizes.begin(), batch);
    strides.insert(strides.begin(), rows * cols);
  }
  return tensor(type, std::move(sizes), std::move(strides));
}

/// Rows of a larger matrix: neither dense nor contiguous.
AtenTensor part_of_rows(DType type, std::int64_t rows, std::int64_t cols) {
  return tensor(type, {rows, cols}, {2 * cols, 1});
}

Extents channels_last_strides(const Extents& s) { return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}; }
AtenTensor image(DType type, Extents sizes, bool channels_last) {
  Extents strides = channels_last ? channels_last_strides(sizes) : Extents{};
  return tensor(type, std::move(sizes), std::move(strides));
}

/// The n-th operand of a point-wise operation, lying as its walk says.
AtenTensor operand(const Pointwise& op, std::size_t i) {
  const bool last = i + 1 == op.input_count;
  if (last && i > 0 && op.walk == Walk::broadcast_row) return tensor(op.inputs[i], {op.cols});
  if (last && i > 0 && op.walk == Walk::broadcast) return tensor(op.inputs[i], {op.rows, 1});
  if (last && op.walk == Walk::strided) return part_of_rows(op.inputs[i], op.rows, op.cols);
  if (last && op.walk == Walk::transposed) return factor(op.inputs[i], 1, op.rows, op.cols, true);
  return tensor(op.inputs[i], {op.rows, op.cols});
}

/// Arguments as Python writes them: "None, 1.0", "'tanh'", "[1]".
std::vector<Argument> arguments_of(std::string_view text) {
  std::vector<Argument> arguments;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(", "));
    text.remove_prefix(std::min(word.size() + 2, text.size()));
    const std::string inside(word.substr(1, word.size() - std::min<std::size_t>(2, word.size())));
    if (word == "None") arguments.push_back(none());
    else if (word.front() == '\'') arguments.emplace_back(inside);
    else if (word.front() == '[') arguments.emplace_back(Numbers{std::stod(inside)});
    else arguments.emplace_back(std::stod(std::string(word)));
  }
  return arguments;
}

struct CallOf {
  AtenCall call{};

  void named(std::string_view name) { call.name = name; }
  void add(Argument argument) { call.inputs.push_back(std::move(argument)); }
  void add(std::initializer_list<Argument> arguments) { call.inputs.insert(call.inputs.end(), arguments); }

  void operator()(const Matmul& op) {
    const bool scaled = op.scaling != Scaling::none;
    const DType type = scaled ? DType::uint8 : op.type;  // no type of a recording is fp8: bytes
    named(scaled                       ? "aten::_scaled_mm"
          : op.grouped && op.batch > 1 ? "aten::_grouped_mm"
          : op.batch > 1               ? "aten::bmm"
          : op.bias                    ? "aten::addmm"
                                       : "aten::mm");
    if (op.bias && op.batch == 1) add(tensor(op.type, {op.n}));
    const bool a = op.layout == Layout::tn || op.layout == Layout::tt,
               b = op.layout == Layout::nt || op.layout == Layout::tt;
    add({factor(type, op.batch, op.m, op.k, a), factor(type, op.batch, op.k, op.n, b)});
    if (op.bias && op.batch == 1) add({1.0, 1.0});
  }
  /// Elements by the indices of another tensor, read or (with two inputs) stored.
  void indexed(const Pointwise& op) {
    const bool stores = op.input_count > 1;
    if (op.function == PointwiseFunction::gather) {
      const AtenTensor x = tensor(op.output, {op.rows, op.cols}), indices = tensor(DType::int64, {op.rows, op.cols});
      named(stores ? "aten::scatter_" : "aten::gather");
      add({x, 1.0, indices});
      if (stores) add(x);
      return;
    }
    const AtenTensor x = tensor(op.output, {op.elements()});
    named(stores ? "aten::_index_put_impl_" : "aten::index");
    const AtenTensor places = tensor(DType::int64, {op.elements()});
    add({x, op.function == PointwiseFunction::index_pairs ? TensorList{places, places} : TensorList{places}});
    if (stores) add({x, 0.0, 0.0});
  }
  void operator()(const Pointwise& op) {
    using F = PointwiseFunction;
    if (op.function == F::index || op.function == F::gather || op.function == F::index_pairs) return indexed(op);
    const PointwiseRow::Call& row = row_of(op.function).call;
    constexpr std::array<std::string_view, 4> kOfSeveral{"aten::fill_", "aten::exp", "aten::masked_fill_",
                                                         "aten::addcmul"};
    named(row.name().empty() ? kOfSeveral[std::min<std::size_t>(op.input_count, 3)] : row.name());
    if (op.function == PointwiseFunction::arange)
      return add({0.0, number(op.elements()), none(), none(), none(), none()});
    if (op.function == PointwiseFunction::fill || op.function == PointwiseFunction::cast)
      add(tensor(op.output, {op.rows, op.cols}));
    for (std::size_t i = 0; i < op.input_count; ++i) add(operand(op, i));
    for (const std::string_view more : {op.input_count > 1 ? std::string_view() : row.number, row.more})
      for (Argument& argument : arguments_of(more)) add(std::move(argument));
  }
  void operator()(const Copy& op) {
    const AtenTensor to = tensor(op.type, {op.rows, op.cols});
    AtenTensor from = to;
    if (concatenates(op.kind)) {
      named("aten::cat");
      const bool strided = op.kind == CopyKind::concatenate_strided;
      const AtenTensor part = strided ? part_of_rows(op.type, op.rows, op.cols) : to;
      return add({TensorList(static_cast<std::size_t>(op.parts), part), 1.0});
    }
    if (op.kind == CopyKind::device_to_host && op.rows * op.cols == 1) {
      named("aten::_local_scalar_dense");
      return add(tensor(op.type, {}));
    }
    if (op.walked.any()) return copied_view(op);
    if (op.kind == CopyKind::permute) from = part_of_rows(op.type, op.rows, op.cols);
    if (op.kind == CopyKind::transpose) from.strides = {1, op.rows};
    named("aten::copy_");
    add({to, from, 0.0});
  }
  /// Into a contiguous tensor of the dimensions walked.
  void copied_view(const Copy& op) {
    AtenTensor from = tensor(op.type, {}), to = from;
    for (std::size_t d = op.walked.list->size(); d >= 2; d -= 2) {
      from.sizes.push_back((*op.walked.list)[d - 2]);
      from.strides.push_back((*op.walked.list)[d - 1]);
    }
    to.sizes = from.sizes;
    named("aten::copy_");
    add({to, from, 0.0});
  }
  void operator()(const Softmax& op) {
    named(op.backward ? (op.log ? "aten::_log_softmax_backward_data" : "aten::_softmax_backward_data")
                      : (op.log ? "aten::_log_softmax" : "aten::_softmax"));
    const AtenTensor x = tensor(op.input, {op.rows, op.cols});
    if (!op.backward) return add({x, -1.0, op.input != op.output ? 1.0 : 0.0});
    const double type = op.output == DType::bf16 ? 15.0 : op.output == DType::fp16 ? 5.0 : 6.0;
    add({x, x, -1.0, type});
  }
  void operator()(const Norm& op) {
    const AtenTensor x = tensor(op.type, {op.rows, op.cols}), weight = tensor(op.type, {op.cols}),
                     moments = tensor(DType::fp32, {op.rows, 1});
    const Argument shape = Numbers{number(op.cols)}, bias = op.bias ? Argument(weight) : none();
    named(fmt::format("aten::{}{}", op.rms ? "_fused_rms_norm" : "native_layer_norm", op.backward ? "_backward" : ""));
    if (!op.backward && op.rms) return add({x, shape, weight, 1e-6});
    if (!op.backward) return add({x, shape, weight, bias, 1e-5});
    if (op.rms) return add({x, x, shape, moments, weight, Numbers{1.0, 1.0}});
    add({x, x, shape, moments, moments, weight, bias, Numbers{1.0, 1.0, op.bias ? 1.0 : 0.0}});
  }
  void operator()(const Reduction& op) {
    const AtenTensor x = tensor(op.type, {op.rows, op.cols});
    switch (op.kind) {
      case ReductionKind::sum_rows: named("aten::sum"), add({x, Numbers{0.0}, 1.0, none()}); return;
      case ReductionKind::sum_cols: named("aten::sum"), add({x, Numbers{1.0}, 1.0, none()}); return;
      case ReductionKind::mean_cols: named("aten::mean"), add({x, Numbers{1.0}, 1.0, none()}); return;
      case ReductionKind::sum_all: named("aten::sum"), add({x, none()}); return;
      case ReductionKind::norm_all: named("aten::linalg_vector_norm"), add({x, 2.0, none(), 0.0, none()}); return;
      case ReductionKind::scan_rows: named("aten::cumsum"), add({x, 0.0, none()}); return;
      case ReductionKind::scan_cols: named("aten::cumsum"), add({x, 1.0, none()}); return;
    }
  }
  void operator()(const Dropout& op) { named("aten::native_dropout"), add({tensor(op.type, {op.elements}), 0.1, 1.0}); }
  void operator()(const Embedding& op) {
    const AtenTensor indices = tensor(DType::int64, {op.tokens});
    if (op.accumulates) {
      named("aten::_index_put_impl_");
      add({tensor(op.type, {op.vocabulary, op.hidden}), TensorList{indices}, tensor(op.type, {op.tokens, op.hidden}),
           1.0, 0.0});
      return;
    }
    named(op.backward ? "aten::embedding_dense_backward" : "aten::embedding");
    if (op.backward) add({tensor(op.type, {op.tokens, op.hidden}), indices, number(op.vocabulary), -1.0, 0.0});
    else add({tensor(op.type, {op.vocabulary, op.hidden}), indices, -1.0, 0.0, 0.0});
  }
  void operator()(const Attention& op) {
    const auto of = [&](std::int64_t heads, std::int64_t seq) {
      return tensor(
          op.type, {op.batch, heads, seq, op.head_dim},
          op.head_major ? Extents{} : Extents{seq * heads * op.head_dim, op.head_dim, heads * op.head_dim, 1});
    };
    const std::int64_t kv = op.kv_heads > 0 ? op.kv_heads : op.heads;
    if (op.lengths.any()) return packed(op, kv);
    const AtenTensor q = of(op.heads, op.seq_q), k = of(kv, op.seq_k);
    const AtenTensor statistics = tensor(DType::fp32, {op.batch, op.heads, op.seq_q});
    const Argument dropout = op.dropout ? 0.1 : 0.0, causal = op.causal ? 1.0 : 0.0;
    const Argument bias = op.bias ? Argument(tensor(op.type, {op.batch, op.heads, op.seq_q, op.seq_k})) : none();
    const char* const backend = op.backend == AttentionBackend::flash   ? "flash"
                                : op.backend == AttentionBackend::cudnn ? "cudnn"
                                                                        : "efficient";
    named(fmt::format("aten::_scaled_dot_product_{}_attention{}", backend, op.backward ? "_backward" : ""));
    if (op.backward) add(q);
    add({q, k, k});
    const bool flash = op.backend == AttentionBackend::flash, efficient = op.backend == AttentionBackend::efficient;
    if (!op.backward) {
      if (flash) add({dropout, causal, 0.0, none()});
      else add({bias, 1.0, dropout, causal, 0.0, none()});
    } else if (flash) {
      add({q, statistics, none(), none(), number(op.seq_q), number(op.seq_k), dropout, causal, none(), none(), none()});
    } else if (efficient) {
      add({bias, q, statistics, none(), none(), dropout, Numbers{1.0, 1.0, 1.0, 0.0}, causal, none()});
    } else {
      add({q, statistics, none(), none(), bias, none(), none(), number(op.seq_q), number(op.seq_k), dropout, causal,
           none()});
    }
  }
  /// By cumulative lengths, whose numbers no call says.
  void packed(const Attention& op, std::int64_t kv) {
    const auto& lengths = *op.lengths.list;
    const std::int64_t tokens = op.batch * op.seq_q;
    const AtenTensor q = tensor(op.type, {tokens, op.heads, op.head_dim}),
                     k = tensor(op.type, {tokens, kv, op.head_dim});
    const AtenTensor ends = tensor(DType::int32, {op.batch * static_cast<std::int64_t>(lengths.size()) + 1});
    const Argument longest = number(*std::max_element(lengths.begin(), lengths.end()));
    named(op.backward ? "aten::_flash_attention_backward" : "aten::_flash_attention_forward");
    if (op.backward) add(q);
    add({q, k, k});
    if (op.backward) add({q, tensor(DType::fp32, {op.heads, tokens})});
    add({ends, ends, longest, longest, op.dropout ? 0.1 : 0.0, op.causal ? 1.0 : 0.0, none(), none()});
  }
  void operator()(const NllLoss& op) {
    const AtenTensor x = tensor(op.type, {op.rows, op.classes}), target = tensor(DType::int64, {op.rows});
    named(op.backward ? "aten::nll_loss_backward" : "aten::nll_loss_forward");
    if (op.backward) add({tensor(op.type, {}), x, target, none(), 1.0, -100.0, tensor(op.type, {})});
    else add({x, target, none(), 1.0, -100.0});
  }
  void operator()(const MultiTensor& op) {
    TensorList list;
    if (op.sizes)
      for (const std::int64_t size : *op.sizes) list.push_back(tensor(op.type, {size}));
    using M = MultiTensorFunction;
    switch (op.function) {
      case M::add: named("aten::_foreach_add_"), add({list, list, 1.0}); return;
      case M::mul: named("aten::_foreach_mul_"), add({list, 0.9}); return;
      case M::lerp: named("aten::_foreach_lerp_"), add({list, list, 0.1}); return;
      case M::addcmul: named("aten::_foreach_addcmul_"), add({list, list, list, 0.001}); return;
      case M::addcdiv: named("aten::_foreach_addcdiv_"), add({list, list, list, none()}); return;
      case M::square_root: named("aten::_foreach_sqrt"), add(list); return;
      case M::divide: named("aten::_foreach_div_"), add({list, none()}); return;
      case M::norm: named("aten::_foreach_norm"), add({list, 2.0, none()}); return;
      case M::unscale: named("aten::_amp_foreach_non_finite_check_and_unscale_"), add(list); return;
      case M::fused_adamw: named("aten::_fused_adamw_"), add({list, list, list, list}); return;
      case M::fused_adam: named("aten::_fused_adam_"), add({list, list, list, list}); return;
      case M::fused_sgd: named("aten::_fused_sgd_"), add({list, list, list}); return;
      case M::add_scalar: named("aten::_foreach_add_"), add({list, 1e-8}); return;
      case M::copy: named("aten::_foreach_copy_"), add({list, list}); return;
    }
  }
  void operator()(const Convolution& op) {
    const AtenTensor large = image(op.type, {op.batch, op.in_channels, op.size, op.columns()}, op.channels_last),
                     small =
                         image(op.type, {op.batch, op.out_channels, op.out_rows(), op.out_columns()}, op.channels_last);
    const AtenTensor &x = op.transposed ? small : large, &y = op.transposed ? large : small;
    const AtenTensor weight =
        image(op.type, {op.out_channels, op.in_channels / op.groups, op.kernel, op.kernel_columns()},
              op.channels_last && op.taps() > 1);
    const auto padding_of = [](std::int64_t image, std::int64_t window, std::int64_t step, std::int64_t out) {
      return number(std::max<std::int64_t>(0, ((out - 1) * step + window - image + 1) / 2));
    };
    const Argument stride = Numbers{number(op.stride), number(op.stride_columns())},
                   padding =
                       Numbers{padding_of(op.size, op.kernel, op.stride, op.out_rows()),
                               padding_of(op.columns(), op.kernel_columns(), op.stride_columns(), op.out_columns())},
                   dilation = Numbers{1.0, 1.0}, output_padding = Numbers{0.0, 0.0},
                   transposed = op.transposed ? 1.0 : 0.0, groups = number(op.groups);
    named(op.backward ? "aten::convolution_backward" : "aten::convolution");
    if (!op.backward) return add({x, weight, none(), stride, padding, dilation, transposed, output_padding, groups});
    add({y, x, weight, Numbers{0.0}, stride, padding, dilation, transposed, output_padding, groups,
         Numbers{op.gradients != ConvolutionGradients::weight ? 1.0 : 0.0,
                 op.gradients != ConvolutionGradients::input ? 1.0 : 0.0, 0.0}});
  }
  void operator()(const ImageOp& op) {
    const AtenTensor x = image(op.type, {op.batch, op.channels, op.size, op.columns()}, op.channels_last);
    const std::int64_t rows = std::max<std::int64_t>(1, op.out_rows()),
                       columns = std::max<std::int64_t>(1, op.out_columns());
    const AtenTensor small = image(op.type, {op.batch, op.channels, rows, columns}, op.channels_last);
    const std::int64_t window = op.window > 0 ? op.window : 2, step = op.stride > 0 ? op.stride : window;
    const Numbers windows{number(window), number(window)}, steps{number(step), number(step)};
    const AtenTensor weight = tensor(DType::fp32, {op.channels});
    switch (op.function) {
      case ImageFunction::batch_norm:
        if (op.backward && op.evaluation)
          named("aten::native_batch_norm_backward"), add({x, x, weight, weight, weight, none(), none(), 0.0, 1e-5});
        else if (op.backward) named("aten::cudnn_batch_norm_backward"), add({x, x, weight});
        else
          named("aten::cudnn_batch_norm"),
              add({x, weight, weight, weight, weight, op.evaluation ? 0.0 : 1.0, 0.1, 1e-5});
        return;
      case ImageFunction::relu:
        if (op.backward) named("aten::threshold_backward"), add({x, x, 0.0});
        else named("aten::relu_"), add(x);
        return;
      case ImageFunction::max_pool2d:
        if (op.backward) named("aten::max_pool2d_with_indices_backward"), add({small, x, windows, steps});
        else named("aten::max_pool2d_with_indices"), add({x, windows, steps});
        return;
      case ImageFunction::avg_pool2d:
        if (op.backward) named("aten::avg_pool2d_backward"), add({small, x, windows, steps});
        else named("aten::avg_pool2d"), add({x, windows, steps});
        return;
      case ImageFunction::upsample_nearest2d: {
        const Numbers sides{number(op.size), number(op.columns())};
        if (!op.backward) return named("aten::upsample_nearest2d"), add({small, sides, none(), none()});
        named("aten::upsample_nearest2d_backward");
        return add({x, sides, Numbers{number(op.batch), number(op.channels), number(rows), number(columns)}});
      }
    }
  }
  void operator()(const Resampling& op) { call = resampling_call(op); }
  void operator()(const Sort& op) {
    const AtenTensor x = tensor(op.type, {op.rows, op.cols});
    if (op.kept > 0) return named("aten::topk"), add({x, number(op.kept), 1.0, 1.0, 1.0});
    named("aten::sort"), add({x, 1.0, 0.0});
  }
  void operator()(const Memset& op) { named("aten::zero_"), add(tensor(DType::uint8, {op.bytes})); }
  void operator()(const Collective& op) { named(fmt::format("c10d::{}_", name_of(op.kind))); }
  /// Operations that no call of the dispatcher stands for.
  void operator()(const auto& op) { named(name_of(Op(op))); }
};

}  // namespace

AtenCall aten_call_of(const Op& op) {
  CallOf visitor;
  std::visit(visitor, op);
  return std::move(visitor.call);
}

std::string_view aten_name_of(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::tf32: return "float";
    case DType::bf16: return "c10::BFloat16";
    case DType::fp16: return "c10::Half";
    case DType::fp64: return "double";
    case DType::int64: return "long int";
    case DType::int32: return "int";
    case DType::uint8: return "unsigned char";
    case DType::boolean: return "bool";
  }
  return "float";
}

}  // namespace ridgeline::trace
