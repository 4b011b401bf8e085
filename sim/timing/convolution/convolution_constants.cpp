#include "sim/timing/convolution/convolution_law.h"
#include "sim/timing/tables/convolution.inc"

namespace ridgeline {

ConvolutionClass convolution_class_of(const GemmWork& work) {
  const bool half = is_half(work.type), forward = work.gathering.role == Gathering::Role::forward;
  switch (work.family) {
    case GemmWork::Family::wgmma:
      return half      ? ConvolutionClass::wgmma_half
             : forward ? ConvolutionClass::wgmma_tf32_forward
                       : ConvolutionClass::wgmma_tf32;
    case GemmWork::Family::mma_sync: return half ? ConvolutionClass::mma_half : ConvolutionClass::mma_tf32;
    case GemmWork::Family::simt: break;
  }
  return ConvolutionClass::simt;
}

const ConvolutionConstants& convolution_constants(ConvolutionClass kernel_class) {
  switch (kernel_class) {
    case ConvolutionClass::wgmma_half: return convolution_table::wgmma_half;
    case ConvolutionClass::wgmma_tf32_forward: return convolution_table::wgmma_tf32_forward;
    case ConvolutionClass::wgmma_tf32: return convolution_table::wgmma_tf32;
    case ConvolutionClass::mma_half: return convolution_table::mma_half;
    case ConvolutionClass::mma_tf32: return convolution_table::mma_tf32;
    case ConvolutionClass::simt: break;
  }
  return convolution_table::simt;
}

}  // namespace ridgeline
