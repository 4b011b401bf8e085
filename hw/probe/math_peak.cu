// Peak rates of the CUDA cores and of the tensor cores through mma.sync, with random operands and with zeros.
//
// Idea: enough independent chains of multiply-adds in registers to hide their latency, nothing else. Zeros toggle fewer
// wires: where they run faster, power and not the pipe is the limit. (Hopper's tensor cores need wgmma: wgmma_peak.cu.)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kMathThreads = 256, kMathChains = 8, kMathSteps = 2048;

__global__ void fma_kernel(float a, float b, float* out) {
  float x[kMathChains];
  for (int c = 0; c < kMathChains; ++c) x[c] = a * float(threadIdx.x + c);
  for (int step = 0; step < kMathSteps; ++step)
#pragma unroll
    for (int c = 0; c < kMathChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
  for (int c = 0; c < kMathChains; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void half2_kernel(float a, float b, float* out) {
  const __half2 a2 = __float2half2_rn(a), b2 = __float2half2_rn(b);
  __half2 x[kMathChains];
  for (int c = 0; c < kMathChains; ++c) x[c] = __float2half2_rn(0.01f * float(c));
  for (int step = 0; step < kMathSteps; ++step)
#pragma unroll
    for (int c = 0; c < kMathChains; ++c) x[c] = __hfma2(x[c], a2, b2);
  float sum = 0;
  for (int c = 0; c < kMathChains; ++c) sum += __low2float(x[c]) + __high2float(x[c]);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

enum class Type { fp16, bf16, tf32 };

/// d += a·b of 16x8x16 (fp16, bf16) or 16x8x8 (tf32; Turing's fp16), fp32 accumulators.
template <Type kType>
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kType == Type::fp16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else if constexpr (kType == Type::bf16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif __CUDA_ARCH__ >= 750
  if constexpr (kType == Type::fp16)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}

constexpr int kTensorSteps = 1024, kTensorChains = 4;

template <Type kType>
__global__ void mma_kernel(const unsigned* operands, float* out) {
  unsigned a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = operands[threadIdx.x * 6 + i];
  for (int i = 0; i < 2; ++i) b[i] = operands[threadIdx.x * 6 + 4 + i];
  float d[kTensorChains][4] = {};
  for (int step = 0; step < kTensorSteps; ++step)
#pragma unroll
    for (int c = 0; c < kTensorChains; ++c) multiply<kType>(d[c], a, b);
  float sum = 0;
  for (int c = 0; c < kTensorChains; ++c)
    for (int i = 0; i < 4; ++i) sum += d[c][i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <Type kType>
unsigned encoded(float x, float y) {
  if constexpr (kType == Type::fp16) {
    const __half2 h = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned*>(&h);
  } else if constexpr (kType == Type::bf16) {
    const __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<const unsigned*>(&h);
  } else {
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits & 0xffffe000u;
  }
}

template <Type kType>
void add_tensor(Curve& curve, const Device& device, double type_number, Buffer<unsigned>& operands, float* out,
                Buffer<float>& results) {
  const double multiply_adds = kType == Type::tf32 || !device.at_least(8, 0) ? 16 * 8 * 8 : 16 * 8 * 16;
  const int blocks = device.sm_count * 4;
  for (const bool random : {true, false}) {
    std::vector<unsigned> host(operands.size());
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i] = random ? encoded<kType>(pattern(2 * i), pattern(2 * i + 1)) : 0u;
    operands.from_host(host);
    const Timing t =
        period([&](cudaStream_t s) { mma_kernel<kType><<<blocks, kMathThreads, 0, s>>>(operands.get(), out); });
    const auto sums = results.to_host(kMathThreads);
    bool all_zero = true;
    for (const float x : sums) all_zero = all_zero && x == 0.0f;
    curve.correct = expect(all_zero != random, "math_peak", "sums of the tensor cores") && curve.correct;
    const double flops = 2.0 * multiply_adds * kTensorSteps * kTensorChains * blocks * (kMathThreads / 32);
    curve.points.push_back({{{"type_bits", type_number}, {"random", double(random)}, {"flops", flops}},
                            flops / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  }
}

}  // namespace

Curves math_peak(const Device& device) {
  Curve cores{"cuda_core_peak", "FLOP/s", "independent multiply-adds; type_bits 32: fp32, 16: packed halves"};
  const int blocks = device.sm_count * 8;
  Buffer<float> out(std::size_t(blocks) * kMathThreads);
  {
    const Timing t = period([&](cudaStream_t s) { fma_kernel<<<blocks, kMathThreads, 0, s>>>(0.5f, 1.0f, out.get()); });
    cores.correct = expect(out.to_host(1)[0] == 2.0f * kMathChains, "math_peak", "limit of x/2 + 1");
    const double flops = 2.0 * kMathChains * kMathSteps * double(blocks) * kMathThreads;
    cores.points.push_back({{{"type_bits", 32}, {"flops", flops}}, flops / t.seconds, t.seconds, t.spread, t.samples});
  }
  {
    const Timing t = period([&](cudaStream_t s) { half2_kernel<<<blocks, kMathThreads, 0, s>>>(0.5f, 1.0f, out.get()); });
    cores.correct =
        expect(out.to_host(1)[0] > 3.9f * kMathChains, "math_peak", "limit of x/2 + 1 in halves") && cores.correct;
    const double flops = 4.0 * kMathChains * kMathSteps * double(blocks) * kMathThreads;
    cores.points.push_back({{{"type_bits", 16}, {"flops", flops}}, flops / t.seconds, t.seconds, t.spread, t.samples});
  }
  Curve tensor{"mma_sync_peak", "FLOP/s", "mma.sync into fp32; type_bits 16: fp16, 17: bf16, 19: tf32"};
  if (device.at_least(7, 5)) {
    Buffer<unsigned> operands(kMathThreads * 6);
    add_tensor<Type::fp16>(tensor, device, 16, operands, out.get(), out);
    if (device.at_least(8, 0)) {
      add_tensor<Type::bf16>(tensor, device, 17, operands, out.get(), out);
      add_tensor<Type::tf32>(tensor, device, 19, operands, out.get(), out);
    }
  }
  return {cores, tensor};
}

}  // namespace probe
