// Little's law: DRAM bandwidth by the bytes in flight: warps resident on an SM times loads each has outstanding.
//
// Idea: bandwidth = bytes in flight / latency, until the memory is full. Blocks of one warp to thirty-two, each thread
// with 1 to 8 independent 16-byte loads before it uses any (Volkov, "Better performance at lower occupancy", GTC 2010).
#include "hw/probe/probe.h"

namespace probe {
namespace {

/// Grid-stride sweep; every round of a thread issues kLoads independent loads, then waits for them.
template <int kLoads>
__global__ void sweep_kernel(const float4* data, std::size_t n, float* sink) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i + (kLoads - 1) * stride < n;
       i += kLoads * stride) {
    float4 x[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u)
      asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                   : "=f"(x[u].x), "=f"(x[u].y), "=f"(x[u].z), "=f"(x[u].w)
                   : "l"(data + i + u * stride));
#pragma unroll
    for (int u = 0; u < kLoads; ++u) sum += (x[u].x + x[u].y) + (x[u].z + x[u].w);
  }
  if (sum == 12345.678f) *sink = sum;
}

template <int kLoads>
void add(Curve& curve, const Device& device, const Buffer<float>& data, float* sink) {
  for (const int warps : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    if (warps * 32 > device.properties.maxThreadsPerMultiProcessor) continue;
    const int blocks_per_sm = warps > 32 ? 2 : 1, threads = warps * 32 / blocks_per_sm;
    const int blocks = device.sm_count * blocks_per_sm;
    const std::size_t round = std::size_t(blocks) * threads * kLoads;
    const std::size_t n = data.bytes() / sizeof(float4) / round * round;
    const Timing t = period(
        [&](cudaStream_t s) {
          sweep_kernel<kLoads><<<blocks, threads, 0, s>>>(reinterpret_cast<const float4*>(data.get()), n, sink);
        },
        3);
    const double bytes = double(n) * sizeof(float4);
    curve.points.push_back({{{"warps", double(warps)}, {"loads", kLoads}, {"bytes", bytes}},
                            bytes / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  }
}

}  // namespace

Curves occupancy_bandwidth(const Device& device) {
  Curve curve{"occupancy_bandwidth", "B/s", "DRAM read by resident warps an SM and 16-byte loads in flight a thread"};
  Buffer<float> data(512 * kMiB / 4), sink(1);
  fill_pattern(data.get(), data.size());
  add<1>(curve, device, data, sink.get());
  add<2>(curve, device, data, sink.get());
  add<3>(curve, device, data, sink.get());
  add<4>(curve, device, data, sink.get());
  add<8>(curve, device, data, sink.get());
  return {curve};
}

}  // namespace probe
