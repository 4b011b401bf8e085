// scaled_dot_product_attention without a fused kernel: what _scaled_dot_product_attention_math of PyTorch 2.5 and later
// runs for operands of 16 bits (aten/src/ATen/native/transformers/attention.cpp): casts to fp32, copies of grouped
// keys, both factors scaled, products, the mask's addition, a softmax that minds rows without a key, casts back.
#include <utility>

#include "sim/kernels/attention/attention_helpers.h"
#include "sim/kernels/families.h"

namespace ridgeline {
namespace {

class MathAttention {
 public:
  MathAttention(const Attention& op, const Lowering& lowering)
      : op_(op),
        lowering_(lowering),
        batch_(op.batch * op.heads),
        queries_(batch_ * op.seq_q),
        keys_(batch_ * op.seq_k),
        given_keys_(op.batch * op.kv_heads * op.seq_k) {}

  LoweredOp forward() {
    hold({queries_ * op_.head_dim, keys_ * op_.head_dim, keys_ * op_.head_dim, queries_ * op_.seq_k,
          queries_ * op_.seq_k});
    to_fp32(0, queries_);
    for (const int operand : {1, 2}) to_fp32(operand, given_keys_);
    for (const int operand : {1, 2}) expand(operand);
    if (op_.causal) {
      pointwise(PointwiseFunction::fill, op_.seq_q, op_.seq_k, {DType::fp32});
      pointwise(PointwiseFunction::masked_fill, op_.seq_q, op_.seq_k, {DType::fp32, DType::boolean});
    }
    pointwise(PointwiseFunction::scale, queries_, op_.head_dim, {DType::fp32});
    pointwise(PointwiseFunction::scale, keys_, op_.head_dim, {DType::fp32});
    product(op_.seq_q, op_.seq_k, op_.head_dim, Layout::nt);
    if (op_.bias || op_.causal)
      pointwise(PointwiseFunction::add_in_place, queries_, op_.seq_k, {DType::fp32, op_.bias ? op_.type : DType::fp32},
                Walk::broadcast);
    run(Softmax{.rows = queries_, .cols = op_.seq_k});
    Pointwise hidden{.function = PointwiseFunction::equal, .rows = queries_, .cols = op_.seq_k};
    hidden.output = DType::boolean;
    run(hidden);
    run(Reduction{ReductionKind::sum_cols, DType::boolean, queries_, op_.seq_k});
    pointwise(PointwiseFunction::masked_fill, queries_, op_.seq_k, {DType::fp32, DType::boolean});
    if (op_.dropout) run(Dropout{DType::fp32, queries_ * op_.seq_k});
    product(op_.seq_q, op_.head_dim, op_.seq_k, Layout::nn);
    from_fp32(queries_, op_.bias ? 4 : 3);
    return std::move(out_);
  }

  LoweredOp backward() {
    hold({queries_ * op_.head_dim, keys_ * op_.head_dim, keys_ * op_.head_dim, queries_ * op_.seq_k,
          queries_ * op_.seq_k});
    to_fp32(0, queries_);
    product(op_.seq_k, op_.head_dim, op_.seq_q, Layout::tn);
    product(op_.seq_q, op_.seq_k, op_.head_dim, Layout::nt);
    if (op_.dropout) pointwise(PointwiseFunction::dropout_backward, queries_, op_.seq_k, {DType::fp32, DType::boolean});
    pointwise(PointwiseFunction::masked_fill, queries_, op_.seq_k, {DType::fp32, DType::boolean});
    run(Softmax{.backward = true, .rows = queries_, .cols = op_.seq_k});
    product(op_.seq_q, op_.head_dim, op_.seq_k, Layout::nn);
    product(op_.seq_k, op_.head_dim, op_.seq_q, Layout::tn);
    pointwise(PointwiseFunction::scale, queries_, op_.head_dim, {DType::fp32});
    pointwise(PointwiseFunction::scale, keys_, op_.head_dim, {DType::fp32});
    for (int i = 0; i < 2 && grouped(); ++i)
      run(Reduction{ReductionKind::sum_rows, DType::fp32, op_.heads / op_.kv_heads, given_keys_ * op_.head_dim});
    const int gradients = op_.bias ? 7 : 6;
    from_fp32(queries_, gradients);
    from_fp32(given_keys_, gradients + 1);
    from_fp32(given_keys_, gradients + 2);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool grouped() const { return op_.kv_heads != op_.heads; }
  void hold(std::initializer_list<std::int64_t> elements) {
    for (const std::int64_t each : elements) out_.temporaries.push_back(4 * each);
  }
  void run(const Op& op, int read = Access::kTemporary, int write = Access::kTemporary) {
    for (KernelLaunch& launch : lowering_.lower(op).launches) {
      for (Access& access : launch.reads) access.operand = read;
      for (Access& access : launch.writes) access.operand = write;
      launch.time_class = TimeClass::tensor_contraction;
      out_.launches.push_back(std::move(launch));
    }
  }
  void pointwise(PointwiseFunction function, std::int64_t rows, std::int64_t cols, std::initializer_list<DType> inputs,
                 Walk walk = Walk::contiguous) {
    Pointwise op{.function = function, .rows = rows, .cols = cols, .input_count = 0, .walk = walk};
    for (const DType type : inputs) op.inputs[op.input_count++] = type;
    run(op);
  }
  void product(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout) {
    run(Matmul{.type = DType::fp32, .batch = batch_, .m = m, .n = n, .k = k, .layout = layout});
  }
  void cast(DType from, DType to, std::int64_t rows, int read, int write) {
    if (from == to) return;
    Pointwise op{.function = PointwiseFunction::cast, .rows = rows, .cols = op_.head_dim};
    op.inputs[0] = from;
    op.output = to;
    run(op, read, write);
  }
  void to_fp32(int operand, std::int64_t rows) { cast(op_.type, DType::fp32, rows, operand, Access::kTemporary); }
  void from_fp32(std::int64_t rows, int operand) { cast(DType::fp32, op_.type, rows, Access::kTemporary, operand); }
  void expand(int operand) {
    if (grouped()) run(Copy{CopyKind::permute, DType::fp32, keys_, op_.head_dim}, operand);
  }

  const Attention& op_;
  const Lowering& lowering_;
  std::int64_t batch_, queries_, keys_, given_keys_;
  LoweredOp out_;
};

}  // namespace

LoweredOp lower_math_attention(const Attention& op, const Lowering& lowering) {
  check_attention(op);
  MathAttention made(op, lowering);
  return op.backward ? made.backward() : made.forward();
}

}  // namespace ridgeline
