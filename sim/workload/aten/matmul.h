// Matrix products. Operands may be transposed views: the library reads them in place, as BLAS does.
#pragma once

#include "sim/workload/eager/tensor.h"
#include "sim/workload/op.h"

namespace ridgeline::eager::aten {

/// [m, k] x [k, n]; saves both.
/// `sparse`: an operand is 2:4 sparse.
Tensor mm(Eager& eager, const Tensor& a, const Tensor& b, SparseOperand sparse = SparseOperand::none);
/// The same without gradients, into `result`.
void mm_into(Eager& eager, const Tensor& a, const Tensor& b, const Tensor& result);
/// bias + [m, k] x [k, n]; saves the factors.
Tensor addmm(Eager& eager, const Tensor& bias, const Tensor& a, const Tensor& b,
             SparseOperand sparse = SparseOperand::none);
/// [b, m, k] x [b, k, n]; saves both.
Tensor bmm(Eager& eager, const Tensor& a, const Tensor& b);
/// Tensors of three or four dimensions; operands that cannot be seen as a batch of matrices are copied first.
Tensor matmul(Eager& eager, const Tensor& a, const Tensor& b, SparseOperand sparse = SparseOperand::none);
/// x·Wᵀ (+ bias), without casts; W is 2:4 sparse inside blocks where the session says so.
Tensor linear(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias);

}  // namespace ridgeline::eager::aten
