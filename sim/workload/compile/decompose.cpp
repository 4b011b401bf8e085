#include "sim/workload/compile/decompose.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "sim/units/ceil_div.h"
#include "sim/workload/compile/padding.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline::compile {
namespace {

/// Inductor keeps a row in registers up to this length; longer ones it walks in a loop, once for each pass.
constexpr std::int64_t kLongestRow = 1024;
/// From this many elements on the gradients of a norm's weights are summed in the kernel that computes the gradient of
/// its input. (PyTorch asks for twice as many rows as columns too, which so many elements in rows of up to 1024 have.)
constexpr std::int64_t kByBlockElements = 5 << 20;
/// Instructions an element of random numbers, and of a softmax that is renormalised as it goes.
constexpr std::int64_t kRandom = 150, kOnlineSoftmax = 36;
/// Sums of fewer terms are written out.
constexpr std::int64_t kUnrolledTerms = 8;

/// No code is generated for complex numbers.
bool is_left_to_pytorch(const Op& op) {
  const auto* pointwise = std::get_if<Pointwise>(&op);
  return pointwise != nullptr && pointwise->function == PointwiseFunction::complex_mul;
}

/// The name the operation has in the names of generated kernels.
std::string_view name_in_code(const Op& op) {
  if (const auto* norm = std::get_if<Norm>(&op)) {
    if (norm->rms) return norm->backward ? "_fused_rms_norm_backward" : "_fused_rms_norm";
    return norm->backward ? "native_layer_norm_backward" : "native_layer_norm";
  }
  if (const auto* softmax = std::get_if<Softmax>(&op)) {
    if (softmax->backward) return softmax->log ? "_log_softmax_backward_data" : "_softmax_backward_data";
    return softmax->log ? "_log_softmax" : "_softmax";
  }
  if (std::holds_alternative<Dropout>(op)) return "native_dropout";
  if (const auto* embedding = std::get_if<Embedding>(&op))
    return embedding->backward ? "embedding_dense_backward" : "embedding";
  if (const auto* loss = std::get_if<NllLoss>(&op)) return loss->backward ? "nll_loss_backward" : "nll_loss_forward";
  if (const auto* copy = std::get_if<Copy>(&op)) return concatenates(copy->kind) ? "cat" : "clone";
  if (std::holds_alternative<Reduction>(op)) return "sum";
  if (const auto* pointwise = std::get_if<Pointwise>(&op)) return row_of(pointwise->function).code.name;
  return "mm";
}

}  // namespace

Node& Decomposer::node(Node::Kind kind, std::int64_t rows, std::int64_t cols, DType type) {
  Node& result = graph_.nodes.emplace_back(base_);
  result.kind = kind;
  result.rows = rows;
  result.cols = cols;
  result.type = type;
  result.arithmetic = 1;
  result.name = name_;
  return result;
}

void Decomposer::finish(Node& node, std::vector<Use> inputs, std::vector<Use> outputs) {
  const auto id = static_cast<NodeId>(&node - graph_.nodes.data());
  for (const Use& output : outputs) graph_.values[output.value].producer = id;
  if (node.operations == 0) node.operations = node.arithmetic;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
}

Use Decomposer::fresh(std::int64_t bytes, bool kept) {
  Value value;
  value.bytes = bytes;
  value.kept = kept;
  value.layer = base_.layer;
  value.module = base_.module;
  value.category = base_.backward ? Category::temporaries : Category::activations;
  graph_.values.push_back(value);
  return {static_cast<ValueId>(graph_.values.size() - 1), bytes};
}

void Decomposer::norm(const Norm& op, const std::vector<Use>& in, const std::vector<Use>& out) {
  const Node::Kind kind = op.cols <= kLongestRow ? Node::Kind::rows : Node::Kind::long_rows;
  const std::int64_t wide = 4 * op.rows * op.cols, column = 4 * op.cols;
  if (!op.backward) {
    // What the backward pass reads is the normalised row, unless the input is half as large, or is that row but for a
    // factor.
    const bool keeps_input = op.rms || bytes_of(op.type) == 2;
    std::vector<Use> statistics;
    if (!keeps_input) statistics.push_back(fresh(wide, true));
    statistics.push_back(fresh(4 * op.rows, true));
    graph_.values[out[1].value].in_place_of = statistics.front().value;  // remembered for the backward pass
    graph_.values[out.back().value].in_place_of = statistics.back().value;
    Node& moments = node(kind, op.rows, op.cols, DType::fp32);
    finish(moments, {in[0]}, statistics);
    Node& affine = node(Node::Kind::pointwise, op.rows, op.cols, op.type);
    affine.arithmetic = 2;
    std::vector<Use> read = statistics;
    if (keeps_input) read.push_back(in[0]);
    for (std::size_t i = 1; i < in.size(); ++i) read.push_back(in[i]);
    finish(affine, std::move(read), {out[0]});
    return;
  }
  const ValueId normalised = graph_.values[in[3].value].in_place_of;
  const ValueId deviation = graph_.values[in.back().value].in_place_of;
  std::vector<Use> read{in[0]};
  if (normalised == kNone || deviation == kNone) {
    read = in;
  } else {
    if (normalised == deviation) read.push_back(in[1]);
    else read.push_back({normalised, graph_.values[normalised].bytes});
    read.push_back({deviation, graph_.values[deviation].bytes});
  }
  std::vector<Use> for_rows = read;
  for_rows.push_back(in[2]);
  const auto sums = static_cast<std::int32_t>(out.size()) - 1;
  const bool by_block = op.rows * op.cols >= kByBlockElements && kind == Node::Kind::rows;
  Node& rows = node(kind, op.rows, op.cols, op.type);
  rows.arithmetic = 4;
  if (by_block) {
    rows.by_block = true;
    rows.column_results = sums;
    finish(rows, std::move(for_rows), out);
    return;
  }
  finish(rows, std::move(for_rows), {out[0]});
  Node& columns = node(Node::Kind::columns, op.rows, op.cols, DType::fp32);
  columns.column_results = sums;
  std::vector<Use> results(out.begin() + 1, out.end());
  for (Use& result : results) result.bytes = std::min(result.bytes, column);
  finish(columns, std::move(read), std::move(results));
}

void Decomposer::softmax(const Softmax& op, const std::vector<Use>& in, const std::vector<Use>& out) {
  const Node::Kind kind = op.cols <= kLongestRow ? Node::Kind::rows : Node::Kind::long_rows;
  if (op.backward) {
    Node& rows = node(kind, op.rows, op.cols, op.output);
    rows.arithmetic = op.log ? kExponential : 3;
    finish(rows, in, out);
    return;
  }
  const Use statistics = fresh(8 * op.rows, true);
  Node& maximum = node(kind, op.rows, op.cols, op.input);
  maximum.arithmetic = kind == Node::Kind::long_rows ? kOnlineSoftmax : kExponential;
  finish(maximum, in, {statistics});
  Node& result = node(Node::Kind::pointwise, op.rows, op.cols, op.output);
  result.arithmetic = kExponential;
  finish(result, {in[0], statistics}, out);
}

void Decomposer::embedding(const Embedding& op, const std::vector<Use>& in, const std::vector<Use>& out) {
  const std::int64_t moved = op.tokens * op.hidden * bytes_of(op.type);
  if (!op.backward) {
    Node& gather = node(Node::Kind::pointwise, op.tokens, op.hidden, op.type);
    gather.arithmetic = 4;
    gather.realizes = true;
    finish(gather, {{in[0].value, std::min(in[0].bytes, moved)}, in[1]}, out);
    return;
  }
  const Use zeros = fresh(out[0].bytes, true);
  Node& fill = node(Node::Kind::pointwise, op.vocabulary, op.hidden, op.type);
  finish(fill, {}, {zeros});
  Node& scatter = node(Node::Kind::pointwise, op.tokens, op.hidden, op.type);
  scatter.arithmetic = 4;
  graph_.values[out[0].value].in_place_of = zeros.value;
  graph_.values[out[0].value].kept = true;
  finish(scatter, {in[0], in[1], {zeros.value, std::min(zeros.bytes, moved)}},
         {{out[0].value, std::min(out[0].bytes, moved)}});
}

void Decomposer::product(Matmul op, std::uint32_t index, std::vector<Use> in, std::vector<Use> out) {
  const auto made_by = [&](const Use& use) {
    const NodeId producer = graph_.values[use.value].producer;
    if (producer == kNone) return MadeBy::script;
    return graph_.nodes[producer].kind == Node::Kind::library ? MadeBy::library : MadeBy::generated;
  };
  if (tuned && op.m == 1 && op.batch == 1 && op.layout == Layout::nt && op.scaling == Scaling::none) {
    Node& sum = node(Node::Kind::rows, op.n, op.k, op.type);  // read once, whatever the length of a row
    sum.arithmetic = 2;
    sum.of_product = true;
    for (const Use& result : out) graph_.values[result.value].kept = true;
    return finish(sum, std::move(in), std::move(out));
  }
  if (const std::optional<Padding> padding = padding_of(op, made_by(in[0]), made_by(in[1]))) {
    const std::int64_t element = bytes_of(op.type);
    const auto copied = [&](const Use& from, std::int64_t rows, std::int64_t cols) {
      const Use padded = fresh(rows * cols * element, true);
      Node& pad = node(Node::Kind::pointwise, rows, cols, op.type);
      pad.alone = true;
      finish(pad, {from}, {padded});
      return padded;
    };
    const bool transposes = op.layout == Layout::tn || op.layout == Layout::tt;
    // Rows that only the graph sees are long enough already; scores given to the script have the script's shape.
    const bool fits = !transposes && !returns_scores && length_of_rows(op.k, element) >= padding->k;
    if (padding->first && !fits) in[0] = copied(in[0], padding->m, padding->k);
    if (padding->second) in[1] = copied(in[1], padding->k, padding->n);
    if (op.bias && padding->n != op.n) in[2] = copied(in[2], 1, padding->n);
    op.m = padding->m;
    op.n = padding->n;
    op.k = padding->k;
    trace_.ops.push_back(op);
    index = static_cast<std::uint32_t>(trace_.ops.size() - 1);
    Value& result = graph_.values[out[0].value];
    const std::int64_t row = returns_scores ? op.n : length_of_rows(op.n, element);
    if (!result.leaves) result.bytes = std::max(result.bytes, op.m * row * element);
  } else if (op.layout == Layout::tn && op.type != DType::fp32 && made_by(in[0]) == MadeBy::generated &&
             length_of_rows(op.m, bytes_of(op.type)) != op.m) {
    // Rows that only the graph sees are aligned without padding. (Libraries take older kernels for them, which is not
    // modelled.)
    op.m = ceil_div(op.m, 16 / bytes_of(op.type)) * (16 / bytes_of(op.type));
    trace_.ops.push_back(op);
    index = static_cast<std::uint32_t>(trace_.ops.size() - 1);
  }
  Node& library = node(Node::Kind::library, op.m, op.n, op.type);
  library.op = index;
  finish(library, std::move(in), std::move(out));
}

Use Decomposer::zeros_like(const Call& call, ValueId scores, std::int64_t elements) {
  base_ = Node{};
  base_.backward = true;
  base_.phase = call.phase;
  name_ = "full";
  const std::int64_t bytes = graph_.values[scores].bytes;
  const Use zeros = fresh(bytes, true);
  graph_.values[zeros.value].of_caller = true;
  const DType type = bytes >= 4 * elements ? DType::fp32 : DType::bf16;
  trace_.ops.push_back(
      Pointwise{.function = PointwiseFunction::fill, .rows = 1, .cols = elements, .input_count = 0, .output = type});
  Node& fill = node(Node::Kind::library, 1, elements, type);
  fill.op = static_cast<std::uint32_t>(trace_.ops.size() - 1);
  finish(fill, {}, {zeros});
  return zeros;
}

void Decomposer::add(const Call& call, std::vector<Use> in, std::vector<Use> out, bool backward, bool after) {
  base_.backward = backward;
  base_.after = after;
  base_.phase = call.phase;
  base_.layer = call.layer;
  base_.module = call.module;
  const Op op = trace_.ops[call.op];
  name_ = name_in_code(op);
  if (after || is_left_to_pytorch(op)) {
    Node& own = node(Node::Kind::library, 1, 1, DType::fp32);
    own.op = call.op;
    finish(own, std::move(in), std::move(out));
  } else if (const auto* matmul = std::get_if<Matmul>(&op)) {
    product(*matmul, call.op, std::move(in), std::move(out));
  } else if (const auto* norms = std::get_if<Norm>(&op)) {
    norm(*norms, in, out);
  } else if (const auto* soft = std::get_if<Softmax>(&op)) {
    softmax(*soft, in, out);
  } else if (const auto* gather = std::get_if<Embedding>(&op)) {
    embedding(*gather, in, out);
  } else if (const auto* pointwise = std::get_if<Pointwise>(&op)) {
    Node& one = node(Node::Kind::pointwise, pointwise->rows, pointwise->cols, pointwise->output);
    one.arithmetic = row_of(pointwise->function).code.instructions;
    one.casts = pointwise->function == PointwiseFunction::cast;
    if (pointwise->function == PointwiseFunction::rope) one.operations = 1;
    finish(one, std::move(in), std::move(out));
  } else if (const auto* copy = std::get_if<Copy>(&op)) {
    if (copy->kind == CopyKind::pageable_to_device && !out.empty()) {  // indices that the host made are sent as before
      Node& sent = node(Node::Kind::library, 1, 1, copy->type);
      sent.op = call.op;
      return finish(sent, std::move(in), std::move(out));
    }
    if (leaves_device(copy->kind)) return;
    const std::int64_t parts = concatenates(copy->kind) ? copy->parts : 1;
    Node& one = node(Node::Kind::pointwise, copy->rows, copy->cols * parts, copy->type);
    one.gathers = copy->kind == CopyKind::transpose;
    finish(one, std::move(in), std::move(out));
  } else if (const auto* dropout = std::get_if<Dropout>(&op)) {
    Node& random = node(Node::Kind::pointwise, 1, dropout->elements, dropout->type);
    random.arithmetic = kRandom;
    finish(random, {}, {out[1]});
    graph_.values[out[1].value].kept = true;
    // What dropout thins out is not computed again: softmax keeps its result.
    const NodeId source = graph_.values[in[0].value].producer;
    if (source != kNone && graph_.nodes[source].arithmetic == kExponential) graph_.values[in[0].value].kept = true;
    Node& one = node(Node::Kind::pointwise, 1, dropout->elements, dropout->type);
    finish(one, {in[0], out[1]}, {out[0]});
  } else if (const auto* reduction = std::get_if<Reduction>(&op)) {
    const bool columns = reduction->kind == ReductionKind::sum_rows;
    if (columns && reduction->rows < kUnrolledTerms) {
      Node& one = node(Node::Kind::pointwise, 1, reduction->cols, reduction->type);
      one.arithmetic = reduction->rows;
      return finish(one, std::move(in), std::move(out));
    }
    const bool all = reduction->kind == ReductionKind::sum_all || reduction->kind == ReductionKind::norm_all;
    Node& sum =
        node(columns || all ? Node::Kind::columns : Node::Kind::rows,
             all ? reduction->rows * reduction->cols : reduction->rows, all ? 1 : reduction->cols, reduction->type);
    if (columns || all) sum.column_results = 1;
    for (const Use& result : out) graph_.values[result.value].kept = true;
    finish(sum, std::move(in), std::move(out));
  } else if (const auto* loss = std::get_if<NllLoss>(&op)) {
    if (loss->backward) {
      Node& one = node(Node::Kind::pointwise, loss->rows, loss->classes, loss->type);
      one.arithmetic = 3;
      finish(one, std::move(in), std::move(out));
    } else {
      constexpr std::int64_t kSector = 32;
      in[0].bytes = std::min(in[0].bytes, loss->rows * kSector);
      Node& sum = node(Node::Kind::columns, loss->rows, 1, loss->type);
      sum.column_results = 1;
      finish(sum, std::move(in), std::move(out));
    }
  } else {
    Node& library = node(Node::Kind::library, 1, 1, DType::fp32);
    library.op = call.op;
    finish(library, std::move(in), std::move(out));
  }
}

}  // namespace ridgeline::compile
