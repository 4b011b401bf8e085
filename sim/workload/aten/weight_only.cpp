#include "sim/workload/aten/weight_only.h"

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/scaled.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

std::int64_t bytes_in(const Tensor& x) { return x.elements() * bytes_of(x.type); }

/// Rows of an input that a library multiplies by the codes themselves, without expanding the weight, where no gradient
/// is asked for: bitsandbytes 0.50 (_GEMM_4BIT_CUSTOM_FLOOR_M; small weights up to more rows, which is not modelled;
/// before it one row), the kernels of ExLlamaV2 (MAX_Q_GEMM_ROWS) and of AutoAWQ.
std::int64_t rows_of_codes(FrozenWeights kind) {
  constexpr std::int64_t kBitsAndBytes = 4, kExLlama = 50, kAutoAwq = 1023;
  switch (kind) {
    case FrozenWeights::nf4:
    case FrozenWeights::nf4_double: return kBitsAndBytes;
    case FrozenWeights::gptq: return kExLlama;
    case FrozenWeights::awq: return kAutoAwq;
    case FrozenWeights::int4_only:
    case FrozenWeights::as_stored:
    case FrozenWeights::int8:
    case FrozenWeights::hqq:
    case FrozenWeights::int8_only:
    case FrozenWeights::fp8: break;
  }
  return 0;
}

/// A kernel whose threads load words of eight codes: instructions to expand a code, and for each row of the input.
struct CodeKernel {
  const char* name;
  std::int64_t of_code, of_row;
};

/// tinygemm of torchao's int4 weight-only loads a row's numbers anew for every eight columns of the result, whatever
/// the number of rows; bitsandbytes looks codes up in a table. From 13 products of 1 to 1,024 rows and five of one row
/// on an NVIDIA H200 (measurements/h200/inference/products.jsonl.gz); kernels of GPTQ and AWQ are taken to wait for
/// memory.
constexpr CodeKernel kTinyGemm{"_weight_int4pack_mm", 5, 2}, kGemv{"gemm_4bit_simt", 13, 1};

Tensor product_of_words(Eager& eager, const Tensor& x, const FourBitWeight& weight, const CodeKernel& kernel) {
  constexpr std::int64_t kCodesOfWord = 8;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.out;
  Tensor result = eager.empty(sizes, x.type);
  FusedKernel op;
  op.name = kernel.name;
  op.rows = weight.out;
  op.cols = ceil_div(weight.in, kCodesOfWord);
  op.type = x.type;
  op.arithmetic = kCodesOfWord * (kernel.of_code + kernel.of_row * (x.elements() / weight.in));
  op.reads = {bytes_in(weight.codes), bytes_in(weight.scales), bytes_in(x)};
  op.writes = {bytes_in(result)};
  eager.recorder.host(HostClass::pointwise);
  eager.recorder.op(op, {&weight.codes, &weight.scales, &x}, {&result});
  return result;
}

/// One kernel reads codes and scales, and the weight is never written out.
Tensor product_of_library(Eager& eager, const Tensor& x, const FourBitWeight& weight) {
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.out;
  Tensor result = eager.empty(sizes, x.type);
  const char* name = weight.kind == FrozenWeights::gptq ? "gptq::gemm_half_q_half" : "awq::gemm_forward";
  eager.recorder.host(HostClass::pointwise);
  eager.recorder.op(
      UnknownOp{name, bytes_in(weight.codes) + bytes_in(weight.scales) + bytes_in(weight.zeros) + bytes_in(x),
                bytes_in(result)},
      {&weight.codes, &x}, {&result});
  return result;
}

/// torchao's int8 weight-only: the weight cast, the product, and the scales of rows behind it.
Tensor product_of_cast(Eager& eager, const Tensor& x, const FourBitWeight& weight) {
  const Tensor cast = eager.empty({weight.out, weight.in}, x.type);
  eager.recorder.host(HostClass::pointwise);
  pointwise(eager, PointwiseFunction::cast, {&weight.codes}, cast);
  Tensor product = linear(eager, x, cast, nullptr), result = eager.empty(product.sizes, x.type);
  eager.recorder.host(HostClass::pointwise);
  pointwise(eager, PointwiseFunction::mul, {&product, &weight.scales}, result);
  return result;
}

/// The bias is added by itself.
Tensor with_bias(Eager& eager, Tensor product, const Tensor* bias) {
  if (bias == nullptr) return product;
  Tensor result = eager.empty(product.sizes, product.type);
  eager.recorder.host(HostClass::pointwise);
  pointwise(eager, PointwiseFunction::add, {&product, bias}, result);
  return result;
}

/// cuBLASLt has kernels of mma.sync for integers on every GPU; these tiles are torch._int_mm's on an NVIDIA H200, rows
/// by columns, at 32 to 8,192 rows.
LibraryKernel integer_kernel(std::int64_t rows) {
  constexpr std::int64_t kFew = 64, kSome = 256, kMany = 1024, kDepth = 64;
  LibraryKernel kernel{LibraryKernel::Instructions::mma_sync, 128, 256, kDepth, 3};
  if (rows <= kFew) kernel.m = 64, kernel.n = 64, kernel.stages = 6;
  else if (rows <= kSome) kernel.n = 64;
  else if (rows <= kMany) kernel.n = 128, kernel.stages = 5;
  return kernel;
}

}  // namespace

Matmul integer_product(std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  Matmul product;
  product.type = type;
  product.m = m;
  product.n = n;
  product.k = ceil_div(k, std::int64_t{2});
  product.layout = Layout::nt;
  product.ran = integer_kernel(m);
  return product;
}

bool multiplies_codes(const Tensor& x, const FourBitWeight& weight, bool gradients) {
  const bool of_torchao = weight.kind == FrozenWeights::int8_only || weight.kind == FrozenWeights::int4_only ||
                          weight.kind == FrozenWeights::fp8;
  return of_torchao || (!gradients && x.elements() / weight.in <= rows_of_codes(weight.kind));
}

Tensor product_of_codes(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias) {
  switch (weight.kind) {
    case FrozenWeights::fp8: return row_scaled_linear(eager, x, weight.codes, weight.scales, bias);
    case FrozenWeights::int8_only: return with_bias(eager, product_of_cast(eager, x, weight), bias);
    case FrozenWeights::int4_only: return with_bias(eager, product_of_words(eager, x, weight, kTinyGemm), bias);
    case FrozenWeights::nf4:
    case FrozenWeights::nf4_double: return with_bias(eager, product_of_words(eager, x, weight, kGemv), bias);
    default: return with_bias(eager, product_of_library(eager, x, weight), bias);
  }
}

}  // namespace ridgeline::eager::aten
