// Whether the operations of an op trace are as large as the tensors that they are called with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/workload/op_operands.h"
#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

/// Bytes of each operand that an operation reads or writes whole, inputs first; nothing: it may use a part of it, or
/// repeat it. Indices are counted in parts of longer lists.
struct OperandSizes {
  std::vector<std::optional<std::int64_t>> bytes;

  void add(std::int64_t elements, DType type) {
    if (type == DType::int64 || type == DType::int32) return any();
    bytes.emplace_back(elements * bytes_of(type));
  }
  void any() { bytes.emplace_back(); }
};

inline OperandSizes operand_sizes(const Pointwise& op) {
  OperandSizes s;
  for (int i = 0; i < op.input_count; ++i)
    // A sorted row that values are looked up in has any length.
    if (op.function == PointwiseFunction::search && i == 0) s.any();
    else if (op.walk == Walk::contiguous) s.add(op.elements(), op.inputs[i]);
    else s.any();
  // An element for each index is added to a tensor that may have fewer of them, or more.
  if (op.function == PointwiseFunction::scatter_add) s.any();
  else s.add(op.elements(), op.output);
  return s;
}
inline OperandSizes operand_sizes(const Softmax& op) {
  OperandSizes s;
  s.add(op.rows * op.cols, op.input);
  if (op.backward) s.add(op.rows * op.cols, op.input);
  s.add(op.rows * op.cols, op.output);
  return s;
}
inline OperandSizes operand_sizes(const Dropout& op) {
  OperandSizes s;
  s.add(op.elements, op.type);
  s.add(op.elements, op.type);
  s.add(op.elements, DType::boolean);
  return s;
}
inline OperandSizes operand_sizes(const Embedding& op) {
  OperandSizes s;
  if (op.backward) {
    if (op.bags > 0) s.add(op.bags * op.hidden, DType::fp32);
    else op.accumulates ? s.any() : s.add(op.tokens * op.hidden, op.type);
    s.any();
    s.any();
  } else {
    s.add(op.vocabulary * op.hidden, op.type);
    s.any();
    op.bags > 0 ? s.add(op.bags * op.hidden, DType::fp32) : s.add(op.tokens * op.hidden, op.type);
  }
  return s;
}
inline OperandSizes operand_sizes(const NllLoss& op) {
  OperandSizes s;
  op.backward ? s.add(1, op.type) : s.add(op.rows * op.classes, op.type);
  s.any();
  op.backward ? s.add(op.rows * op.classes, op.type) : s.add(1, op.type);
  return s;
}
inline OperandSizes operand_sizes(const ImageOp& op) {
  OperandSizes s;
  const std::int64_t n = op.batch * op.channels * op.pixels();
  switch (op.function) {
    case ImageFunction::batch_norm:
    case ImageFunction::relu:
      for (int i = 0; i < (op.backward ? 3 : 2); ++i) s.add(n, op.type);
      break;
    case ImageFunction::avg_pool2d:
    case ImageFunction::max_pool2d:  // of the larger image, of which backward asks for places alone
      if (op.backward) s.any(), s.any();
      s.add(n, op.type);
      break;
    case ImageFunction::upsample_nearest2d:  // of the larger image
      if (!op.backward) s.any();
      s.add(n, op.type);
      break;
  }
  return s;
}
template <typename Other>
OperandSizes operand_sizes(const Other&) {
  return {};
}

inline OperandSizes strict_sizes(const Norm& op) {
  OperandSizes s;
  const std::int64_t n = op.rows * op.cols;
  for (int i = 0; i < (op.backward ? 2 : 1); ++i) s.add(n, op.type);
  for (int i = 0; i < (op.bias && !op.rms && !op.backward ? 2 : 1); ++i) s.add(op.cols, op.type);
  const auto add_statistics = [&] {
    for (int i = 0; i < (op.rms ? 1 : 2); ++i) s.add(op.rows, DType::fp32);
  };
  if (op.backward) add_statistics();
  s.add(n, op.type);
  if (!op.backward) add_statistics();
  for (int i = 0; op.backward && i < (op.bias && !op.rms ? 2 : 1); ++i) s.add(op.cols, op.type);
  return s;
}
inline OperandSizes strict_sizes(const Reduction& op) {
  OperandSizes s;
  const std::int64_t n = op.rows * op.cols;
  s.add(n, op.type);
  switch (op.kind) {
    case ReductionKind::sum_rows: s.add(op.cols, op.type); break;
    case ReductionKind::sum_cols:
    case ReductionKind::mean_cols: s.add(op.rows, op.type); break;
    case ReductionKind::sum_all:
    case ReductionKind::norm_all: s.add(1, op.type); break;
    case ReductionKind::scan_rows:
    case ReductionKind::scan_cols: s.add(n, op.type); break;
  }
  return s;
}
inline OperandSizes strict_sizes(const Attention& op) {
  OperandSizes s;
  const std::int64_t queries = op.batch * op.heads * op.seq_q * op.head_dim,
                     keys = op.batch * op.kv_heads * op.seq_k * op.head_dim;
  if (op.backward) s.add(queries, op.type);
  for (const std::int64_t n : {queries, keys, keys}) s.add(n, op.type);
  if (op.backward) s.add(queries, op.type), s.any();  // statistics of rows, which some backends pad
  if (op.bias) s.any();
  s.add(queries, op.type);
  if (op.backward) s.add(keys, op.type), s.add(keys, op.type);
  else s.any();
  return s;
}
inline OperandSizes strict_sizes(const FusedKernel& op) {
  OperandSizes s;
  for (const auto* list : {&op.reads, &op.writes})
    for (const std::int64_t bytes : *list) s.bytes.emplace_back(bytes);
  return s;
}
template <typename Other>
OperandSizes strict_sizes(const Other& op) {
  return operand_sizes(op);
}

/// Of every operation, where its tensors are those of a call alone: in an op trace they may be views of fewer bytes,
/// parts of larger tensors, or of another type.
inline OperandSizes whole_operands(const Op& op) {
  OperandSizes s;
  if (const auto* product = std::get_if<Matmul>(&op)) {
    s.add(product->batch * product->m * product->k, product->type);
    s.add(product->batch * product->k * product->n, product->type);
    if (product->bias) s.add(product->n, product->type);
    s.add(product->batch * product->m * product->n, product->type);
    return s;
  }
  if (const auto* copy = std::get_if<Copy>(&op); copy && !leaves_device(copy->kind)) {
    const std::int64_t n = copy->rows * copy->cols, parts = concatenates(copy->kind) ? copy->parts : 1;
    for (std::int64_t i = 0; i < parts; ++i) s.add(n, copy->type);
    s.add(n * parts, copy->type);
    return s;
  }
  return std::visit([](const auto& one) { return strict_sizes(one); }, op);
}

/// The first call whose operation and tensors do not agree; "": none.
inline std::string first_of_another_size(const OpTrace& trace) {
  for (const Call& call : trace.calls) {
    const Op& op = trace.ops[call.op];
    const OperandSizes sizes = std::visit([](const auto& one) { return operand_sizes(one); }, op);
    if (const auto* copy = std::get_if<Copy>(&op); copy && !leaves_device(copy->kind) && copy->parts == 1) {
      const std::int64_t from = trace.operands[call.operands_begin].bytes,
                         to = trace.operands[call.operands_begin + 1].bytes,
                         moved = copy->rows * copy->cols * bytes_of(copy->type);
      if (moved != from && moved > to)
        return fmt::format("{} {} of layer {}: from {} bytes to {}, and the operation {}", name_of(op), shape_of(op),
                           call.layer, from, to, moved);
    }
    if (const auto* product = std::get_if<Matmul>(&op); product && product->sparse == SparseOperand::none) {
      const std::int64_t factor = trace.operands[call.operands_begin + 1].bytes,
                         read = product->batch * product->k * product->n * bytes_of(product->type);
      if (factor % read != 0 && read % factor != 0)  // experts' weights lie together, heads share keys
        return fmt::format("{} {} of layer {}: a factor of {} bytes, and the operation reads {}", name_of(op),
                           shape_of(op), call.layer, factor, read);
    }
    for (std::size_t i = 0; i < sizes.bytes.size() && i < std::size_t{call.inputs} + call.outputs; ++i) {
      const Operand& operand = trace.operands[call.operands_begin + i];
      if (sizes.bytes[i] && *sizes.bytes[i] != operand.bytes)
        return fmt::format("{} {} of layer {}: operand {} has {} bytes, and the operation {}", name_of(op),
                           shape_of(op), call.layer, i, operand.bytes, *sizes.bytes[i]);
    }
  }
  return {};
}

/// The run itself, after a look at it.
inline OpTrace checked(OpTrace trace) {
  EXPECT_EQ(first_of_another_size(trace), "");
  return trace;
}

}  // namespace ridgeline::testing_support
