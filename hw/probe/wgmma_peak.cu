// Peak rate of Hopper's tensor cores: wgmma on operands in shared memory, fp32 accumulators, random data and zeros.
//
// Idea: two warpgroups an SM, each with one 64 x 256 tile of accumulators, issue wgmma of k = 16 from the same 10 KiB
// of shared memory without ever waiting for memory. The contents' layout does not matter for the rate; operands without
// swizzle keep the descriptor simple (PTX ISA, asynchronous warpgroup matrix instructions).
#include <cuda_bf16.h>

#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kWarpgroup = 128, kTileM = 64, kTileN = 256, kTileK = 16, kWgmmaSteps = 2048;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// Shared-memory matrix descriptor without swizzle: addresses and offsets in units of 16 bytes.
__device__ std::uint64_t descriptor(const void* at, unsigned leading_bytes, unsigned stride_bytes) {
  const std::uint64_t address = static_cast<std::uint64_t>(__cvta_generic_to_shared(at));
  return ((address & 0x3FFFF) >> 4) | (std::uint64_t{leading_bytes >> 4} << 16) |
         (std::uint64_t{stride_bytes >> 4} << 32);
}

#define OUT4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define OUT16(d, i) OUT4(d, i), OUT4(d, i + 4), OUT4(d, i + 8), OUT4(d, i + 12)
#define OUT64(d, i) OUT16(d, i), OUT16(d, i + 16), OUT16(d, i + 32), OUT16(d, i + 48)

__device__ void multiply(float (&d)[128], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,"
      "%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,"
      "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,"
      "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, "
      "%128, %129, 1, 1, 1, 0, 0;"
      : OUT64(d, 0), OUT64(d, 64)
      : "l"(a), "l"(b));
}
#endif

__global__ void __launch_bounds__(2 * kWarpgroup) wgmma_kernel(const __nv_bfloat16* operands, float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(128) __nv_bfloat16 a[kTileM * kTileK], b[kTileN * kTileK];
  for (int i = threadIdx.x; i < kTileM * kTileK; i += blockDim.x) a[i] = operands[i];
  for (int i = threadIdx.x; i < kTileN * kTileK; i += blockDim.x) b[i] = operands[kTileM * kTileK + i];
  __syncthreads();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  // 8x8 core matrices of 128 bytes: two along k, then groups of eight rows 256 bytes apart.
  const std::uint64_t a_at = descriptor(a, 128, 256), b_at = descriptor(b, 128, 256);
  float d[128] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int step = 0; step < kWgmmaSteps; step += 4) {
    multiply(d, a_at, b_at);
    multiply(d, a_at, b_at);
    multiply(d, a_at, b_at);
    multiply(d, a_at, b_at);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  float sum = 0;
  for (int i = 0; i < 128; ++i) sum += d[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#else
  (void)operands;
  (void)out;
#endif
}

}  // namespace

Curves wgmma_peak(const Device& device) {
  Curve curve{"wgmma_peak", "FLOP/s", "wgmma of bf16 into fp32 from shared memory"};
  if (device.properties.major != 9) return {curve};
  const int count = (kTileM + kTileN) * kTileK;
  Buffer<__nv_bfloat16> operands(count);
  Buffer<float> out(std::size_t(device.sm_count) * 2 * kWarpgroup);
  // Every sum of a row's accumulators adds up to steps times row(a) · sum of all rows of b: with ones, exactly known.
  operands.from_host(std::vector<__nv_bfloat16>(count, __float2bfloat16(1.0f)));
  wgmma_kernel<<<device.sm_count, 2 * kWarpgroup>>>(operands.get(), out.get());
  curve.correct = expect(out.to_host(1)[0] == 128.0f * kTileK * kWgmmaSteps, "wgmma_peak", "products of ones");
  for (const bool random : {true, false}) {
    std::vector<__nv_bfloat16> host(count);
    for (int i = 0; i < count; ++i) host[i] = __float2bfloat16(random ? pattern(i) : 0.0f);
    operands.from_host(host);
    const Timing t = period(
        [&](cudaStream_t s) { wgmma_kernel<<<device.sm_count, 2 * kWarpgroup, 0, s>>>(operands.get(), out.get()); });
    const double flops = 2.0 * kTileM * kTileN * kTileK * double(kWgmmaSteps) * 2.0 * device.sm_count;
    curve.points.push_back({{{"type_bits", 17}, {"random", double(random)}, {"flops", flops}},
                            flops / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  }
  return {curve};
}

}  // namespace probe
