#include "fit/cases/call_ops.h"

#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;
using F = PointwiseFunction;

/// What of a call's case is a size, and its last word.
class Case {
 public:
  explicit Case(const json& row) : words_(row["case"]) {}
  [[nodiscard]] std::string text(std::size_t i) const { return words_.at(i).get<std::string>(); }
  [[nodiscard]] std::int64_t size(std::size_t i) const { return std::stoll(text(i)); }
  [[nodiscard]] DType type() const { return type_at(words_.size() - 1); }
  [[nodiscard]] DType type_at(std::size_t i) const {
    return text(i) == "bfloat16" ? DType::bf16 : text(i) == "float16" ? DType::fp16 : DType::fp32;
  }
  [[nodiscard]] std::size_t words() const { return words_.size(); }
  /// Of a tensor of all the sizes.
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t result = 1;
    for (const json& word : words_)
      if (const auto text = word.get<std::string>(); text.find_first_not_of("0123456789") == text.npos)
        result *= std::stoll(text);
    return result;
  }
  /// All of it, behind the operation's name: what tells shapes apart.
  [[nodiscard]] std::string shape(std::string_view op) const {
    std::string result(op);
    for (const json& word : words_) result += " " + word.get<std::string>();
    return result;
  }

 private:
  const json& words_;
};

Pointwise pointwise(F function, std::int64_t rows, std::int64_t cols, std::initializer_list<DType> inputs, DType output,
                    Walk walk = Walk::contiguous) {
  Pointwise op{.function = function, .rows = rows, .cols = cols, .output = output, .walk = walk};
  op.input_count = 0;
  for (const DType type : inputs) op.inputs[op.input_count++] = type;
  return op;
}

/// The operands that a power does not have are of its type too: the hash of the shape goes by the call alone.
Call power(std::int64_t rows, std::int64_t cols, DType type, std::string_view name, std::uint8_t inputs) {
  Pointwise op = pointwise(F::power, rows, cols, {type, type, type}, type);
  op.input_count = inputs;
  return {op, fmt::format("power {} {} {}", rows, cols, name)};
}

/// bf16 plus fp32 of fewer elements: a row of it, a table repeated over the batch, a mask over batch and heads.
std::optional<Call> mixed_addition(const Case& given) {
  const std::string kind = given.text(0);
  const std::int64_t a = given.size(1), b = given.size(2), c = given.size(3);
  Pointwise op{.inputs = {DType::bf16, DType::fp32, DType::fp32}, .input_count = 2, .walk = Walk::broadcast};
  if (kind == "bcast_mixed" || kind == "mask_mixed") op.rows = a * b * c, op.cols = c;
  else if (kind == "row_mixed" || kind == "pos_mixed") op.rows = a * b, op.cols = c;
  else return std::nullopt;
  if (kind == "row_mixed") op.walk = Walk::broadcast_row;
  if (a == 1 && (kind == "bcast_mixed" || kind == "pos_mixed")) op.walk = Walk::contiguous;  // nothing is repeated
  return Call{op, fmt::format("add {} {} {} {}", kind, a, b, c)};
}

/// Functions of contiguous tensors of one size.
std::optional<Op> of_elements(const std::string& op, const Case& given) {
  const auto alike = [&](F function, std::initializer_list<DType> inputs, DType output) -> Op {
    return pointwise(function, 1, given.elements(), inputs, output);
  };
  if (op == "add_mixed") return alike(F::add, {DType::bf16, DType::fp32}, DType::fp32);
  if (op == "mul_mixed") return alike(F::mul, {DType::bf16, DType::fp32}, DType::fp32);
  const DType t = given.type();
  if (op == "scale") return alike(F::scale, {t}, t);
  if (op == "tanh") return alike(F::tanh, {t}, t);
  if (op == "gelu_backward") return alike(F::gelu_backward, {t, t}, t);
  if (op == "masked_fill") return alike(F::masked_fill, {t, DType::boolean}, t);
  if (op == "dropout_backward") return alike(F::dropout_backward, {t, DType::boolean}, t);
  return std::nullopt;
}

/// Views whose elements lie apart, and operands repeated over others.
std::optional<Op> strided(const std::string& op, const Case& given) {
  const DType t = given.type();
  if (op == "transpose") return Copy{CopyKind::transpose, t, given.size(1), given.size(0), 1};
  if (op == "copyT") return Copy{CopyKind::transpose, t, given.size(0), given.size(1), 1};
  if (op == "permute") {
    if (given.size(1) == 1 || given.size(2) == 1) return std::nullopt;  // the view is contiguous
    return Copy{CopyKind::permute, t, given.size(0) * given.size(1) * given.size(2), given.size(3), 1};
  }
  if (op == "add_row") return pointwise(F::add, given.size(0), given.size(1), {t, t}, t, Walk::broadcast_row);
  if (op == "add_mask")
    return pointwise(F::add, given.size(0) * given.size(1) * given.size(2), given.size(2), {t, t}, t, Walk::broadcast);
  if (op == "cat_windows" && given.size(0) > 1)  // windows of one row are contiguous
    return Copy{CopyKind::concatenate_strided, t, given.size(0), given.size(1), given.size(2)};
  return std::nullopt;
}

/// Elements whose places are computed or looked up.
std::optional<Op> indexed(const std::string& op, const Case& given) {
  const DType t = given.type();
  if (op == "index1") return pointwise(F::index, given.size(0) * given.size(1) * given.size(1), given.size(2), {t}, t);
  if (op == "roll" || op == "roll1")
    return pointwise(F::roll, given.size(0) * given.size(1) * given.size(1), given.size(2), {t}, t);
  if (op == "index_middle") return pointwise(F::index, given.size(0) * given.size(3), given.size(2), {t}, t);
  if (op == "rows_odd") return Embedding{false, t, given.size(0), given.size(1), given.size(2)};
  if (op == "gather" && given.words() == 3)
    return pointwise(F::gather, given.size(0), given.size(1), {DType::int64}, t);
  if (op == "max_pool_backward")
    return ImageOp{.function = ImageFunction::max_pool2d,
                   .backward = true,
                   .type = t,
                   .batch = given.size(0),
                   .channels = given.size(1),
                   .size = given.size(2)};
  return std::nullopt;
}

/// Kernels of bitsandbytes; the scales of scales are a kernel apart, over a 64th of the numbers.
std::optional<Op> of_bits_and_bytes(const std::string& op, const Case& given) {
  const DType fp16 = DType::fp16, codes = DType::uint8;
  const auto update = [&](F function, DType states) {
    const DType t = given.type();
    return Op{pointwise(function, 1, given.size(0), {t, t, states}, t)};
  };
  if (op == "adam8") return update(F::update_two, codes);
  if (op == "lion8") return update(F::update_one, codes);
  if (op == "adam32") return update(F::update_two, DType::fp32);
  if (op == "lion32") return update(F::update_one, DType::fp32);
  if (op == "dequantize_4bit") return Op{pointwise(F::expand_4bit, 1, given.size(0), {codes}, given.type())};
  if (op == "int8_quant") return Op{pointwise(F::quantize_rows, given.size(0), given.size(1), {fp16}, codes)};
  if (op == "int8_dequant") return Op{pointwise(F::scale_sums, given.size(0), given.size(1), {DType::int32}, fp16)};
  return std::nullopt;
}

}  // namespace

std::optional<Call> call_of(const json& row) {
  const std::string op = row["op"];
  const Case given(row);
  if (const auto library = of_bits_and_bytes(op, given)) return Call{*library, given.shape(op)};
  // Squares, cubes and roots have kernels of their own.
  if (op == "pow" && (given.text(0) == "1.5" || given.text(0) == "4"))
    return power(given.size(1), given.size(2), given.type_at(3), given.text(3), 1);
  if (op == "pow_tt") return power(given.size(0), given.size(1), given.type_at(2), given.text(2), 2);
  if (op == "add") return mixed_addition(given);
  if (op == "cumsum")
    return Call{Reduction{ReductionKind::scan_cols, given.type_at(2), given.size(0), given.size(1)},
                given.shape("scan")};
  if (op == "cumsum_i64")
    return Call{Reduction{ReductionKind::scan_rows, DType::int64, given.size(0), given.size(1)},
                fmt::format("scan {} {} int64", given.text(0), given.text(1))};
  if (op == "argsort_i64")
    return Call{Sort{.type = DType::int64, .rows = 1, .cols = given.size(0)}, fmt::format("argsort {}", given.text(0))};
  if (op == "sort" || op == "topk2" || op == "topk50")
    return Call{Sort{.rows = given.size(0),
                     .cols = given.size(1),
                     .kept = op == "topk2"    ? 2
                             : op == "topk50" ? 50
                                              : 0},
                fmt::format("sort {} {}", given.text(0), given.text(1))};
  if (op == "nll")
    return Call{NllLoss{.rows = given.size(0), .classes = given.size(1)},
                fmt::format("nll {} {}", given.text(0), given.text(1))};
  for (const auto& known : {of_elements, strided, indexed})
    if (const auto found = known(op, given)) return Call{*found, given.shape(op)};
  return std::nullopt;
}

bool names_launch(std::string_view name, const KernelLaunch& launch) {
  using K = MemoryBoundKernel;
  const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
  if (work == nullptr) return false;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  switch (static_cast<K>(work->kernel_class)) {
    case K::power: return has("pow_tensor");
    case K::broadcast_mixed:
      return name.starts_with("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<");
    case K::unrolled_mixed: return has("unrolled_elementwise_kernel");
    case K::strided_copy:
    case K::broadcast_binary:
      return name.starts_with("void at::native::elementwise_kernel<128") || name.starts_with("elementwise_kernel<128");
    case K::concatenate_unaligned: return has("CatArrayBatchedCopy_aligned");
    case K::modulo: return has("remainder") || has("fmod") || has("div_floor");
    case K::arctangent: return has("atan2") || has("logaddexp");
    case K::flip:
    case K::index_pairs:
    case K::index_copy: return has("index_elementwise_kernel");
    case K::gather_elements:
    case K::scatter_value: return has("_scatter_gather_elementwise_kernel");
    case K::scale: return has("vectorized_elementwise_kernel") && has("AUnaryFunctor");
    case K::special: return has("lgamma") || has("digamma") || has("erfinv");
    case K::gelu_backward: return has("GeluBackward");
    case K::tanh: return has("tanh_kernel");
    case K::concatenate_strided: return has("CatArrayBatchedCopy<");
    case K::index_select:
      return has("roll_cuda") || has("index_elementwise_kernel") || has("_scatter_gather_elementwise_kernel");
    default: return has(launch.name);
  }
}

}  // namespace ridgeline::fit
