#include "sim/timing/attention/attention_constants.h"

#include "sim/timing/tables/attention.inc"
#include "sim/workload/op.h"

namespace ridgeline {

AttentionClass attention_class_of(const AttentionWork& work) {
  const bool backward = work.part == AttentionWork::Part::backward;
  switch (static_cast<AttentionBackend>(work.backend)) {
    case AttentionBackend::flash:
      if (work.lengths.any())
        return backward ? AttentionClass::flash_backward_packed : AttentionClass::flash_forward_packed;
      return backward          ? AttentionClass::flash_backward
             : work.splits > 1 ? AttentionClass::flash_forward_split
                               : AttentionClass::flash_forward;
    case AttentionBackend::cudnn: return backward ? AttentionClass::cudnn_backward : AttentionClass::cudnn_forward;
    case AttentionBackend::efficient:
    case AttentionBackend::math: break;
  }
  if (is_half(work.type))
    return backward ? AttentionClass::efficient_backward_half : AttentionClass::efficient_forward_half;
  return backward ? AttentionClass::efficient_backward_fp32 : AttentionClass::efficient_forward_fp32;
}

const AttentionConstants& attention_constants(AttentionClass kernel_class) {
  switch (kernel_class) {
    case AttentionClass::flash_forward: return attention_table::flash_forward;
    case AttentionClass::flash_forward_split: return attention_table::flash_forward_split;
    case AttentionClass::flash_backward: return attention_table::flash_backward;
    case AttentionClass::flash_forward_packed: return attention_table::flash_forward_packed;
    case AttentionClass::flash_backward_packed: return attention_table::flash_backward_packed;
    case AttentionClass::cudnn_forward: return attention_table::cudnn_forward;
    case AttentionClass::cudnn_backward: return attention_table::cudnn_backward;
    case AttentionClass::efficient_forward_half: return attention_table::efficient_forward_half;
    case AttentionClass::efficient_backward_half: return attention_table::efficient_backward_half;
    case AttentionClass::efficient_forward_fp32: return attention_table::efficient_forward_fp32;
    case AttentionClass::efficient_backward_fp32: return attention_table::efficient_backward_fp32;
  }
  return attention_table::flash_forward;
}

}  // namespace ridgeline
