// Shared-memory bank conflicts: clocks of a warp's load by the stride of its lanes.
//
// Idea: 32 banks of 4 bytes; lanes whose words differ but share a bank are served one after another. A stride of s
// words makes gcd(s, 32) of them share each bank.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kWarps = 8, kLoads = 512, kWords = 32 * 33;

__global__ void stride_kernel(int stride, long long* cycles, int* sink) {
  __shared__ int words[kWords];
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) words[i] = 0;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  int sum = 0;
  const int at = (lane * stride) % (32 * 32);
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kLoads; ++i) {
    int x;
    asm volatile("ld.volatile.shared.s32 %0, [%1];"
                 : "=r"(x)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(words + at))));
    sum += x;
  }
  __syncthreads();
  if (threadIdx.x == 0) *cycles = clock64() - begin;
  if (sum != 0) *sink = sum;
}

}  // namespace

Curves bank_conflicts(const Device&) {
  Curve curve{"bank_conflicts", "cycles", "an SM's clocks for a warp's 4-byte load, by the lanes' stride in words"};
  Buffer<long long> cycles(1);
  Buffer<int> sink(1);
  sink.zero();
  for (const int stride : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 28, 31, 32, 48}) {
    double least = 1e30, most = 0;
    for (int sample = 0; sample < 3; ++sample) {
      stride_kernel<<<1, kWarps * 32>>>(stride, cycles.get(), sink.get());
      const double c = double(cycles.to_host(1)[0]) / (kLoads * kWarps);
      least = std::min(least, c);
      most = std::max(most, c);
    }
    curve.points.push_back({{{"stride", double(stride)}}, least, 0, (most - least) / least, 3});
  }
  curve.correct = expect(sink.to_host(1)[0] == 0, "bank_conflicts", "sum of zeros");
  return {curve};
}

}  // namespace probe
