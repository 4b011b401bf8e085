// Wave quantisation: the time of a grid by its number of thread blocks, with one and with two blocks to an SM.
//
// Idea: equal blocks of pure arithmetic; shared memory nobody uses decides how many fit on an SM. One block more than
// fit at once starts a second wave. With two to an SM they share its pipes, so half a wave costs half as much.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kThreads = 512, kChains = 4, kSteps = 4096;

__global__ void arithmetic_kernel(float a, float b, float* out) {
  extern __shared__ float reserve[];
  float x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = a * float(threadIdx.x + c);
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += x[c];
  if (sum == 12345.678f) reserve[threadIdx.x] = sum;
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

}  // namespace

Curves wave_staircase(const Device& device) {
  Curve curve{"wave_staircase", "us",
              "a grid of equal arithmetic blocks, by number of blocks and blocks that fit on an SM"};
  const int sms = device.sm_count;
  Buffer<float> out(std::size_t(sms) * 4 + 8);
  const int most = static_cast<int>(device.properties.sharedMemPerBlockOptin);
  CHECK_CUDA(cudaFuncSetAttribute(arithmetic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  for (const int fit : {1, 2}) {
    const int shared = fit == 1 ? most : static_cast<int>(device.properties.sharedMemPerMultiprocessor / 2 - 2048);
    int resident = 0;
    CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, arithmetic_kernel, kThreads, shared));
    curve.correct = expect(resident == fit, "wave_staircase", "blocks resident on an SM") && curve.correct;
    std::vector<int> counts{1, 2};
    for (int quarter = 1; quarter <= 16; ++quarter) {
      const int at = sms * quarter / 4;
      if (quarter % 4 == 0) counts.insert(counts.end(), {at - 1, at, at + 1});
      else counts.push_back(at);
    }
    for (const int blocks : counts) {
      const Timing t =
          period([&](cudaStream_t s) { arithmetic_kernel<<<blocks, kThreads, shared, s>>>(0.5f, 1.0f, out.get()); }, 3);
      curve.points.push_back({{{"blocks", double(blocks)}, {"fit", double(fit)}, {"shared_bytes", double(shared)}},
                              t.seconds * 1e6,
                              t.seconds,
                              t.spread,
                              t.samples});
    }
  }
  curve.correct = expect(out.to_host(1)[0] == 2.0f * kChains, "wave_staircase", "limit of x/2 + 1") && curve.correct;
  return {curve};
}

}  // namespace probe
