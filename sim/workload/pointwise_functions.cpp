#include "sim/workload/pointwise_functions.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "sim/workload/op_fields.h"

namespace ridgeline {
namespace {

constexpr std::string_view kMul = "MulBackward0";
constexpr auto kNode = HostClass::pointwise_backward;

// Grids and registers of kernels were read from profiles of PyTorch 2.11 (measurements/h200/kernels.jsonl.gz).
// clang-format off
constexpr PointwiseRow kPointwiseRows[] = {
    {"add", "add", 2, {"add", "add", 1, 34}, {"add"}, {"aten::add", "1.0", "1.0"}, "grad; grad", "AddBackward0", HostClass::add_backward},
    {"add_in_place", "add_", 2, {"add", "add_", 1, 34}, {"add"}, {"aten::add_", "1.0", "1.0"}, "grad; grad", "AddBackward0", HostClass::add_backward},
    {"mul", "mul", 2, {"mul", "mul", 1, 40, 32, "scale", 32}, {"mul"}, {"aten::mul", "2.0"}, "mul(grad, other); mul(grad, self)"},
    {"scale", "scale", 1, {"scale", "mul", 1}, {"mul"}, {"aten::mul", "0.125"}, "scale(grad)"},
    {"gelu", "gelu", 1, {"gelu", "gelu", 14, 32, 31}, {"gelu", kErrorFunction}, {"aten::gelu", "", "'none'"}, "gelu_backward(grad, self)"},
    {"gelu_tanh", "gelu_tanh", 1, {"gelu", "gelu_tanh", 14}, {"gelu", kHyperbolic}, {"aten::gelu", "", "'tanh'"}, "gelu_tanh_backward(grad, self)"},
    {"gelu_backward", "gelu_backward", 2, {"gelu_backward", "gelu_backward", 20}, {"gelu_backward", kErrorFunction + kExponential}, {"aten::gelu_backward", "", "'none'"}, "", "GeluBackward0"},
    {"gelu_tanh_backward", "gelu_tanh_backward", 2, {"gelu_backward", "gelu_backward", 20}, {"gelu_backward", kHyperbolic + kExponential}, {"aten::gelu_backward", "", "'tanh'"}, "", "GeluBackward0"},
    {"silu", "silu", 1, {"silu", "silu", 5}, {"silu", kExponential}, {"aten::silu aten::silu_"}, "silu_backward(grad, self)"},
    {"silu_backward", "silu_backward", 2, {"silu_backward", "silu_backward", 9, 40, 40}, {"silu_backward", kExponential}, {"aten::silu_backward"}, "", "SiluBackward0"},
    {"relu", "relu", 1, {"relu", "relu", 1, 32, 28}, {"relu"}, {"aten::relu aten::relu_"}, "relu_backward(grad, result)"},
    {"relu_backward", "relu_backward", 2, {"mul", "threshold_backward", 1, 40}, {"threshold_backward"}, {"aten::threshold_backward", "", "0.0"}, "", "ReluBackward0"},
    {"tanh", "tanh", 1, {"tanh", "tanh", 10}, {"tanh", kHyperbolic}, {"aten::tanh aten::tanh_"}, "tanh_backward(grad, result)"},
    {"tanh_backward", "tanh_backward", 2, {"mul", "tanh_backward", 3}, {"tanh_backward"}, {"aten::tanh_backward"}, "", "TanhBackward0"},
    {"pow2", "pow", 1, {"unary", "pow", 1}, {"pow"}, {"aten::pow", "2.0"}, "mul(grad, scale(copy(self)))", "PowBackward0"},
    {"square_root", "sqrt", 1, {"unary", "sqrt", 1}, {"rsqrt"}, {"aten::sqrt aten::sqrt_"}, "mul(scale(grad), pow2(result))"},
    {"reciprocal", "reciprocal", 1, {"unary", "reciprocal", 1}, {"div"}, {"aten::reciprocal aten::reciprocal_"}},
    {"divide", "div", 2, {"mul", "div", 1, 40, 32, "scale", 32}, {"div"}, {"aten::div", "8.0"}, "divide(grad, other)", "DivBackward0"},
    {"equal", "eq", 0, {"unary", "eq", 1}, {"eq"}, {"aten::eq", "0.0"}},
    {"masked_fill", "masked_fill", 2, {"masked_fill", "masked_fill"}, {"where"}, {"aten::masked_fill", "", "-1e9"}, "masked_fill(grad, other)", kMul, HostClass::masked_fill_backward, true},
    {"cast", "cast", 1, {"cast_down", "cast"}, {"_to_copy"}, {"aten::copy_", "", "0.0"}, "", "ToCopyBackward0"},
    {"fill", "fill", 0, {"fill", "fill", 0, 16, 16}, {"full"}, {"aten::fill_", "", "0.0"}},
    {"arange", "arange", 0, {"fill", "arange", 1, 16, 16}, {"arange"}, {"aten::arange"}},
    {"dropout_backward", "native_dropout_backward", 2, {"dropout_backward", "masked_scale", 2, 40, 34}, {"native_dropout_backward"}, {"aten::native_dropout_backward", "", "1.25"}, "", "NativeDropoutBackward0", kNode, true},
    {"clamp", "clamp", 1, {"relu", "clamp", 2, 32, 28}, {"clamp"}, {"aten::clamp aten::clamp_", "", "None, 1.0"}},
    {"rope", "rope", 0, {"mul", "rope", 6, 40, 40}, {"cos", kTrigonometric}},
    {"complex_mul", "complex_mul", 0, {"mul", "mul", 4, 40, 40}},
    {"power", "pow", 2, {"power", "pow", 20}, {"pow"}, {"aten::pow", "0.3"}},
    {"index", "index", 0, {"index_elements", "index_elementwise_kernel"}, {"index"}},
    {"gather", "gather", 0, {"gather_elements", "scatter_gather_elementwise_kernel"}, {"gather"}},
    {"roll", "roll", 0, {"index_select", "index"}, {"roll"}, {"aten::roll", "", "[1], [0]"}},
    {"index_add", "index_add", 0, {}, {"index_add"}},
    {"scatter_add", "scatter_add", 0, {"scatter_add", "scatter_gather_elementwise_kernel", 1}, {"scatter_add"}},
    {"special", "special", 1, {"special", "elementwise_kernel", 60}, {}, {"aten::lgamma"}},
    {"random", "random", 0, {}, {}, {"aten::normal_", "", "0.0, 1.0, None"}},
    {"index_few", "index_select", 0, {}, {"index_select"}},
    {"index_add_few", "index_add", 0, {}, {"index_add"}},
    {"triangle", "tril", 0, {}, {"tril"}, {"aten::tril", "", "0.0"}},
    {"nonzero", "nonzero", 0},
    {"update_two", "optimizer_update", 0},
    {"update_one", "optimizer_update", 0},
    {"expand_4bit", "dequantize_4bit", 0},
    {"expand_8bit", "dequantize_blockwise", 0},
    {"quantize_rows", "int8_vectorwise_quant", 0},
    {"scale_sums", "int8_mm_dequant", 0},
    {"index_pairs", "index", 0, {"index_pairs", "index_elementwise_kernel"}, {"index"}},
    {"index_copy", "index_copy", 0, {"index_copy", "index_elementwise_kernel"}, {"index"}},
    {"scatter_value", "scatter", 0, {"scatter_value", "scatter_gather_elementwise_kernel"}, {"scatter_add"}},
    {"flip", "flip", 0, {"flip", "index"}, {"roll"}, {"aten::flip", "", "[0]"}},
    {"search", "searchsorted", 0, {}, {"bucketize"}},
    {"modulo", "remainder", 2, {"modulo", "remainder", 20}, {"remainder", 20}, {"aten::remainder aten::remainder_", "3.0"}},
    {"arctangent", "atan2", 2, {"arctangent", "atan2", 30}, {"atan2", 40}, {"aten::atan2 aten::atan2_"}},
    {"other", "pointwise", 0, {"mul", "elementwise", 1, 40, 32, "unary", 40}},
    // Functions that no code names. Softplus and mish borrow the constants of gelu and run up to 1.6 and 1.4 times as long in 16
    // bits (measurements/h200/foreign/ops.jsonl.gz).
    {"softplus", "softplus", 1, {"gelu", "softplus", 14, 32, 31}, {"softplus", 2 * kExponential}, {"aten::softplus", "", "1.0, 20.0"}, "softplus_backward(grad, self)"},
    {"softplus_backward", "softplus_backward", 2, {"mul", "softplus_backward", 1, 40}, {"softplus_backward", kExponential}, {"aten::softplus_backward", "", "1.0, 20.0"}, "", "SoftplusBackward0"},
    {"mish", "mish", 1, {"gelu", "mish", 14, 32, 31}, {"mish", 2 * kExponential + kHyperbolic}, {"aten::mish aten::mish_"}, "mish_backward(grad, self)"},
    {"mish_backward", "mish_backward", 2, {"mul", "mish_backward", 1, 40}, {"mish_backward", 2 * kExponential + kHyperbolic}, {"aten::mish_backward"}, "", "MishBackward0"},
    {"softshrink", "softshrink", 1, {"relu", "softshrink", 2, 32, 28}, {"softshrink", 2}, {"aten::softshrink", "", "0.5"}, "softshrink_backward(grad, self)"},
    {"softshrink_backward", "softshrink_backward", 2, {"mul", "softshrink_backward", 2, 40}, {"softshrink_backward", 2}, {"aten::softshrink_backward", "", "0.5"}, "", "SoftshrinkBackward0"},
};
// clang-format on
static_assert(kPointwiseRows[static_cast<std::size_t>(PointwiseFunction::cast)].key == "cast");
static_assert(kPointwiseRows[static_cast<std::size_t>(PointwiseFunction::other)].key == "other");

constexpr auto kPointwiseKeys = [] {
  std::array<std::string_view, std::size(kPointwiseRows)> keys;
  std::transform(std::begin(kPointwiseRows), std::end(kPointwiseRows), keys.begin(),
                 [](const PointwiseRow& row) { return row.key; });
  return keys;
}();

}  // namespace

std::span<const PointwiseRow> pointwise_rows() { return kPointwiseRows; }
const PointwiseRow& row_of(PointwiseFunction function) { return kPointwiseRows[static_cast<std::size_t>(function)]; }
PointwiseFunction pointwise_function(std::string_view key) {
  const auto found = std::find(kPointwiseKeys.begin(), kPointwiseKeys.end(), key);
  if (found == kPointwiseKeys.end()) throw std::out_of_range("no point-wise function " + std::string(key));
  return static_cast<PointwiseFunction>(found - kPointwiseKeys.begin());
}
std::span<const std::string_view> names_of(PointwiseFunction) { return kPointwiseKeys; }

}  // namespace ridgeline
