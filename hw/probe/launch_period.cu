// What a kernel costs that does nothing: its period in a stream and in a graph, the host's share, the way there and
// back, and how the period grows with thread blocks.
//
// Idea: many launches in a row measure the pipeline, one launch followed by a wait measures the way. gpu-benches'
// gpu-small-kernels separates stream and graph in the same way.
#include <algorithm>
#include <chrono>

#include "hw/probe/probe.h"

namespace probe {
namespace {

__global__ void empty_kernel() {}
__global__ void count_kernel(int* count) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *count += 1;
}

/// Keeps the GPU busy while the host fills the queue behind it.
__global__ void wait_kernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Point of_samples(std::vector<double> seconds, double unit, std::vector<std::pair<std::string, double>> at = {}) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return {std::move(at), median / unit, median, (seconds.back() - seconds.front()) / median, int(seconds.size())};
}

}  // namespace

Curves launch_period(const Device& device) {
  constexpr double kMicrosecond = 1e-6;
  constexpr int kQueue = 500;
  Curve stream{"stream_period", "us", "small kernels that were queued in a stream before the first one ran"};
  Curve host{"launch_call", "us", "the host's time of a launch call while the queue has room"};
  Curve round_trip{"launch_round_trip", "us", "launch on an idle GPU until the host sees it done"};
  Curve graph{"graph_period", "us", "kernel to kernel in a graph, by thread blocks of 128 threads"};
  Curve memsets{"memset_period", "us", "memset to memset in a graph, by bytes"};

  Buffer<int> count(1);
  count.zero();
  std::vector<double> in_stream, calls, trips;
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  for (int sample = 0; sample < 9; ++sample) {
    CHECK_CUDA(cudaDeviceSynchronize());
    wait_kernel<<<1, 1>>>(static_cast<long long>(device.clock_hertz * 5e-3));
    const double before = seconds_now();
    CHECK_CUDA(cudaEventRecord(begin));
    for (int i = 0; i < kQueue; ++i) count_kernel<<<1, 32>>>(count.get());
    CHECK_CUDA(cudaEventRecord(end));
    calls.push_back((seconds_now() - before) / kQueue);
    CHECK_CUDA(cudaEventSynchronize(end));
    float milliseconds = 0;
    CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    in_stream.push_back(milliseconds * 1e-3 / kQueue);
  }
  for (int sample = 0; sample < 200; ++sample) {
    const double before = seconds_now();
    empty_kernel<<<1, 32>>>();
    CHECK_CUDA(cudaDeviceSynchronize());
    trips.push_back(seconds_now() - before);
  }
  stream.correct = expect(count.to_host(1)[0] == 9 * kQueue, "launch_period", "number of kernels run");
  stream.points.push_back(of_samples(in_stream, kMicrosecond));
  host.points.push_back(of_samples(calls, kMicrosecond));
  std::sort(trips.begin(), trips.end());
  trips = {trips[50], trips[100], trips[150]};
  round_trip.points.push_back(of_samples(trips, kMicrosecond));
  for (const int blocks : {1, 8, 16, 32, 66, 132, 198, 264, 396, 528, 792, 1056, 2112, 4224, 8448, 16896, 67584}) {
    const Timing t = period([&](cudaStream_t s) { empty_kernel<<<blocks, 128, 0, s>>>(); });
    graph.points.push_back({{{"blocks", double(blocks)}}, t.seconds / kMicrosecond, t.seconds, t.spread, t.samples});
  }
  Buffer<char> bytes(256 * kMiB);
  for (const std::size_t size :
       {std::size_t{4}, 4 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB}) {
    const Timing t = period([&](cudaStream_t s) { CHECK_CUDA(cudaMemsetAsync(bytes.get(), 0, size, s)); });
    memsets.points.push_back({{{"bytes", double(size)}}, t.seconds / kMicrosecond, t.seconds, t.spread, t.samples});
  }
  CHECK_CUDA(cudaEventDestroy(begin));
  CHECK_CUDA(cudaEventDestroy(end));
  return {stream, host, round_trip, graph, memsets};
}

}  // namespace probe
