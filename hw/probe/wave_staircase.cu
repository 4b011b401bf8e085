// Wave quantisation: the time of a grid by its number of thread blocks, with one, two and four blocks to an SM, and how
// many blocks the fullest SM was given.
//
// Idea: equal blocks of pure arithmetic; shared memory nobody uses decides how many fit on an SM. One block more than
// fit at once starts a second wave. With two to an SM they share its pipes, so half a wave costs half as much. They do
// not share them evenly: ends drift apart, and where grids nearly fill their last wave an SM may take one block more
// than its share.
#include <algorithm>

#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kStaircaseThreads = 512, kStaircaseChains = 4, kStaircaseSteps = 4096;

/// `sms`, where there is one, is told the SM that ran each block.
template <bool kTold>
__global__ void arithmetic_kernel(float a, float b, float* out, unsigned* sms) {
  extern __shared__ float reserve[];
  float x[kStaircaseChains];
  for (int c = 0; c < kStaircaseChains; ++c) x[c] = a * float(threadIdx.x + c);
  for (int step = 0; step < kStaircaseSteps; ++step)
#pragma unroll
    for (int c = 0; c < kStaircaseChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
  for (int c = 0; c < kStaircaseChains; ++c) sum += x[c];
  if (sum == 12345.678f) reserve[threadIdx.x] = sum;
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
  if (kTold && threadIdx.x == 0) asm volatile("mov.u32 %0, %%smid;" : "=r"(sms[blockIdx.x]));
}

/// Blocks of the fullest SM, launch by launch.
std::vector<double> fullest(int blocks, int shared, Buffer<float>& out) {
  constexpr int kLaunches = 24;
  Buffer<unsigned> sms(std::size_t(kLaunches) * blocks);
  for (int i = 0; i < kLaunches; ++i)
    arithmetic_kernel<true><<<blocks, kStaircaseThreads, shared>>>(0.5f, 1.0f, out.get(), sms.get() + std::size_t(i) * blocks);
  const auto host = sms.to_host(sms.size());
  std::vector<double> most;
  for (int i = 0; i < kLaunches; ++i) {
    std::vector<int> count(1024);
    for (int b = 0; b < blocks; ++b) ++count[host[std::size_t(i) * blocks + b] % 1024];
    most.push_back(*std::max_element(count.begin(), count.end()));
  }
  return most;
}

/// Block counts around and between those that fill the SMs evenly.
std::vector<int> counts_of(int sms, int fit) {
  std::vector<int> counts{1, 2};
  const int most = fit == 1 ? 4 : fit == 2 ? 6 : 8;
  for (int full = 1; full <= most; ++full) {
    const int before = sms * (full - 1), at = sms * full;
    for (const int eighth : {1, 2, 3, 4, 5, 6, 7})
      if (eighth % 2 == 0 || (fit <= 2 && full > fit)) counts.push_back(before + sms * eighth / 8);
    if (full > fit && full % fit == 0 && fit > 1) counts.insert(counts.end(), {at - 16, at - 8, at - 4, at - 2});
    counts.insert(counts.end(), {at - 1, at, at + 1});
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

Curves wave_staircase(const Device& device) {
  Curve curve{"wave_staircase", "us",
              "a grid of equal arithmetic blocks, by number of blocks and blocks that fit on an SM"};
  Curve uneven{"wave_fullest_sm", "blocks", "blocks of the SM that was given most of the same grids, mean of launches"};
  const int sms = device.sm_count;
  Buffer<float> out(std::size_t(sms) * 12 + 8);
  const int most = static_cast<int>(device.properties.sharedMemPerBlockOptin);
  for (const auto kernel : {arithmetic_kernel<false>, arithmetic_kernel<true>})
    CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  for (const int fit : {1, 2, 4}) {
    if (fit * kStaircaseThreads > device.properties.maxThreadsPerMultiProcessor) continue;
    const int shared = fit == 1 ? most : static_cast<int>(device.properties.sharedMemPerMultiprocessor / fit - 2048);
    int resident = 0;
    CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, arithmetic_kernel<false>, kStaircaseThreads, shared));
    curve.correct = expect(resident == fit, "wave_staircase", "blocks resident on an SM") && curve.correct;
    for (const int blocks : counts_of(sms, fit)) {
      const std::vector<std::pair<std::string, double>> at{
          {"blocks", double(blocks)}, {"fit", double(fit)}, {"shared_bytes", double(shared)}};
      const Timing t = period(
          [&](cudaStream_t s) {
            arithmetic_kernel<false><<<blocks, kStaircaseThreads, shared, s>>>(0.5f, 1.0f, out.get(), nullptr);
          },
          7);
      curve.points.push_back({at, t.seconds * 1e6, t.seconds, t.spread, t.samples});
      if (fit == 1 || blocks <= sms) continue;
      const auto counted = fullest(blocks, shared, out);
      double sum = 0;
      for (const double n : counted) sum += n;
      const double mean = sum / double(counted.size());
      const auto [least, largest] = std::minmax_element(counted.begin(), counted.end());
      uneven.points.push_back({at, mean, 0, (*largest - *least) / mean, int(counted.size())});
    }
  }
  curve.correct = expect(out.to_host(1)[0] == 2.0f * kStaircaseChains, "wave_staircase", "limit of x/2 + 1") && curve.correct;
  uneven.correct = curve.correct;
  return {curve, uneven};
}

}  // namespace probe
