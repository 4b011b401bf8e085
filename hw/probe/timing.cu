// Timing by CUDA graphs, and the contents of buffers.
#include <algorithm>
#include <cmath>

#include "hw/probe/probe.h"

namespace probe {
namespace {

__global__ void fill_pattern_kernel(float* buffer, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x)
    buffer[i] = pattern(i);
}

/// A graph of `repeats` launches, launched between two events.
class Repeated {
 public:
  Repeated(const std::function<void(cudaStream_t)>& launch, int repeats) {
    CHECK_CUDA(cudaStreamCreate(&stream_));
    CHECK_CUDA(cudaEventCreate(&begin_));
    CHECK_CUDA(cudaEventCreate(&end_));
    cudaGraph_t graph = nullptr;
    CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeats; ++i) launch(stream_);
    CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&executable_, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaGraphUpload(executable_, stream_));
  }
  ~Repeated() {
    cudaGraphExecDestroy(executable_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  double seconds() {
    CHECK_CUDA(cudaEventRecord(begin_, stream_));
    CHECK_CUDA(cudaGraphLaunch(executable_, stream_));
    CHECK_CUDA(cudaEventRecord(end_, stream_));
    CHECK_CUDA(cudaEventSynchronize(end_));
    float milliseconds = 0;
    CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e-3;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

Timing period(const std::function<void(cudaStream_t)>& launch, int samples) {
  constexpr double kSample = 1.5e-3;  // seconds: a graph starts in a few microseconds
  Repeated few(launch, 3);
  few.seconds();
  const double estimate = few.seconds() / 3.0;
  const int repeats = static_cast<int>(std::clamp(std::ceil(kSample / estimate), 3.0, 2000.0));
  Repeated many(launch, repeats);
  many.seconds();
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) seconds.push_back(many.seconds() / repeats);
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return {median, (seconds.back() - seconds.front()) / median, samples};
}

void fill_pattern(float* buffer, std::size_t count) {
  fill_pattern_kernel<<<1024, 256>>>(buffer, count);
  CHECK_CUDA(cudaDeviceSynchronize());
}

std::vector<std::size_t> sizes_between(std::size_t from, std::size_t to, std::size_t unit) {
  std::vector<std::size_t> sizes;
  const double first = static_cast<double>(from), last = static_cast<double>(to) * 1.001;
  for (int step = 0; first * std::exp2(0.25 * step) <= last; ++step)
    sizes.push_back(static_cast<std::size_t>(first * std::exp2(0.25 * step) / static_cast<double>(unit) + 0.5) * unit);
  return sizes;
}

bool expect(bool correct, const char* microkernel, const char* what) {
  if (!correct) std::fprintf(stderr, "ridgeline_probe: %s: wrong result: %s\n", microkernel, what);
  return correct;
}

}  // namespace probe
