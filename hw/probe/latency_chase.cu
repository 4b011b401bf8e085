// Latency of each level by footprint: one thread follows a random chain of pointers, one per 128-byte line.
//
// Idea: Saavedra's pointer chase, as in Wong et al. (ISPASS 2010) and gpu-benches' gpu-latency. Each load's address is
// the previous one's value, so nothing overlaps; where the footprint outgrows a cache the next level answers.
#include <algorithm>
#include <random>

#include "hw/probe/probe.h"

namespace probe {
namespace {

struct Word {
  const Word* next;
};
constexpr int kLine = 128 / sizeof(Word);

/// Goes on from where `*at` points, so that a footprint larger than a cache never meets what it just left there. A
/// cache of the SM is empty when a kernel starts: `warm` steps fill it.
__global__ void chase_kernel(int warm, int steps, long long* cycles, const Word** at) {
  const Word* here = *at;
  for (int i = 0; i < warm; ++i) here = here->next;
  const long long begin = clock64();
#pragma unroll 4
  for (int i = 0; i < steps; ++i) here = here->next;
  *at = here;
  *cycles = clock64() - begin;
}

__global__ void shared_chase_kernel(int steps, long long* cycles, int* last) {
  __shared__ int chain[1024];
  for (int i = 0; i < 1024; ++i) chain[i] = (i + 33) & 1023;
  int at = 0;
  for (int i = 0; i < 64; ++i) at = chain[at];
  const long long begin = clock64();
#pragma unroll 8
  for (int i = 0; i < steps; ++i) at = chain[at];
  *last = at;
  *cycles = clock64() - begin;
}

/// A single cycle through all lines in random order (Sattolo).
std::vector<Word> random_cycle(const Word* base, std::size_t lines) {
  std::vector<std::size_t> order(lines);
  for (std::size_t i = 0; i < lines; ++i) order[i] = i;
  std::mt19937_64 random(7);
  for (std::size_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  std::vector<Word> chain(lines * kLine);
  for (std::size_t i = 0; i < lines; ++i) chain[i * kLine].next = base + order[i] * kLine;
  return chain;
}

}  // namespace

Curves latency_chase(const Device&) {
  Curve global{"global_latency", "cycles", "dependent load, by bytes of the footprint"};
  Curve nanoseconds{"global_latency_time", "ns", "the same in time"};
  Curve shared{"shared_latency", "cycles", "dependent load from shared memory"};
  Buffer<Word> chain(512 * kMiB / sizeof(Word));
  Buffer<const Word*> at(1);
  Buffer<long long> cycles(1);
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  for (const std::size_t bytes :
       {16 * kKiB,  32 * kKiB,  64 * kKiB,  96 * kKiB,  128 * kKiB, 160 * kKiB, 192 * kKiB, 224 * kKiB,
        256 * kKiB, 384 * kKiB, 512 * kKiB, kMiB,       2 * kMiB,   4 * kMiB,   8 * kMiB,   12 * kMiB,
        16 * kMiB,  20 * kMiB,  24 * kMiB,  28 * kMiB,  32 * kMiB,  40 * kMiB,  48 * kMiB,  56 * kMiB,
        64 * kMiB,  80 * kMiB,  96 * kMiB,  128 * kMiB, 192 * kMiB, 256 * kMiB, 512 * kMiB}) {
    const std::size_t lines = bytes / 128;
    const auto host = random_cycle(chain.get(), lines);
    chain.from_host(host);
    at.from_host({chain.get()});
    // Once around (or as far as time allows) brings the L2 and the TLBs to a steady state.
    const int around = static_cast<int>(std::min<std::size_t>(lines, 600000));
    const int warm = static_cast<int>(std::min<std::size_t>(lines, 4096)), steps = 16384;
    chase_kernel<<<1, 1>>>(warm, around, cycles.get(), at.get());
    std::vector<double> per_load, seconds;
    for (int sample = 0; sample < 3; ++sample) {
      CHECK_CUDA(cudaEventRecord(begin));
      chase_kernel<<<1, 1>>>(warm, steps, cycles.get(), at.get());
      CHECK_CUDA(cudaEventRecord(end));
      CHECK_CUDA(cudaEventSynchronize(end));
      float milliseconds = 0;
      CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
      per_load.push_back(double(cycles.to_host(1)[0]) / steps);
      seconds.push_back(milliseconds * 1e-3 / (warm + steps));
    }
    const Word* here = chain.get();
    for (int i = 0; i < around + warm + 3 * (warm + steps); ++i) here = host[here - chain.get()].next;
    global.correct = expect(at.to_host(1)[0] == here, "latency_chase", "end of the chain") && global.correct;
    std::sort(per_load.begin(), per_load.end());
    std::sort(seconds.begin(), seconds.end());
    global.points.push_back({{{"bytes", double(bytes)}}, per_load[1], 0, (per_load[2] - per_load[0]) / per_load[1], 3});
    nanoseconds.points.push_back(
        {{{"bytes", double(bytes)}}, seconds[1] * 1e9, seconds[1], (seconds[2] - seconds[0]) / seconds[1], 3});
  }
  Buffer<int> end_at(1);
  shared_chase_kernel<<<1, 1>>>(4096, cycles.get(), end_at.get());
  shared.points.push_back({{}, double(cycles.to_host(1)[0]) / 4096, 0, 0, 1});
  shared.correct =
      expect(end_at.to_host(1)[0] == (33 * (4096 + 64)) % 1024, "latency_chase", "end of the shared chain");
  CHECK_CUDA(cudaEventDestroy(begin));
  CHECK_CUDA(cudaEventDestroy(end));
  return {global, nanoseconds, shared};
}

}  // namespace probe
