// A software stack as lowering sees it: which kernels PyTorch and its libraries launch, which workspaces they take.
// Read from hw/software/NAME.yaml.
#pragma once

#include <string>
#include <vector>

#include "sim/units/quantity.h"

namespace ridgeline {

struct Software {
  std::string name;         ///< "pytorch-2.11"
  std::string title;        ///< "PyTorch 2.11 with CUDA 13 (2026)"
  double cuda = 13.0;       ///< toolkit whose libraries multiply
  bool has_compile = true;  ///< torch.compile
  /// Compute capabilities, 7.5 for major 7 and minor 5, of the chips that the published build has code for.
  double least_capability = 0.0, most_capability = 99.9;
  bool prefers_cudnn_attention_on_hopper = true;
  bool has_flash_attention = true;    ///< scaled_dot_product_attention exists with FlashAttention-2
  double flash_attention_time = 1.0;  ///< of FlashAttention's kernels, in that of FlashAttention-2's
  double hopper_product_time = 1.0;   ///< of Hopper's matrix products, in that of the kernels of CUDA 12.6 and later
  /// torch.backends.cuda.matmul.allow_tf32 unless a script sets it: true from PyTorch 1.7 to 1.11.
  bool matmul_tf32 = false;
  bool lazy_module_loading = true;
  bool addmm_fuses_bias = true;                                      ///< cublasLt epilogue
  int foreach_blocks_per_launch = 320;                               ///< thread blocks of one multi-tensor launch
  std::vector<int> foreach_tensors_per_launch{110, 64, 48, 36, 30};  ///< by number of lists, 1 to 5
  int foreach_chunk = 65536;                                         ///< elements
  bool zero_grad_to_none = true;       ///< zero_grad() drops gradients; before PyTorch 2.0 it filled them with zeros
  bool clips_by_lists = true;          ///< clip_grad_norm_ runs over lists of tensors; since PyTorch 2.0
  bool clipping_waits = false;         ///< the host waits in clip_grad_norm_; before PyTorch 1.10 and in 2.0
  bool softmax_saves_input = false;    ///< autograd keeps the input of softmax besides its result; before PyTorch 1.11
  bool checkpoint_stops_early = true;  ///< a checkpointed block runs again no further than its backward pass reads
  bool jit_draws_by_four = false;      ///< kernels of torch.jit.script use all four numbers of a draw (nvFuser)
  bool mask_always_added = false;      ///< models add an attention mask in fp32 to every score, of ones too
  /// Under torch.compile Transformers' decoders make their causal mask a tensor, since nobody can look whether it hides
  /// padding too; before version 4.53 (mid 2025) training left it to the kernel.
  bool compiled_mask = true;
  int foreach_adam_lists = 1;           ///< temporaries as large as the parameters that a foreach Adam holds at once
  bool softmax_keeps_long_rows = true;  ///< rows above 1024 columns stay in registers or shared memory, read once
  bool softmax_fills_blocks = true;     ///< blocks on rows read again have a thread a column, up to 1024
  bool gathers_by_vectors = true;       ///< embedding by a block a row of 16-byte accesses, not element by element
  bool norms_by_vectors = true;         ///< layer norms by vectors, a pass in two kernels at most; since PyTorch 1.11
  bool norms_sum_in_parts = true;       ///< layer norm's weight gradients over many rows: parts first, then their sums
  int eight_bit_block = 256;            ///< elements that share a scale in the states of 8-bit optimizers
  bool reorders_compiled = true;        ///< torch.compile orders kernels by the memory they leave in use; since 2.6
  bool four_bit_keeps_input = false;    ///< autograd keeps inputs of layers of four bits; before bitsandbytes 0.43.2
  bool math_attention_in_fp32 = true;   ///< unfused attention casts 16 bits to fp32 and minds empty rows; since 2.5
  bool adapters_of_layer_type = false;  ///< adapters are made in the type of the layer; PEFT before 0.11
  bool foreach_by_default = true;       ///< optimizers use the foreach implementation when none is asked for
  double memory_spread = 0.06;          ///< how far device use of comparable runs lay from its prediction, as a share
  Bytes cublas_workspace, cublas_workspace_hopper;
  Bytes cublaslt_workspace;
  std::string default_gelu = "erf";

  bool operator==(const Software&) const = default;
};

}  // namespace ridgeline
