// How fast plain streams move: read, write, copy and triad (a = b + s*c), by size.
//
// Idea: McCalpin's STREAM with one 16-byte access a thread. Four of them a thread, in rounds or at once, cost up to 5 %
// of a copy on an H200: then blocks write and read in longer turns. The same arrays are swept again and again, so that
// small ones are served by the L2 and large ones by DRAM.
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr int kStreamThreads = 256;

__device__ std::size_t element() { return blockIdx.x * std::size_t{kStreamThreads} + threadIdx.x; }

__global__ void read_kernel(const float4* a, float* sink, std::size_t n) {
  const std::size_t i = element();
  if (i >= n) return;
  const float4 x = a[i];
  const float sum = (x.x + x.y) + (x.z + x.w);
  if (sum == 12345.678f) *sink = sum;  // never true for the pattern: keeps the load
}

__global__ void write_kernel(float4* a, float value, std::size_t n) {
  const std::size_t i = element();
  if (i < n) a[i] = make_float4(value, value, value, value);
}

__global__ void copy_kernel(float4* a, const float4* b, std::size_t n) {
  const std::size_t i = element();
  if (i < n) a[i] = b[i];
}

__global__ void triad_kernel(float4* a, const float4* b, const float4* c, float s, std::size_t n) {
  const std::size_t i = element();
  if (i >= n) return;
  const float4 x = b[i], y = c[i];
  a[i] = make_float4(x.x + s * y.x, x.y + s * y.y, x.z + s * y.z, x.w + s * y.w);
}

}  // namespace

Curves dram_stream(const Device& device) {
  const std::size_t largest = device.properties.totalGlobalMem > 16 * kGiB ? kGiB : 256 * kMiB;
  Buffer<float> a(largest / 4), b(largest / 4), c(largest / 4), sink(1);
  fill_pattern(b.get(), b.size());
  fill_pattern(c.get(), c.size());
  auto* a4 = reinterpret_cast<float4*>(a.get());
  const auto *b4 = reinterpret_cast<const float4*>(b.get()), *c4 = reinterpret_cast<const float4*>(c.get());
  const auto blocks = [](std::size_t n) { return static_cast<unsigned>((n + kStreamThreads - 1) / kStreamThreads); };

  Curve read{"dram_read", "B/s", "read of one array, by bytes of the array"};
  Curve write{"dram_write", "B/s", "write of one array, by bytes of the array"};
  Curve copy{"dram_copy", "B/s", "copy, read plus written bytes, by bytes of one array"};
  Curve triad{"dram_triad", "B/s", "a = b + s*c, read plus written bytes, by bytes of one array"};
  {
    const std::size_t n = a.size() / 4, odd = n - 77;
    triad_kernel<<<blocks(odd), kStreamThreads>>>(a4, b4, c4, 3.0f, odd);
    const auto host = a.to_host(4096);
    bool right = true;
    for (std::size_t i = 0; i < host.size(); ++i)
      right = right && std::abs(host[i] - (pattern(i) + 3.0f * pattern(i))) < 1e-5f;
    triad.correct = expect(right, "dram_stream", "triad");
    copy_kernel<<<blocks(n), kStreamThreads>>>(a4, b4, n);
    const auto copied = a.to_host(4096);
    right = true;
    for (std::size_t i = 0; i < copied.size(); ++i) right = right && copied[i] == pattern(i);
    copy.correct = expect(right, "dram_stream", "copy");
    write_kernel<<<blocks(n), kStreamThreads>>>(a4, 2.5f, n);
    const auto written = a.to_host(4096);
    right = true;
    for (const float x : written) right = right && x == 2.5f;
    write.correct = expect(right, "dram_stream", "write");
  }
  for (const std::size_t bytes : sizes_between(kMiB, largest, 64 * kKiB)) {
    const std::size_t n = bytes / sizeof(float4);
    const auto add = [&](Curve& curve, double moved, const std::function<void(cudaStream_t)>& launch) {
      const Timing t = period(launch);
      curve.points.push_back({{{"bytes", double(bytes)}}, moved / t.seconds, t.seconds, t.spread, t.samples});
    };
    add(read, double(bytes), [&](cudaStream_t s) { read_kernel<<<blocks(n), kStreamThreads, 0, s>>>(b4, sink.get(), n); });
    add(write, double(bytes), [&](cudaStream_t s) { write_kernel<<<blocks(n), kStreamThreads, 0, s>>>(a4, 2.5f, n); });
    add(copy, 2.0 * bytes, [&](cudaStream_t s) { copy_kernel<<<blocks(n), kStreamThreads, 0, s>>>(a4, b4, n); });
    add(triad, 3.0 * bytes, [&](cudaStream_t s) { triad_kernel<<<blocks(n), kStreamThreads, 0, s>>>(a4, b4, c4, 3.0f, n); });
  }
  return {read, write, copy, triad};
}

}  // namespace probe
