// Kernels that scans are made of, each recorded as one operation.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten::scan {

constexpr std::int64_t chunks_of(std::int64_t length, std::int64_t chunk) { return (length + chunk - 1) / chunk; }

/// One kernel over `rows` x `cols`, of so many instructions an element beside loading and storing.
void kernel(Eager& eager, std::string name, std::int64_t rows, std::int64_t cols, std::int64_t arithmetic,
            std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes);
/// Tells whether such a kernel is of a package and was not measured.
bool is_unmeasured(std::string_view name);
/// One kernel of `batch` small matmuls.
void matmuls(Eager& eager, DType type, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
             std::initializer_list<const Tensor*> reads, const Tensor& result);
/// causal_conv1d_fwd of x [batch, channels, length] with silu into a result, and causal_conv1d_bwd into a gradient.
Tensor convolved(Eager& eager, const Tensor& x, const Tensor& filters, Tensor into);
void convolved_backward(Eager& eager, const Tensor& x, const Tensor& filters, const Tensor& gradient,
                        const Tensor& into);

}  // namespace ridgeline::eager::aten::scan
