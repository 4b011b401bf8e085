// Matrix products. Operands may be transposed views: the library reads them in place, as BLAS does.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// [m, k] x [k, n]; saves both.
Tensor mm(Eager& eager, const Tensor& a, const Tensor& b);
/// bias + [m, k] x [k, n]; saves the factors.
Tensor addmm(Eager& eager, const Tensor& bias, const Tensor& a, const Tensor& b);
/// [b, m, k] x [b, k, n]; saves both.
Tensor bmm(Eager& eager, const Tensor& a, const Tensor& b);
/// Tensors of three or four dimensions; operands that cannot be seen as a batch of matrices are copied first.
Tensor matmul(Eager& eager, const Tensor& a, const Tensor& b);
/// x·Wᵀ (+ bias), without casts.
Tensor linear(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias);

}  // namespace ridgeline::eager::aten
