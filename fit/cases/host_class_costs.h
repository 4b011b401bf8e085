// What operations and autograd nodes of an eager step cost the host, microseconds an occurrence: classes of
// sim/workload/host_class.h.
#pragma once

namespace ridgeline {

struct HostClassCosts {
  double linear = 0, linear_autocast = 0, matmul = 0, matmul_copy = 0;
  double layer_norm = 0, layer_norm_module = 0, attention_cudnn = 0, attention_fused = 0;
  double pointwise = 0, dropout = 0, dropout_off = 0, softmax = 0, masked_fill = 0, contiguous = 0, cast = 0;
  double concatenate = 0, embedding = 0, cross_entropy = 0, loss_division = 0;
  double view = 0, transpose = 0, split = 0, python_fixed = 0;
  double backward_call = 0, backward_first = 0, addmm_backward = 0, mm_backward = 0, bmm_backward = 0;
  double view_backward = 0, accumulate_grad = 0, add_backward = 0;
  double view_backward_copy = 0, fan_in_add = 0, accumulate_grad_add = 0, cast_backward = 0, layer_norm_backward = 0;
  double attention_cudnn_backward = 0, attention_fused_backward = 0, pointwise_backward = 0, softmax_backward = 0;
  double masked_fill_backward = 0, split_backward = 0, embedding_backward = 0, embedding_backward_sorted = 0;
  double nll_backward = 0, log_softmax_backward = 0;
};

}  // namespace ridgeline
