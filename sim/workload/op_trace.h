// The op trace of a training run: storages born and freed, operations launched, host work, in program order.
//
// A trace knows no GPU and no time. Equal operations share one entry of `ops`, so that lowering and timing look each
// up once. Storage ids are never reused. Records of a run: everything before `steps.front().begin` sets up (weights,
// inputs); then one range per training step. The first step creates optimizer states; the last is the steady state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/op.h"

namespace ridgeline {

using StorageId = std::uint32_t;

enum class Category : std::uint8_t { weights, gradients, optimizer_state, activations, temporaries, workspaces, inputs };
enum class Phase : std::uint8_t { setup, forward, backward, clipping, optimizer, other };

/// One device allocation as the program requested it. Size 0 storages are never recorded.
struct Storage {
  std::int64_t bytes = 0;
  Category category = Category::activations;
  std::int16_t layer = -1;  ///< block it belongs to; -1 outside the blocks
};

/// Bytes of a storage an operation touches.
struct Operand {
  StorageId storage = 0;
  std::int64_t bytes = 0;
};

/// What the host spends its time on: classes of one Python-visible op or one autograd node. The cost of each class is
/// a property of the host (hw/hosts/*.yaml), its name there is the enumerator's.
enum class HostClass : std::uint8_t {
  linear, linear_autocast, matmul, layer_norm, layer_norm_module, attention_cudnn, attention_fused, pointwise, dropout, dropout_off,
  softmax, masked_fill, contiguous, view, transpose, split, embedding, cross_entropy, loss_division, backward_call,
  addmm_backward, mm_backward, bmm_backward, view_backward, accumulate_grad, accumulate_grad_add, cast_backward,
  layer_norm_backward, attention_cudnn_backward, attention_fused_backward, pointwise_backward, add_backward, softmax_backward,
  masked_fill_backward, split_backward, embedding_backward, nll_backward, log_softmax_backward, checkpoint_segment,
  convolution, convolution_backward, batch_norm, batch_norm_backward,
  per_parameter_clip, per_parameter_unscale, per_parameter_foreach, per_parameter_fused, per_parameter_for_loop,
  per_parameter_zero_grad, per_parameter_accumulate, clip_fixed, unscale_fixed, foreach_fixed, fused_fixed, python_fixed,
  other
};

struct Record {
  enum class Kind : std::uint8_t {
    allocate,       ///< index = storage
    free,           ///< index = storage
    op,             ///< index = entry of `calls`
    host,           ///< host_class, index = how many times
    wait_for_gpu    ///< the host blocks until the stream is empty (.item(), synchronise)
  };
  Kind kind = Kind::op;
  HostClass host_class = HostClass::other;
  std::uint32_t index = 0;
};

/// One execution of an operation on given storages.
struct Call {
  std::uint32_t op = 0;             ///< entry of `ops`
  std::uint32_t operands_begin = 0; ///< into `operands`: inputs, then outputs
  std::uint16_t inputs = 0, outputs = 0;
  Phase phase = Phase::forward;
  std::int16_t layer = -1;
};

struct StepRange {
  std::uint32_t begin = 0, end = 0;  ///< records [begin, end)
};

struct OpTrace {
  std::vector<Op> ops;
  std::vector<Storage> storages;
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<Record> records;
  std::vector<StepRange> steps;
  std::int64_t parameters = 0;         ///< trained parameters of the model
  double model_flops = 0.0;            ///< FLOPs one step needs by the model's definition (no recomputation), for MFU
  std::vector<std::string> notes;      ///< approximations made, for the report
};

}  // namespace ridgeline
