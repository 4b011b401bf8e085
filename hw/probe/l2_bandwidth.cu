// Bandwidth of the L2 by footprint: every thread block reads the whole footprint, each beginning elsewhere, past the
// L1.
//
// Idea: gpu-benches' gpu-l2-cache (Ernst, RRZE). ld.global.cg keeps the L1 out; blocks that begin at different places
// spread over all slices at any moment. Beyond the L2's capacity the curve falls to DRAM's.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kL2Threads = 1024;

__global__ void sweep_kernel(const float4* data, std::size_t n, int sweeps, float* sink) {
  const std::size_t begin = (n / gridDim.x * blockIdx.x) / kL2Threads * kL2Threads;
  float sum = 0;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::size_t i = begin + threadIdx.x;
#pragma unroll 8
    for (std::size_t step = 0; step < n; step += kL2Threads) {
      const float4 x = __ldcg(data + i);
      sum += (x.x + x.y) + (x.z + x.w);
      i += kL2Threads;
      if (i >= n) i -= n;
    }
  }
  if (sum == 12345.678f) *sink = sum;
}

__global__ void write_kernel(float4* data, std::size_t n, int sweeps) {
  const std::size_t part = n / gridDim.x / kL2Threads * kL2Threads, begin = part * blockIdx.x;
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (std::size_t i = threadIdx.x; i < part; i += kL2Threads)
      __stcg(data + begin + i, make_float4(float(sweep), 0, 0, 0));
}

}  // namespace

Curves l2_bandwidth(const Device& device) {
  const std::size_t largest = 256 * kMiB;
  Buffer<float> data(largest / 4), sink(1);
  fill_pattern(data.get(), data.size());
  Curve read{"l2_read", "B/s", "all blocks read one footprint, past the L1, by bytes of the footprint"};
  Curve write{"l2_write", "B/s", "each block rewrites its part of one footprint, by bytes of the footprint"};
  const unsigned blocks = static_cast<unsigned>(device.sm_count) * 2;
  auto* data4 = reinterpret_cast<float4*>(data.get());
  for (const std::size_t bytes : sizes_between(512 * kKiB, largest, 64 * kKiB)) {
    const std::size_t n = bytes / sizeof(float4);
    const int sweeps = 1;
    const Timing t =
        period([&](cudaStream_t s) { sweep_kernel<<<blocks, kL2Threads, 0, s>>>(data4, n, sweeps, sink.get()); }, 3);
    const double moved = double(bytes) * blocks * sweeps;
    read.points.push_back({{{"bytes", double(bytes)}, {"blocks", double(blocks)}, {"sweeps", double(sweeps)}},
                           moved / t.seconds,
                           t.seconds,
                           t.spread,
                           t.samples});
  }
  for (const std::size_t bytes : sizes_between(8 * kMiB, largest, 64 * kKiB)) {
    const std::size_t n = bytes / sizeof(float4), part = n / blocks / kL2Threads * kL2Threads;
    const int sweeps = static_cast<int>(256 * kMiB / bytes) + 1;
    const auto launch = [&](cudaStream_t s) { write_kernel<<<blocks, kL2Threads, 0, s>>>(data4, n, sweeps); };
    launch(nullptr);
    const auto host = data.to_host(4);
    write.correct = expect(host[0] == float(sweeps - 1), "l2_bandwidth", "last value written") && write.correct;
    const Timing t = period(launch, 3);
    const double moved = double(part) * blocks * sizeof(float4) * sweeps;
    write.points.push_back({{{"bytes", double(bytes)}, {"blocks", double(blocks)}, {"sweeps", double(sweeps)}},
                            moved / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  }
  return {read, write};
}

}  // namespace probe
