// Products of a network in use whose weights have few bits: by the codes themselves where a library has a kernel for
// it.
#pragma once

#include <cstdint>

#include "sim/workload/aten/four_bit.h"
#include "sim/workload/op.h"

namespace ridgeline::eager::aten {

/// A product of 8-bit integers [m, k] and [n, k] transposed. Integer tensor cores take twice as many terms of half the
/// size a step: it is timed as one in 16 bits, `type`, of half the depth.
Matmul integer_product(std::int64_t m, std::int64_t n, std::int64_t k, DType type);
/// True where no expanded weight is ever written for x. `gradients`: the script runs with gradients.
bool multiplies_codes(const Tensor& x, const FourBitWeight& weight, bool gradients);
/// x·Wᵀ (+ bias) of such a weight, in the type of x.
Tensor product_of_codes(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias);

}  // namespace ridgeline::eager::aten
