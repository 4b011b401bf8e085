// The fields of every operation, each named once: hashes, op traces and their checks are generic over this list.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sim/units/word_list.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Names of an enumeration's values in files, in the order of the enumerators.
template <typename... Words>
constexpr std::array<std::string_view, sizeof...(Words)> word_list(Words... each) {
  return {std::string_view(each)...};
}
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kWords{};
template <>
inline constexpr auto kWords<Layout> = word_list("nn", "nt", "tn", "tt");
template <>
inline constexpr auto kWords<SparseOperand> = word_list("none", "a", "b");
template <>
inline constexpr auto kWords<Scaling> = word_list("none", "tensor_fast", "tensor", "rows_fast");
template <>
inline constexpr auto kWords<LibraryKernel::Instructions> = word_list("none", "wgmma", "mma_sync", "simt");
template <>
inline constexpr auto kWords<Walk> = word_list("contiguous", "broadcast_row", "broadcast", "strided", "transposed");
template <>
inline constexpr auto kWords<CopyKind> = word_list("contiguous", "permute", "transpose", "concatenate",
                                                   "concatenate_strided", "host_to_device", "device_to_host",
                                                   "pageable_to_device", "device_to_pageable");
template <>
inline constexpr auto kWords<ReductionKind> = word_list("sum_rows", "sum_cols", "mean_cols", "sum_all", "norm_all",
                                                        "scan_rows", "scan_cols");
template <>
inline constexpr auto kWords<Accumulator> = word_list("number", "place", "moments", "groups");
template <>
inline constexpr auto kWords<AttentionBackend> = word_list("flash", "cudnn", "efficient", "math");
template <>
inline constexpr auto kWords<MultiTensorFunction> = word_list("add", "mul", "lerp", "addcmul", "addcdiv", "square_root",
                                                              "divide", "norm", "unscale", "fused_adamw", "fused_adam",
                                                              "fused_sgd", "add_scalar", "copy");
template <>
inline constexpr auto kWords<ConvolutionGradients> = word_list("both", "input", "weight");
template <>
inline constexpr auto kWords<ImageFunction> = word_list("batch_norm", "relu", "max_pool2d", "upsample_nearest2d",
                                                        "avg_pool2d");
template <>
inline constexpr auto kWords<ResamplingFunction> = word_list("nearest", "linear", "bilinear", "bicubic",
                                                             "reflection_pad", "replication_pad", "grid_nearest",
                                                             "grid_bilinear", "unfold", "fold");
template <>
inline constexpr auto kWords<FusedKernel::Shape> = word_list("pointwise", "rows", "long_rows", "columns");
template <>
inline constexpr auto kWords<CollectiveKind> = word_list("all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                         "reduce", "all_to_all", "send_recv", "barrier", "peer_copy");
template <>
inline constexpr auto kWords<GroupKind> = word_list("data", "replicate", "shard", "tensor", "pipeline", "context",
                                                    "expert", "model", "embedding", "expert_data");

template <typename Enum>
requires std::is_enum_v<Enum>
constexpr std::span<const std::string_view> names_of(Enum) {
  static_assert(!kWords<Enum>.empty(), "an enumeration of an operation's field has names");
  return kWords<Enum>;
}
/// Point-wise functions are named by their rows (pointwise_functions.h).
std::span<const std::string_view> names_of(PointwiseFunction);
template <typename Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view word_of(Enum value) { return names_of(value)[static_cast<std::size_t>(value)]; }

template <std::size_t Size>
struct NameText {
  constexpr NameText(const char (&text)[Size]) { std::copy_n(text, Size, characters); }  // NOLINT: a literal is given
  char characters[Size]{};
  [[nodiscard]] constexpr std::string_view view() const { return {characters, Size - 1}; }
};
struct FieldName {
  std::string_view name;
  bool optional = false;
};
template <std::size_t Count>
consteval std::array<FieldName, Count> split_names(std::string_view text) {
  const std::array<std::string_view, Count> words = split_words<Count>(text);
  std::array<FieldName, Count> names;
  for (std::size_t i = 0; i < Count; ++i) {
    const bool optional = words[i].ends_with('?');
    names[i] = {words[i].substr(0, words[i].size() - (optional ? 1 : 0)), optional};
  }
  return names;
}
/// References to all fields of an operation, its kind as op traces name it, and the fields' names there.
template <NameText Kind, NameText Names, typename... Values>
struct DescribedFields {
  static constexpr std::string_view kKind = Kind.view();
  static constexpr auto kNames = split_names<sizeof...(Values)>(Names.view());
  std::tuple<Values&...> values;
};
template <NameText Kind, NameText Names, typename... Values>
DescribedFields<Kind, Names, Values...> described(Values&... values) {
  return {{values...}};
}
template <typename Given, typename Kind>
concept Like = std::same_as<std::remove_const_t<Given>, Kind>;

// Fields in the order of a line of an op trace. Files may leave out a field "name?" that is as in a fresh operation.
auto fields(Like<Matmul> auto& op) {
  return described<"matmul",
                   "type batch m n k layout bias sparse? scaling? instructions? tile_m? tile_n? tile_k? "
                   "stages? splits? summed? grouped?">(
      op.type, op.batch, op.m, op.n, op.k, op.layout, op.bias, op.sparse, op.scaling, op.ran.instructions, op.ran.m,
      op.ran.n, op.ran.k, op.ran.stages, op.ran.splits, op.ran.summed, op.grouped);
}
auto fields(Like<Pointwise> auto& op) {
  return described<"pointwise", "function rows cols input_count input0 input1 input2 output walk walked?">(
      op.function, op.rows, op.cols, op.input_count, op.inputs[0], op.inputs[1], op.inputs[2], op.output, op.walk,
      op.walked.list);
}
auto fields(Like<Copy> auto& op) {
  return described<"copy", "copy type rows cols parts dimensions? walked?">(op.kind, op.type, op.rows, op.cols,
                                                                            op.parts, op.dimensions, op.walked.list);
}
auto fields(Like<Softmax> auto& op) {
  return described<"softmax", "log backward input output rows cols inner?">(op.log, op.backward, op.input, op.output,
                                                                            op.rows, op.cols, op.inner);
}
auto fields(Like<Norm> auto& op) {
  return described<"norm", "rms backward bias type rows cols">(op.rms, op.backward, op.bias, op.type, op.rows, op.cols);
}
auto fields(Like<Reduction> auto& op) {
  return described<"reduction", "reduction type rows cols accumulator? inner? scattered?">(
      op.kind, op.type, op.rows, op.cols, op.accumulator, op.inner, op.scattered);
}
auto fields(Like<Dropout> auto& op) { return described<"dropout", "type elements">(op.type, op.elements); }
auto fields(Like<Embedding> auto& op) {
  return described<"embedding", "backward type tokens vocabulary hidden accumulates? bags?">(
      op.backward, op.type, op.tokens, op.vocabulary, op.hidden, op.accumulates, op.bags);
}
auto fields(Like<Attention> auto& op) {
  return described<"attention",
                   "backend backward causal dropout type batch heads kv_heads seq_q seq_k head_dim head_major "
                   "bias? lengths?">(op.backend, op.backward, op.causal, op.dropout, op.type, op.batch, op.heads,
                                     op.kv_heads, op.seq_q, op.seq_k, op.head_dim, op.head_major, op.bias,
                                     op.lengths.list);
}
auto fields(Like<NllLoss> auto& op) {
  return described<"nll_loss", "backward type rows classes">(op.backward, op.type, op.rows, op.classes);
}
auto fields(Like<MultiTensor> auto& op) {
  return described<"multi_tensor", "function type sizes scalar_per_tensor">(op.function, op.type, op.sizes,
                                                                            op.scalar_per_tensor);
}
auto fields(Like<Convolution> auto& op) {
  return described<"convolution",
                   "backward channels_last transposed type batch in_channels size out_channels kernel stride "
                   "instructions? transformed? weights_instructions? weights_transformed? groups? width? "
                   "kernel_width? stride_width? out_size? out_width? gradients?">(
      op.backward, op.channels_last, op.transposed, op.type, op.batch, op.in_channels, op.size, op.out_channels,
      op.kernel, op.stride, op.ran.instructions, op.ran.transformed, op.ran_weights.instructions,
      op.ran_weights.transformed, op.groups, op.width, op.kernel_width, op.stride_width, op.out_size, op.out_width,
      op.gradients);
}
auto fields(Like<ImageOp> auto& op) {
  return described<"image",
                   "function backward channels_last type batch channels size width? window? stride? out_size? "
                   "out_width? evaluation?">(op.function, op.backward, op.channels_last, op.type, op.batch, op.channels,
                                             op.size, op.width, op.window, op.stride, op.out_size, op.out_width,
                                             op.evaluation);
}
auto fields(Like<Memset> auto& op) { return described<"memset", "bytes">(op.bytes); }
auto fields(Like<UnknownOp> auto& op) {
  return described<"unknown", "name read_bytes written_bytes">(op.name, op.read_bytes, op.written_bytes);
}
auto fields(Like<FusedKernel> auto& op) {
  return described<"fused_kernel", "name shape rows cols type arithmetic gathers column_results reads writes">(
      op.name, op.shape, op.rows, op.cols, op.type, op.arithmetic, op.gathers, op.column_results, op.reads, op.writes);
}
auto fields(Like<Sort> auto& op) {
  return described<"sort", "type rows cols kept key_bits">(op.type, op.rows, op.cols, op.kept, op.key_bits);
}
auto fields(Like<Collective> auto& op) {
  return described<"collective", "collective group type ranks bytes">(op.kind, op.group, op.type, op.ranks, op.bytes);
}
auto fields(Like<Resampling> auto& op) {
  return described<"resampling", "resampling backward channels_last type batch channels inputs outputs taps">(
      op.function, op.backward, op.channels_last, op.type, op.batch, op.channels, op.inputs, op.outputs, op.taps);
}

/// Kinds in the order of the alternatives of Op.
inline constexpr auto kKindNames = []<std::size_t... I>(std::index_sequence<I...>) {
  return word_list(decltype(fields(std::declval<std::variant_alternative_t<I, Op>&>()))::kKind...);
}
(std::make_index_sequence<std::variant_size_v<Op>>());

/// Calls `v(name, field)` for every field of the operation, `v.unless(name, field, usual)` for optional ones.
template <typename Kind, typename Visit>
void for_each_field_of(Kind& op, Visit&& v) {
  static const std::remove_const_t<Kind> fresh{};
  const auto given = fields(op);
  const auto usual = fields(fresh);
  const auto one = [&](FieldName field, auto& value, const auto& as_usual) {
    if (field.optional) v.unless(field.name, value, as_usual);
    else v(field.name, value);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(given.kNames[I], std::get<I>(given.values), std::get<I>(usual.values)), ...);
  }
  (std::make_index_sequence<given.kNames.size()>());
}
/// The same of the operation held.
template <typename AnyOp, typename Visit>
void for_each_field(AnyOp& op, Visit&& v) {
  std::visit([&](auto& held) { for_each_field_of(held, v); }, op);
}

}  // namespace ridgeline
