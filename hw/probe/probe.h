// What the microkernels share: checked CUDA calls, device buffers of known contents, timing with its spread, and the
// shape of a result.
//
// A time here is the period of a kernel in a CUDA graph that repeats it: free of the host's launch cost, and including
// the graph's own kernel-to-kernel gap, which graph_period measures alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define CHECK_CUDA(call)                                                                               \
  do {                                                                                                 \
    const cudaError_t status_ = (call);                                                                \
    if (status_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (0)

namespace probe {

/// One point of a curve: where it was taken, and what was measured there.
struct Point {
  std::vector<std::pair<std::string, double>> at;  ///< parameters, in the order of the table's columns
  double value = 0;                                ///< in the curve's unit
  double seconds = 0;                              ///< of one repetition; 0 where the value is no time's quotient
  double spread = 0;                               ///< (largest - smallest) / median of the samples
  int samples = 0;
};

struct Curve {
  std::string name, unit, what;
  std::vector<Point> points;
  bool correct = true;  ///< results were compared with the expected ones before timing
};

struct Timing {
  double seconds = 0, spread = 0;
  int samples = 0;
};

struct Device {
  cudaDeviceProp properties{};
  int index = 0;
  int sm_count = 0;
  double clock_hertz = 0;  ///< highest SM clock
  [[nodiscard]] bool at_least(int major, int minor) const {
    return properties.major > major || (properties.major == major && properties.minor >= minor);
  }
};

/// Seconds of one `launch(stream)` repeated in a graph: median of `samples`, each long enough to drown the graph's own
/// start. What `launch` enqueues must be capturable.
Timing period(const std::function<void(cudaStream_t)>& launch, int samples = 5);

/// Device memory, freed at the end of the scope.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) { CHECK_CUDA(cudaMalloc(&data_, count * sizeof(T))); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  void zero() { CHECK_CUDA(cudaMemset(data_, 0, bytes())); }
  [[nodiscard]] std::vector<T> to_host(std::size_t count) const {
    std::vector<T> host(count);
    CHECK_CUDA(cudaMemcpy(host.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  void from_host(const std::vector<T>& host) {
    CHECK_CUDA(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// A value in [-1, 1) that depends on the index alone, the same on host and device.
__host__ __device__ inline float pattern(std::uint64_t i) {
  std::uint64_t x = i * 0x9E3779B97F4A7C15ull;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  return static_cast<float>(static_cast<std::uint32_t>(x) >> 8) * (1.0f / 8388608.0f) - 1.0f;
}

/// buffer[i] = pattern(i)
void fill_pattern(float* buffer, std::size_t count);

/// Bytes in four steps an octave, each a multiple of `unit`.
std::vector<std::size_t> sizes_between(std::size_t from, std::size_t to, std::size_t unit);

/// Says on stderr that a result is wrong; the curve is then marked and the program fails at its end.
bool expect(bool correct, const char* microkernel, const char* what);

constexpr std::size_t kKiB = 1024, kMiB = 1024 * 1024, kGiB = 1024 * 1024 * 1024;

// The microkernels, one a file.
using Curves = std::vector<Curve>;
Curves dram_stream(const Device&);
Curves read_write_mix(const Device&);
Curves l2_bandwidth(const Device&);
Curves l2_residency(const Device&);
Curves l1_shared_bandwidth(const Device&);
Curves latency_chase(const Device&);
Curves bank_conflicts(const Device&);
Curves math_peak(const Device&);
Curves wgmma_peak(const Device&);
Curves launch_period(const Device&);
Curves wave_staircase(const Device&);
Curves occupancy_bandwidth(const Device&);
Curves atomics(const Device&);
Curves async_copy(const Device&);
Curves gemm_naive(const Device&);
Curves gemm_shared(const Device&);
Curves gemm_tensor(const Device&);
Curves host_copies(const Device&);
Curves sustained_load(const Device&);

}  // namespace probe
