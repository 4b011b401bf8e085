// The second rung: tiles of 64 x 64 in shared memory, 4 x 4 elements of C in the registers of each thread.
//
// Idea: a tile is loaded once and used 64 times; in registers each loaded value is used four times more. Source: the
// CUDA C++ Programming Guide's shared-memory product, and Volkov and Demmel, SC 2008, for the register blocking.
#include "hw/probe/gemm.h"

namespace probe {
namespace {

constexpr int kSharedTile = 64, kSharedDepth = 16, kSharedThreads = 256;

__global__ void __launch_bounds__(kSharedThreads) shared_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[kSharedDepth][kSharedTile + 4], b_tile[kSharedDepth][kSharedTile];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int row = blockIdx.y * kSharedTile, column = blockIdx.x * kSharedTile;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += kSharedDepth) {
    for (int i = threadIdx.x; i < kSharedTile * kSharedDepth; i += kSharedThreads) {
      a_tile[i % kSharedDepth][i / kSharedDepth] = a[std::size_t(row + i / kSharedDepth) * n + k + i % kSharedDepth];
      b_tile[i / kSharedTile][i % kSharedTile] = b[std::size_t(k + i / kSharedTile) * n + column + i % kSharedTile];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kSharedDepth; ++d) {
      const float4 x = *reinterpret_cast<const float4*>(&a_tile[d][4 * ty]);
      const float4 y = *reinterpret_cast<const float4*>(&b_tile[d][4 * tx]);
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(xs[i], ys[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<float4*>(c + std::size_t(row + 4 * ty + i) * n + column + 4 * tx) =
        make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

}  // namespace

Curves gemm_shared(const Device&) {
  Curve curve{"gemm_shared", "FLOP/s", "fp32 product of n x n, 64 x 64 tiles in shared memory, 4 x 4 a thread"};
  for (const int n : {512, 640, 768, 1024, 1536, 2048, 3072, 4096}) {
    const std::size_t elements = std::size_t(n) * n;
    Buffer<float> ab(2 * elements), c(elements);
    fill_pattern(ab.get(), ab.size());
    const auto launch = [&](cudaStream_t s) {
      shared_kernel<<<dim3(n / kSharedTile, n / kSharedTile), kSharedThreads, 0, s>>>(ab.get(), ab.get() + elements, c.get(), n);
    };
    launch(nullptr);
    curve.correct =
        expect(product_is_right(c, n, 64, 1e-4, [](float x) { return x; }), "gemm_shared", "product") && curve.correct;
    curve.points.push_back(product_point(n, period(launch, 3)));
  }
  return {curve};
}

}  // namespace probe
