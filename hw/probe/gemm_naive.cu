// The first rung of the ladder: C = A·B in fp32, one thread an element, everything from the caches.
//
// Idea: each multiply-add needs two loads; the L1 serves them, 32 lanes reading one element of A and a row piece of B.
#include "hw/probe/gemm.h"

namespace probe {
namespace {

constexpr int kSide = 16;

__global__ void naive_kernel(const float* a, const float* b, float* c, int n) {
  const int row = blockIdx.y * kSide + threadIdx.y, column = blockIdx.x * kSide + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + column], sum);
  c[row * n + column] = sum;
}

}  // namespace

Curves gemm_naive(const Device&) {
  Curve curve{"gemm_naive", "FLOP/s", "fp32 product of n x n, a thread an element, no tiling"};
  for (const int n : {512, 640, 768, 1024, 1536, 2048, 3072, 4096}) {
    const std::size_t elements = std::size_t(n) * n;
    Buffer<float> ab(2 * elements), c(elements);
    fill_pattern(ab.get(), ab.size());
    const auto launch = [&](cudaStream_t s) {
      naive_kernel<<<dim3(n / kSide, n / kSide), dim3(kSide, kSide), 0, s>>>(ab.get(), ab.get() + elements, c.get(), n);
    };
    launch(nullptr);
    curve.correct =
        expect(product_is_right(c, n, 64, 1e-4, [](float x) { return x; }), "gemm_naive", "product") && curve.correct;
    curve.points.push_back(product_point(n, period(launch, 3)));
  }
  return {curve};
}

}  // namespace probe
