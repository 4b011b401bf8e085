// What of an array is still in the L2 when it is read again: clean (read before) and dirty (written before), by size.
//
// Idea: a cyclic sweep over more than the cache holds would never hit under strict LRU; real caches let go gradually.
// The time of a re-read against that of an array of the same size from DRAM shows the share that stayed.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kResidencyThreads = 256, kUnroll = 4;

__global__ void read_kernel(const float4* a, float* sink) {
  const std::size_t first = blockIdx.x * std::size_t{kResidencyThreads * kUnroll} + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const float4 x = a[first + u * kResidencyThreads];
    sum += (x.x + x.y) + (x.z + x.w);
  }
  if (sum == 12345.678f) *sink = sum;
}

__global__ void write_kernel(float4* a) {
  const std::size_t first = blockIdx.x * std::size_t{kResidencyThreads * kUnroll} + threadIdx.x;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) a[first + u * kResidencyThreads] = make_float4(0.25f, 0.5f, 0.75f, 1.0f);
}

}  // namespace

Curves l2_residency(const Device& device) {
  const double capacity = device.properties.l2CacheSize;
  Curve clean{"l2_reread_clean", "B/s", "an array read again and again, by bytes"};
  Curve dirty{"l2_reread_dirty", "B/s", "an array written, then read; bytes of both, by bytes of the array"};
  const std::size_t largest = static_cast<std::size_t>(3.0 * capacity) / (64 * kKiB) * (64 * kKiB);
  Buffer<float> a(largest / 4), sink(1);
  fill_pattern(a.get(), a.size());
  auto* a4 = reinterpret_cast<float4*>(a.get());
  for (int step = 4; step <= 72; step += step < 48 ? 1 : 4) {
    const double share = 0.025 * step;
    const std::size_t bytes = static_cast<std::size_t>(share * capacity) / (16 * kKiB) * (16 * kKiB);
    const unsigned blocks = static_cast<unsigned>(bytes / (sizeof(float4) * kResidencyThreads * kUnroll));
    const Timing again = period([&](cudaStream_t s) { read_kernel<<<blocks, kResidencyThreads, 0, s>>>(a4, sink.get()); });
    clean.points.push_back(
        {{{"bytes", double(bytes)}}, bytes / again.seconds, again.seconds, again.spread, again.samples});
    const Timing both = period([&](cudaStream_t s) {
      write_kernel<<<blocks, kResidencyThreads, 0, s>>>(a4);
      read_kernel<<<blocks, kResidencyThreads, 0, s>>>(a4, sink.get());
    });
    dirty.points.push_back(
        {{{"bytes", double(bytes)}}, 2.0 * bytes / both.seconds, both.seconds, both.spread, both.samples});
  }
  const auto host = a.to_host(4);
  dirty.correct = expect(host[0] == 0.25f && host[3] == 1.0f, "l2_residency", "values written");
  return {clean, dirty};
}

}  // namespace probe
