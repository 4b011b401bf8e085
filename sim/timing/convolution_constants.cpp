// How the constants of convolutions were fitted: by least squares with rounded-off outliers, to the time of the fastest
// candidate against the kernels that cuDNN took for 1,262 convolutions of random shape on an H200, each held back
// towards a value of plain products. In 5-fold cross-validation the medians rise by less than 1 % (16 bits: forward,
// input gradients, weight gradients 16, 14, 16 %). The menus are in
// sim/kernels/convolution_tiles.h.
#include "sim/timing/convolution_law.h"

namespace ridgeline {
namespace {

constexpr ConvolutionConstants kConvolveWgmmaHalf{.fixed_cycles = 9550,
                                                  .utilization = 0.969,
                                                  .latency_cycles = 174,
                                                  .load_bytes = 62.5,
                                                  .weight_bytes = 83.5,
                                                  .misaligned_load = 1.25,
                                                  .epilogue_cycles = 1050,
                                                  .epilogue_bytes = 42.7,
                                                  .misaligned_store = 1.0,
                                                  .dram_share = 0.683,
                                                  .split_cycles = 12100,
                                                  .split_share = 0.459,
                                                  .indexed = 1.33};
/// wgmma takes tf32 operands K-major: gradients have theirs turned on the way.
constexpr ConvolutionConstants kConvolveWgmmaTf32Forward{.fixed_cycles = 6830,
                                                         .latency_cycles = 81,
                                                         .load_bytes = 48.9,
                                                         .misaligned_load = 0.943,
                                                         .epilogue_cycles = 58.8,
                                                         .epilogue_bytes = 41.7,
                                                         .misaligned_store = 3.09,
                                                         .dram_share = 0.525};
constexpr ConvolutionConstants kConvolveWgmmaTf32{.fixed_cycles = 9130,
                                                  .utilization = 0.964,
                                                  .latency_cycles = 110,
                                                  .load_bytes = 54.5,
                                                  .weight_bytes = 28.1,
                                                  .misaligned_load = 1.26,
                                                  .epilogue_cycles = 893,
                                                  .epilogue_bytes = 16.3,
                                                  .misaligned_store = 1.01,
                                                  .dram_share = 0.66,
                                                  .split_cycles = 13500,
                                                  .split_share = 0.475,
                                                  .indexed = 1.25};
constexpr ConvolutionConstants kConvolveMmaHalf{.fixed_cycles = 4290,
                                                .utilization = 0.953,
                                                .latency_cycles = 84.6,
                                                .load_bytes = 85,
                                                .weight_bytes = 62.2,
                                                .misaligned_load = 0.3,
                                                .epilogue_cycles = 3730,
                                                .epilogue_bytes = 197,
                                                .dram_share = 0.643,
                                                .split_cycles = 12400,
                                                .split_share = 0.632};
constexpr ConvolutionConstants kConvolveMmaTf32Forward{.fixed_cycles = 6360,
                                                       .utilization = 0.986,
                                                       .latency_cycles = 778,
                                                       .load_bytes = 324,
                                                       .misaligned_load = 0.1,
                                                       .epilogue_cycles = 823,
                                                       .epilogue_bytes = 25.4,
                                                       .dram_share = 0.923};
constexpr ConvolutionConstants kConvolveMmaTf32{.fixed_cycles = 5370,
                                                .utilization = 0.958,
                                                .latency_cycles = 638,
                                                .load_bytes = 95.3,
                                                .weight_bytes = 52.8,
                                                .misaligned_load = 0.196,
                                                .epilogue_cycles = 4950,
                                                .epilogue_bytes = 199,
                                                .dram_share = 0.596,
                                                .split_cycles = 10300,
                                                .split_share = 0.346};
constexpr ConvolutionConstants kConvolveSimt{.fixed_cycles = 9400,
                                             .utilization = 0.843,
                                             .latency_cycles = 399,
                                             .load_bytes = 22.8,
                                             .weight_bytes = 22.8,
                                             .epilogue_bytes = 9.45,
                                             .dram_share = 0.271,
                                             .indexed = 1.45,
                                             .scatter = 1.68,
                                             .row_cycles = 6.93};

}  // namespace

const ConvolutionConstants& convolution_constants(const GemmWork& work) {
  const bool half = is_half(work.type), forward = work.gathering.role == Gathering::Role::forward;
  switch (work.family) {
    case GemmWork::Family::wgmma:
      return half ? kConvolveWgmmaHalf : forward ? kConvolveWgmmaTf32Forward : kConvolveWgmmaTf32;
    case GemmWork::Family::mma_sync:
      return half ? kConvolveMmaHalf : forward ? kConvolveMmaTf32Forward : kConvolveMmaTf32;
    case GemmWork::Family::simt: return kConvolveSimt;
  }
  return kConvolveSimt;
}

}  // namespace ridgeline
