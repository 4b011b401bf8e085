// Atomic additions by how many addresses share them: all threads on one, one a block, one a warp, one a thread, each
// address beside the next or in a line of its own.
//
// Idea: the L2 slices do the addition, one address at a time; the SM first adds up what a warp sends to one address.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kAtomicThreads = 256, kRounds = 64;

/// `together` threads that follow each other share an address, all threads `addresses` of them, `apart` words from one
/// to the next.
__global__ void add_kernel(unsigned* counters, unsigned addresses, unsigned together, unsigned apart) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < kRounds; ++round) atomicAdd(counters + (thread / together) % addresses * apart, 1u);
}

}  // namespace

Curves atomics(const Device& device) {
  Curve curve{"atomic_add", "op/s", "32-bit atomic additions of threads, by distinct addresses"};
  const unsigned blocks = static_cast<unsigned>(device.sm_count) * 8, threads = blocks * kAtomicThreads;
  Buffer<unsigned> counters(threads);
  const auto run = [&](unsigned addresses, unsigned together, unsigned apart) {
    counters.zero();
    add_kernel<<<blocks, kAtomicThreads>>>(counters.get(), addresses, together, apart);
    std::uint64_t sum = 0;
    for (const unsigned x : counters.to_host(addresses * apart)) sum += x;
    const double operations = double(threads) * kRounds;
    curve.correct = expect(double(sum) == operations, "atomics", "sum of the counters") && curve.correct;
    const Timing t = period(
        [&](cudaStream_t s) { add_kernel<<<blocks, kAtomicThreads, 0, s>>>(counters.get(), addresses, together, apart); }, 3);
    curve.points.push_back({{{"addresses", double(addresses)},
                             {"together", double(together)},
                             {"bytes_apart", 4.0 * apart},
                             {"operations", operations}},
                            operations / t.seconds,
                            t.seconds,
                            t.spread,
                            t.samples});
  };
  // Threads in a row share an address: all, those of eight blocks, of a block, of a warp, eight, two, none.
  for (const unsigned together : {threads, threads / 2, threads / 4, 8u * kAtomicThreads, 1u * kAtomicThreads, 32u, 8u, 2u, 1u})
    run(threads / together, together, 1);
  // The same with a line of the L2 for each address.
  for (const unsigned together : {threads / 4, 8u * kAtomicThreads, 1u * kAtomicThreads, 32u})
    run(threads / together, together, 32);
  // Every thread of a warp another address, which all warps share.
  for (const unsigned addresses : {32u, 1024u, 32768u}) run(addresses, 1, 1);
  return {curve};
}

}  // namespace probe
