// Bandwidth of the L1 and of shared memory, in bytes a clock an SM.
//
// Idea: one block of 1,024 threads an SM reads its own few KiB over and over with 16-byte accesses; the SM's own clock
// counter times it, so the clock frequency does not matter.
#include <algorithm>

#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kL1Threads = 1024, kSweeps = 200;

__global__ void l1_kernel(const float4* data, int n, long long* cycles, float* sink) {
  const float4* mine = data + std::size_t{blockIdx.x} * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += kL1Threads) sum += __ldca(mine + i).x;  // brings it in
  __syncthreads();
  const long long begin = clock64();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
#pragma unroll 4
    for (int i = threadIdx.x; i < n; i += kL1Threads) {
      const float4 x = __ldca(mine + i);
      sum += (x.x + x.y) + (x.z + x.w);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
  if (sum == 12345.678f) *sink = sum;
}

constexpr int kSharedBytes = 32768, kSharedLoads = kSharedBytes / (16 * kL1Threads);

__global__ void shared_kernel(long long* cycles, float* sink) {
  __shared__ float4 tile[kSharedBytes / 16];
  for (int i = threadIdx.x; i < kSharedBytes / 16; i += kL1Threads) tile[i] = make_float4(0, 0, 0, 0);
  __syncthreads();
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
  float sum = 0;
  const long long begin = clock64();
#pragma unroll 8
  for (int sweep = 0; sweep < kSweeps; ++sweep)
#pragma unroll
    for (int i = 0; i < kSharedLoads; ++i) {
      float4 x;
      asm volatile("ld.volatile.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                   : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                   : "r"(at + i * kL1Threads * 16));
      sum += x.x + x.w;
    }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
  if (sum != 0.0f) *sink = sum;
}

Point point_of(const std::vector<long long>& cycles, double bytes) {
  std::vector<long long> sorted = cycles;
  std::sort(sorted.begin(), sorted.end());
  const double median = double(sorted[sorted.size() / 2]);
  Point point;
  point.at = {{"bytes", bytes}};
  point.value = bytes * kSweeps / median;
  point.spread = (double(sorted.back()) - double(sorted.front())) / median;
  point.samples = int(sorted.size());
  return point;
}

}  // namespace

Curves l1_shared_bandwidth(const Device& device) {
  Curve l1{"l1_read", "B/cycle", "a block an SM reads its own data again and again, by bytes of them"};
  Curve shared{"shared_read", "B/cycle", "a block an SM reads its shared memory, 16 bytes a thread"};
  const int sms = device.sm_count;
  Buffer<float> data(std::size_t{512} * kKiB / 4 * sms), sink(1);
  fill_pattern(data.get(), data.size());
  Buffer<long long> cycles(sms);
  for (const int kib : {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 384, 512}) {
    const int n = kib * 1024 / 16;
    l1_kernel<<<sms, kL1Threads>>>(reinterpret_cast<const float4*>(data.get()), n, cycles.get(), sink.get());
    l1.points.push_back(point_of(cycles.to_host(sms), kib * 1024.0));
  }
  sink.zero();
  shared_kernel<<<sms, kL1Threads>>>(cycles.get(), sink.get());
  shared.points.push_back(point_of(cycles.to_host(sms), kSharedBytes));
  shared.correct = expect(sink.to_host(1)[0] == 0.0f, "l1_shared_bandwidth", "sum of zeros");
  return {l1, shared};
}

}  // namespace probe
