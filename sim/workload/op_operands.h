// Which tensors an op takes, in which order: the convention between a trace's calls and the accesses of its kernels.
//
// | op                  | inputs                              | outputs                      |
// |---------------------|-------------------------------------|------------------------------|
// | Matmul              | A, B, [bias]                        | C                            |
// | Pointwise           | its `input_count` tensors           | result (= input 0 in place)  |
// | Copy                | its `parts` sources                 | destination                  |
// | Softmax             | x                                   | y                            |
// | Softmax backward    | dy, y                               | dx                           |
// | Norm                | x, weight, [bias]                   | y, mean, rstd (rms: y, rstd) |
// | Norm backward       | dy, x, weight, mean, rstd (rms: no mean) | dx, dweight, [dbias]    |
// | Reduction           | x                                   | result                       |
// | Dropout             | x                                   | y, mask                      |
// | Embedding           | table, indices                      | rows                         |
// | Embedding backward  | dy, indices                         | dtable                       |
// | Attention           | q, k, v, [mask]                     | out, logsumexp               |
// | Attention backward  | dout, q, k, v, out, logsumexp, [mask] | dq, dk, dv                 |
// | NllLoss             | log-probabilities, target           | loss                         |
// | NllLoss backward    | dloss, target                       | gradient [rows, classes]     |
// | MultiTensor         | none: lists are not tracked         | none                         |
// | Convolution         | x, weight                           | y                            |
// | Convolution backward| dy, x, weight                       | dx, dweight                  |
// | … one gradient      | dy, weight (of the weight: dy, x)   | dx (of the weight: dweight)  |
// | ImageOp             | x (backward: dy, x; upsample: dy)   | y (backward: dx)             |
// | Memset              | none                                | destination                  |
// | UnknownOp           | one                                 | one                          |
// | Collective          | what is sent                        | what is received             |
// | Sort                | keys                                | values, places               |
// | Resampling          | x, [grid] (backward: dy, [x, grid]) | y (backward: dx)             |
// | FusedKernel         | its `reads`                         | its `writes`                 |
//
// Operands of a MultiTensor are Access::kUntracked: hundreds of tensors, whose residency is that of the whole list.
#pragma once

#include <cstdint>

#include "sim/workload/op.h"

namespace ridgeline {

struct OperandCounts {
  int inputs = 0, outputs = 0;
};
OperandCounts operand_counts(const Op& op);

/// Operands that a repeated kernel case takes anew each time: the inputs, and the destination too where the op writes
/// into memory it was given (copy, fill) instead of a fresh result.
int rotating_operands(const Op& op);
/// Bytes of those operands as they were made, where the op touches only some of them: an embedding's table and indices.
/// 0 for other ops.
double partly_used_bytes(const Op& op);

}  // namespace ridgeline
