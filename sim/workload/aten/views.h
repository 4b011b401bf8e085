// Views share the storage of what they show; where no view exists (a permuted tensor, reshaped) a copy is made.
#pragma once

#include "sim/workload/aten/pieces.h"
#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// The tensor must allow it (use reshape otherwise).
Tensor view(Eager& eager, const Tensor& x, const Dims& sizes);
/// A view that autograd does not take for one: for fresh results whose only user is the view.
Tensor unsafe_view(Eager& eager, const Tensor& x, const Dims& sizes);
/// A view where strides allow it, else a contiguous copy.
Tensor reshape(Eager& eager, const Tensor& x, const Dims& sizes);
/// The tensor itself when contiguous, else a copy.
Tensor contiguous(Eager& eager, const Tensor& x);
/// A copy in the same layout.
Tensor cloned(Eager& eager, const Tensor& x);
Tensor transpose(Eager& eager, const Tensor& x, int a, int b);
/// Matrix transpose: transpose(0, 1).
Tensor t(Eager& eager, const Tensor& x);
/// Repeats dimensions of size 1 without copying.
Tensor expand(Eager& eager, const Tensor& x, const Dims& sizes);
/// A new dimension of size 1.
Tensor unsqueeze(Eager& eager, const Tensor& x, int dimension);
/// Number of operands `matmul` would have to copy: of a batch whose reshape is no view.
bool needs_copy(const Tensor& x, const Dims& sizes);

}  // namespace ridgeline::eager::aten
