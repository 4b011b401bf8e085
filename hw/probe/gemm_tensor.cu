// The third rung: fp16 operands on the tensor cores through the wmma interface, 128 x 128 tiles in shared memory.
//
// Idea: eight warps, each 32 x 64 of C in fragments; the tile of the next step is fetched into registers while the
// tensor cores work on this one. Source: CUDA C++ Programming Guide, warp matrix functions.
#include <cuda_fp16.h>
#include <mma.h>

#include "hw/probe/gemm.h"

namespace probe {
namespace {

constexpr int kTensorTile = 128, kTensorDepth = 32, kTensorThreads = 256, kPitch = kTensorDepth + 8, kPitchB = kTensorTile + 8;

__global__ void to_half_kernel(const float* from, __half* to, std::size_t n) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < n) to[i] = __float2half(from[i]);
}

__global__ void __launch_bounds__(kTensorThreads) tensor_kernel(const __half* a, const __half* b, float* c, int n) {
  using namespace nvcuda::wmma;
  __shared__ __half a_tile[kTensorTile * kPitch], b_tile[kTensorDepth * kPitchB];
  const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_column = warp % 2 * 64;
  const int row = blockIdx.y * kTensorTile, column = blockIdx.x * kTensorTile;
  fragment<accumulator, 16, 16, 16, float> sum[2][4];
  for (auto& line : sum)
    for (auto& f : line) fill_fragment(f, 0.0f);
  // 128 x 32 halves of A and 32 x 128 of B are 512 pieces of 16 bytes each: two a thread.
  float4 a_next[2], b_next[2];
  const auto fetch = [&](int k) {
    for (int p = 0; p < 2; ++p) {
      const int i = threadIdx.x + p * kTensorThreads;
      a_next[p] = *reinterpret_cast<const float4*>(a + std::size_t(row + i / 4) * n + k + i % 4 * 8);
      b_next[p] = *reinterpret_cast<const float4*>(b + std::size_t(k + i / 16) * n + column + i % 16 * 8);
    }
  };
  fetch(0);
  for (int k = 0; k < n; k += kTensorDepth) {
    for (int p = 0; p < 2; ++p) {
      const int i = threadIdx.x + p * kTensorThreads;
      *reinterpret_cast<float4*>(a_tile + i / 4 * kPitch + i % 4 * 8) = a_next[p];
      *reinterpret_cast<float4*>(b_tile + i / 16 * kPitchB + i % 16 * 8) = b_next[p];
    }
    __syncthreads();
    if (k + kTensorDepth < n) fetch(k + kTensorDepth);
#pragma unroll
    for (int d = 0; d < kTensorDepth; d += 16) {
      fragment<matrix_a, 16, 16, 16, __half, row_major> x[2];
      fragment<matrix_b, 16, 16, 16, __half, row_major> y[4];
      for (int i = 0; i < 2; ++i) load_matrix_sync(x[i], a_tile + (warp_row + 16 * i) * kPitch + d, kPitch);
      for (int j = 0; j < 4; ++j) load_matrix_sync(y[j], b_tile + d * kPitchB + warp_column + 16 * j, kPitchB);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      store_matrix_sync(c + std::size_t(row + warp_row + 16 * i) * n + column + warp_column + 16 * j, sum[i][j], n,
                        mem_row_major);
}

}  // namespace

Curves gemm_tensor(const Device& device) {
  Curve curve{"gemm_tensor", "FLOP/s", "fp16 product of n x n into fp32 on the tensor cores (wmma), 128 x 128 tiles"};
  if (!device.at_least(7, 0)) return {curve};
  for (const int n : {512, 640, 768, 1024, 1536, 2048, 3072, 4096}) {
    const std::size_t elements = std::size_t(n) * n;
    Buffer<float> ab(2 * elements), c(elements);
    Buffer<__half> halves(2 * elements);
    fill_pattern(ab.get(), ab.size());
    to_half_kernel<<<static_cast<unsigned>((2 * elements + 255) / 256), 256>>>(ab.get(), halves.get(), 2 * elements);
    const auto launch = [&](cudaStream_t s) {
      tensor_kernel<<<dim3(n / kTensorTile, n / kTensorTile), kTensorThreads, 0, s>>>(halves.get(), halves.get() + elements, c.get(), n);
    };
    launch(nullptr);
    const auto rounded = [](float x) { return __half2float(__float2half(x)); };
    curve.correct = expect(product_is_right(c, n, 64, 1e-4, rounded), "gemm_tensor", "product") && curve.correct;
    curve.points.push_back(product_point(n, period(launch, 3)));
  }
  return {curve};
}

}  // namespace probe
