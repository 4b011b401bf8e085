// A matrix times a vector (one side of the product is 1): what decoding a token at a time runs.
//
// The libraries keep kernels of their own for it, which read the matrix once and are as fast as so few threads can
// fetch it: rows of the matrix are dot products of a warp or less, columns are walked by threads side by side.
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/kernels/products/product_ways.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Whether `op` runs one of them. A product with k = 1 is an outer one; on Hopper 16-bit operands of whole 16-byte
/// vectors go through its tiled kernels, whose tiles are as narrow as 8.
bool is_vector_product(const Matmul& op, const Gpu& gpu);

/// The kernels that `op`, an is_vector_product, may run: each product with what adds up its partial sums. `reads` and
/// `writes` as below.
std::vector<ProductWay> vector_product_ways(const Matmul& op, std::vector<Access> reads,
                                            const std::vector<Access>& writes);

/// Appends the kernel of `op`, an is_vector_product, with the one that adds up partial sums where it is split.
/// `reads` and `writes` are the product's accesses, A and B first.
void append_vector_product(std::vector<KernelLaunch>& launches, const Matmul& op, const Gpu& gpu,
                           std::vector<Access> reads, const std::vector<Access>& writes);

}  // namespace ridgeline
