// How point-wise kernels walk their operands: what of sizes and strides decides which kernel runs.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline::trace {

std::vector<std::int64_t> broadcast_sizes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> result = a.size() >= b.size() ? a : b;
  const auto& shorter = a.size() >= b.size() ? b : a;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    auto& size = result[result.size() - 1 - i];
    const std::int64_t other = shorter[shorter.size() - 1 - i];
    if (size == 1 || other == 0) size = other;
  }
  return result;
}

namespace {

bool same_layout(const AtenTensor& input, const AtenTensor& output) {
  if (input.contiguous() && output.contiguous()) return true;
  return input.strides == output.strides && output.dense();
}

/// Tells whether neighbours in the output's memory lie apart in the input's.
bool crosses(const AtenTensor& input, const AtenTensor& output) {
  const std::size_t rank = output.sizes.size();
  if (input.sizes != output.sizes || rank == 0) return false;
  const std::vector<std::int64_t> in = input.given_strides(), out = output.given_strides();
  std::size_t innermost = rank;
  for (std::size_t i = 0; i < rank; ++i)
    if (output.sizes[i] > 1 && (innermost == rank || out[i] < out[innermost])) innermost = i;
  return innermost < rank && in[innermost] > 1;
}

/// Dimensions over which a kernel repeats a smaller operand; none where they are two or fewer.
SizeList repeated(const AtenTensor& input, const AtenTensor& output) {
  const std::size_t rank = output.sizes.size();
  if (input.sizes.size() > rank) return {};
  const std::vector<std::int64_t> given = input.given_strides();
  std::vector<std::int64_t> strides(rank, 0);
  const std::size_t missing = rank - input.sizes.size();
  for (std::size_t i = missing; i < rank; ++i)
    if (input.sizes[i - missing] > 1) strides[i] = given[i - missing];
  SizeList walked = walked_dimensions(output.sizes, strides, output.given_strides());
  constexpr std::size_t kTwoDimensions = 4;
  return walked.list->size() > kTwoDimensions ? walked : SizeList{};
}

/// How operands lie relative to the result; sets rows and columns for a repeated row.
Walk walk_of(std::initializer_list<const AtenTensor*> inputs, const AtenTensor& output, Pointwise& op) {
  Walk walk = Walk::contiguous;
  SizeList of_smaller;
  const std::int64_t elements = output.elements();
  for (const AtenTensor* input : inputs) {
    if (input->elements() >= elements) {
      const bool across = crosses(*input, output);
      if (across) walk = Walk::transposed;
      else if (!same_layout(*input, output) && walk != Walk::transposed) walk = Walk::strided;
      else continue;
      if (input->sizes == output.sizes && (across || !op.walked.any()))
        op.walked = walked_dimensions(output.sizes, input->given_strides(), output.given_strides());
      continue;
    }
    if (!of_smaller.any()) of_smaller = repeated(*input, output);
    std::size_t matching = 0;  // dimensions from the innermost on that both have
    const std::size_t rank = input->sizes.size();
    while (matching < rank && input->last(matching) == output.last(matching)) ++matching;
    bool row = rank > 0;  // what does not match may only be repeated
    for (std::size_t i = matching; i < rank; ++i) row = row && input->last(i) == 1;
    if (row && input->contiguous() && output.contiguous()) {
      op.cols = input->elements();
      op.rows = elements / std::max<std::int64_t>(op.cols, 1);
      if (walk == Walk::contiguous) walk = Walk::broadcast_row;
    } else if (walk != Walk::strided && walk != Walk::transposed) {
      walk = Walk::broadcast;
    }
  }
  if (walk == Walk::broadcast || walk == Walk::broadcast_row) op.walked = of_smaller;
  return walk;
}

}  // namespace

MappedOp pointwise_op(PointwiseFunction function, std::initializer_list<const AtenTensor*> inputs, AtenTensor output) {
  Pointwise op;
  op.function = function;
  op.cols = output.last();
  op.rows = output.elements() / std::max<std::int64_t>(op.cols, 1);
  op.output = output.type;
  op.input_count = 0;
  for (DType& type : op.inputs) type = output.type;
  MappedOp mapped;
  for (const AtenTensor* input : inputs) {
    op.inputs[op.input_count++] = input->type;
    mapped.inputs.push_back(*input);
  }
  op.walk = walk_of(inputs, output, op);
  mapped.op = op;
  mapped.outputs.push_back(std::move(output));
  return mapped;
}

}  // namespace ridgeline::trace
