// Clock, power and rate under a load that lasts: multiply-adds in fp32, tensor cores with random data and with zeros,
// and a DRAM copy.
//
// Idea: a second of one kernel after another, watched through the management library. What the board settles at is the
// power limit's doing, and the energy of an operation follows from power and rate.
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <chrono>

#include "hw/probe/nvml.h"
#include "hw/probe/probe.h"

namespace probe {
namespace {

constexpr double kSeconds = 1.2;
enum class Load { fp32, tensor_random, tensor_zeros, copy };

__global__ void sustained_fma_kernel(float a, float b, float* out) {
  float x[8];
  for (int c = 0; c < 8; ++c) x[c] = a * float(threadIdx.x + c);
  for (int step = 0; step < 16384; ++step)
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
  for (int c = 0; c < 8; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void tensor_kernel(const __half* operands, float* out) {
#if __CUDA_ARCH__ >= 700
  using namespace nvcuda::wmma;
  __shared__ __half tile[16 * 16 * 4];
  for (int i = threadIdx.x; i < 16 * 16 * 4; i += blockDim.x) tile[i] = operands[i];
  __syncthreads();
  fragment<matrix_a, 16, 16, 16, __half, row_major> a;
  fragment<matrix_b, 16, 16, 16, __half, col_major> b[2];
  fragment<accumulator, 16, 16, 16, float> d[2];
  load_matrix_sync(a, tile, 16);
  for (int i = 0; i < 2; ++i) {
    load_matrix_sync(b[i], tile + 256 * (1 + i), 16);
    fill_fragment(d[i], 0.0f);
  }
  for (int step = 0; step < 16384; ++step)
    for (int i = 0; i < 2; ++i) mma_sync(d[i], a, b[i], d[i]);
  float sum = 0;
  for (int i = 0; i < d[0].num_elements; ++i) sum += d[0].x[i] + d[1].x[i];  // all of them, or half the work is dead
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

__global__ void sustained_copy_kernel(float4* to, const float4* from, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

}  // namespace

Curves sustained_load(const Device& device) {
  Curve clock{"sustained_clock", "Hz",
              "SM clock in the last half of a load; load 0: fp32, 1: tensor cores with random "
              "data, 2: with zeros, 3: copy"};
  Curve power{"sustained_power", "W", "board power in the last half of the same loads"};
  Curve rate{"sustained_rate", "1/s", "operations (FLOP, or bytes of the copy) a second of the same loads"};
  Nvml nvml;
  if (!nvml.there()) {
    std::fprintf(stderr, "ridgeline_probe: no management library: clock and power under load are left out\n");
    return {clock, power, rate};
  }
  const std::size_t bytes = 256 * kMiB;
  Buffer<float> to(bytes / 4), from(bytes / 4);
  Buffer<__half> operands(1024);
  fill_pattern(from.get(), from.size());
  const int blocks = device.sm_count * 8;
  for (const Load load : {Load::fp32, Load::tensor_random, Load::tensor_zeros, Load::copy}) {
    if (load != Load::fp32 && load != Load::copy && !device.at_least(7, 0)) continue;
    std::vector<__half> host(operands.size());
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i] = __float2half(load == Load::tensor_random ? pattern(i) : 0.0f);
    operands.from_host(host);
    double operations = 0;
    const auto launch = [&] {
      if (load == Load::fp32) {
        sustained_fma_kernel<<<blocks, 256>>>(0.5f, 1.0f, to.get());
        operations += 2.0 * 8 * 16384 * 256.0 * blocks;
      } else if (load == Load::copy) {
        sustained_copy_kernel<<<blocks, 256>>>(reinterpret_cast<float4*>(to.get()), reinterpret_cast<const float4*>(from.get()),
                                     bytes / 16);
        operations += 2.0 * bytes;
      } else {
        tensor_kernel<<<blocks, 256>>>(operands.get(), to.get());
        operations += 2.0 * 4096 * 2 * 16384 * 8.0 * blocks;
      }
    };
    const auto now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    CHECK_CUDA(cudaDeviceSynchronize());
    std::vector<double> clocks, watts;
    const double begin = now();
    double counted_from = 0, counted_operations = 0;
    while (now() - begin < kSeconds) {
      for (int i = 0; i < 4; ++i) launch();
      CHECK_CUDA(cudaDeviceSynchronize());
      if (now() - begin < 0.5 * kSeconds) {
        counted_from = now();
        counted_operations = operations;
      } else {
        clocks.push_back(nvml.sm_clock_hertz());
        watts.push_back(nvml.power_watts());
      }
    }
    const double seconds = now() - counted_from;
    const auto add = [&](Curve& curve, std::vector<double> samples) {
      std::sort(samples.begin(), samples.end());
      const double median = samples[samples.size() / 2];
      curve.points.push_back({{{"load", double(load)}},
                              median,
                              0,
                              median > 0 ? (samples.back() - samples.front()) / median : 0,
                              int(samples.size())});
    };
    add(clock, clocks);
    add(power, watts);
    rate.points.push_back({{{"load", double(load)}}, (operations - counted_operations) / seconds, seconds, 0, 1});
  }
  return {clock, power, rate};
}

}  // namespace probe
