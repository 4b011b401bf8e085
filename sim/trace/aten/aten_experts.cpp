// Experts as vLLM and SGLang serve them: tokens are dealt out by a softmax over the experts, their places are counted
// and rounded up to blocks, and one kernel multiplies each block by its expert's weights (fused_moe). Calls whose
// arguments hold the experts' weights say all but which experts are asked for: taken to be drawn uniformly.
#include <algorithm>
#include <cmath>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

/// Instructions an element beyond loading, converting and storing.
constexpr std::int64_t kOfSoftmax = 24, kOfCounting = 4, kOfGate = 12;

/// A kernel that goes through `over` row by row, or (`rows` false) an element at a time.
MappedOp served_kernel(const char* name, const AtenTensor& over, bool rows, std::int64_t arithmetic,
                       std::vector<AtenTensor> inputs, std::vector<AtenTensor> outputs) {
  FusedKernel op;
  op.name = name;
  op.shape = rows ? FusedKernel::Shape::rows : FusedKernel::Shape::pointwise;
  op.cols = rows ? over.last() : 1;
  op.rows = over.elements() / op.cols;
  op.type = over.type;
  op.arithmetic = arithmetic;
  for (const AtenTensor& input : inputs) op.reads.push_back(input.bytes());
  for (const AtenTensor& output : outputs) op.writes.push_back(output.bytes());
  return {op, std::move(inputs), std::move(outputs), HostClass::pointwise, HostClass::pointwise};
}

/// (weights, experts, …, scores of all experts): results first. `Scores` is the place of the scores.
template <std::size_t Scores>
MappedOps experts_chosen(const AtenCall& call, const MapContext&) {
  const AtenTensor *weights = call.tensor(0), *scores = call.tensor(Scores);
  if (weights == nullptr || scores == nullptr || scores->elements() < 1) return std::nullopt;
  return one(served_kernel("topk_softmax", *scores, true, kOfSoftmax, {*scores},
                           {*weights, fresh(DType::int32, weights->sizes)}));
}

/// (experts of each token, …): tokens are counted by expert, then put in the order of the experts.
std::vector<MappedOp> tokens_by_expert(const AtenTensor& experts) {
  const AtenTensor places = fresh(DType::int32, {experts.elements()});
  return {served_kernel("moe_align", experts, false, kOfCounting, {experts}, {fresh(DType::int32, {1})}),
          served_kernel("moe_sort", experts, false, kOfCounting, {experts}, {places})};
}
MappedOps tokens_ordered(const AtenCall& call, const MapContext&) {
  const AtenTensor* experts = call.tensor(0);
  if (experts == nullptr || experts->elements() < 1) return std::nullopt;
  return tokens_by_expert(*experts);
}

/// (results [tokens, experts of a token, width], sums [tokens, width]).
MappedOps results_added_up(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *y = call.tensor(1);
  if (x == nullptr || y == nullptr || y->elements() < 1) return std::nullopt;
  return one(served_kernel("moe_sum", *y, true, kOfCounting, {*x}, {*y}));
}

/// Products of `places` rows with the weights [experts, to, from] of those that are asked for.
MappedOp product_of_experts(const AtenTensor& weights, std::int64_t places, std::int64_t hit, const AtenTensor& x,
                            const AtenTensor& y) {
  Matmul op;
  op.type = weights.type;
  op.batch = hit;
  op.m = std::max<std::int64_t>(1, (places + hit - 1) / hit);
  op.n = weights.sizes[1];
  op.k = weights.sizes[2];
  op.layout = Layout::nt;
  return {op, {x, fresh(weights.type, {hit, op.n, op.k})}, {y}, HostClass::matmul, HostClass::pointwise_backward};
}

/// (tokens, weights of the first product with those of the gate, of the second, factors, experts of each token, …).
MappedOps fused_experts(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *first = call.tensor(1), *second = call.tensor(2), *chosen = call.tensor(4);
  if (x == nullptr || first == nullptr || second == nullptr || chosen == nullptr) return std::nullopt;
  const bool sixteen_bits = first->type == DType::bf16 || first->type == DType::fp16;
  if (!sixteen_bits || first->sizes.size() != 3 || second->sizes.size() != 3 || x->sizes.size() != 2)
    return std::nullopt;  // weights of eight bits and fewer come with scales that the arguments do not say in one way
  if (first->elements() < 1 || second->elements() < 1 || chosen->elements() < 1 || x->elements() < 1) return nothing();
  const auto experts = static_cast<double>(first->sizes[0]);
  const std::int64_t places = chosen->elements(), tokens = std::max<std::int64_t>(1, x->sizes[0]);
  // Experts that nobody asks for are not read.
  const double asked = -std::expm1(static_cast<double>(places) * std::log1p(-1.0 / (experts + 1e-9))) * experts;
  const std::int64_t hit = std::clamp<std::int64_t>(std::llround(asked), 1, std::min(first->sizes[0], places));
  const AtenTensor both = fresh(x->type, {places, first->sizes[1]}), inner = fresh(x->type, {places, second->sizes[2]}),
                   results = fresh(x->type, {tokens, places / tokens, second->sizes[1]});
  std::vector<MappedOp> ops = tokens_by_expert(*chosen);
  ops.push_back(product_of_experts(*first, places, hit, *x, both));
  ops.push_back(served_kernel("activation_mul", inner, true, kOfGate, {both}, {inner}));
  ops.push_back(product_of_experts(*second, places, hit, inner, results));
  ops.push_back(served_kernel("moe_sum", *x, true, kOfCounting, {results}, {*x}));
  return ops;
}

}  // namespace

void add_expert_rules(RuleTable& table) {
  add(table,
      "vllm::inplace_fused_experts vllm::outplace_fused_experts sglang::inplace_fused_experts "
      "sglang::outplace_fused_experts",
      fused_experts);
  add(table, "_moe_C::topk_softmax", experts_chosen<3>);
  add(table, "sgl_kernel::topk_softmax", experts_chosen<2>);
  add(table, "_moe_C::moe_align_block_size sgl_kernel::moe_align_block_size", tokens_ordered);
  add(table, "_moe_C::moe_sum", results_added_up);
}

}  // namespace ridgeline::trace
