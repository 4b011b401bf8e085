// Atomic additions by how many addresses share them: all threads on one, one an SM, one a warp, one a thread.
//
// Idea: the L2 slices do the addition, one address at a time; the SM first adds up what a warp sends to one address.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kThreads = 256, kRounds = 64;

__global__ void add_kernel(unsigned* counters, unsigned addresses, unsigned stride) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < kRounds; ++round) atomicAdd(counters + (thread / stride) % addresses, 1u);
}

}  // namespace

Curves atomics(const Device& device) {
  Curve curve{"atomic_add", "op/s", "32-bit atomic additions of threads, by distinct addresses"};
  const unsigned blocks = static_cast<unsigned>(device.sm_count) * 8, threads = blocks * kThreads;
  Buffer<unsigned> counters(threads);
  const auto run = [&](unsigned addresses, unsigned stride) {
    counters.zero();
    add_kernel<<<blocks, kThreads>>>(counters.get(), addresses, stride);
    std::uint64_t sum = 0;
    for (const unsigned x : counters.to_host(addresses)) sum += x;
    const double operations = double(threads) * kRounds;
    curve.correct = expect(double(sum) == operations, "atomics", "sum of the counters") && curve.correct;
    const Timing t =
        period([&](cudaStream_t s) { add_kernel<<<blocks, kThreads, 0, s>>>(counters.get(), addresses, stride); }, 3);
    curve.points.push_back({{{"addresses", double(addresses)}, {"operations", operations}},
                            operations / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  };
  run(1, threads);
  run(blocks, kThreads);
  run(threads / 32, 32);
  run(threads, 1);
  return {curve};
}

}  // namespace probe
