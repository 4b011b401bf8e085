#include "sim/workload/op_operands.h"

namespace ridgeline {
namespace {

struct Counter {
  OperandCounts operator()(const auto&) const { return {1, 1}; }
  OperandCounts operator()(const Matmul& op) const { return {op.bias ? 3 : 2, 1}; }
  OperandCounts operator()(const Pointwise& op) const { return {op.input_count, 1}; }
  OperandCounts operator()(const Copy& op) const { return {concatenates(op.kind) ? static_cast<int>(op.parts) : 1, 1}; }
  OperandCounts operator()(const Softmax& op) const { return {op.backward ? 2 : 1, 1}; }
  OperandCounts operator()(const Norm& op) const {
    const int affine = op.bias && !op.rms ? 2 : 1, statistics = op.rms ? 1 : 2;
    return op.backward ? OperandCounts{3 + statistics, 1 + affine} : OperandCounts{1 + affine, 1 + statistics};
  }
  OperandCounts operator()(const Dropout&) const { return {1, 2}; }
  OperandCounts operator()(const Embedding&) const { return {2, 1}; }
  OperandCounts operator()(const Attention& op) const {
    const int bias = op.bias ? 1 : 0;
    return op.backward ? OperandCounts{6 + bias, 3} : OperandCounts{3 + bias, 2};
  }
  OperandCounts operator()(const NllLoss&) const { return {2, 1}; }
  OperandCounts operator()(const MultiTensor&) const { return {0, 0}; }
  OperandCounts operator()(const Convolution& op) const {
    return op.backward && op.gradients == ConvolutionGradients::both ? OperandCounts{3, 2} : OperandCounts{2, 1};
  }
  OperandCounts operator()(const ImageOp& op) const {
    return {op.backward && op.function != ImageFunction::upsample_nearest2d ? 2 : 1, 1};
  }
  OperandCounts operator()(const Memset&) const { return {0, 1}; }
  OperandCounts operator()(const Sort&) const { return {1, 2}; }
  /// A grid's gradient is not modelled.
  OperandCounts operator()(const Resampling& op) const {
    const bool sampled =
        op.function == ResamplingFunction::grid_nearest || op.function == ResamplingFunction::grid_bilinear;
    return {(sampled ? 2 : 1) + (sampled && op.backward ? 1 : 0), 1};
  }
  OperandCounts operator()(const Collective& op) const { return {op.kind == CollectiveKind::barrier ? 0 : 1, 1}; }
  OperandCounts operator()(const FusedKernel& op) const {
    return {static_cast<int>(op.reads.size()), static_cast<int>(op.writes.size())};
  }
};

}  // namespace

OperandCounts operand_counts(const Op& op) { return std::visit(Counter{}, op); }

int rotating_operands(const Op& op) {
  int count = operand_counts(op).inputs;
  if (const auto* copy = std::get_if<Copy>(&op); copy && copy->kind == CopyKind::contiguous) ++count;
  if (const auto* pointwise = std::get_if<Pointwise>(&op); pointwise && pointwise->function == PointwiseFunction::fill)
    ++count;
  return count;
}

double partly_used_bytes(const Op& op) {
  const auto* embedding = std::get_if<Embedding>(&op);
  if (embedding == nullptr || embedding->backward) return 0.0;
  return static_cast<double>(embedding->vocabulary) *
             static_cast<double>(embedding->hidden * bytes_of(embedding->type)) +
         8.0 * static_cast<double>(embedding->tokens);
}

}  // namespace ridgeline
