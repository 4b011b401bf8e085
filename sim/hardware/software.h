// A software stack as lowering sees it: which kernels PyTorch and its libraries launch, which workspaces they take.
// Read from hw/software/NAME.yaml.
#pragma once

#include <string>
#include <vector>

#include "sim/units/quantity.h"

namespace ridgeline {

struct Software {
  std::string name;  ///< "pytorch-2.11"
  bool prefers_cudnn_attention_on_hopper = true;
  bool has_flash_attention = true;  ///< scaled_dot_product_attention exists with FlashAttention-2
  bool lazy_module_loading = true;
  bool addmm_fuses_bias = true;                                      ///< cublasLt epilogue
  int foreach_blocks_per_launch = 320;                               ///< thread blocks of one multi-tensor launch
  std::vector<int> foreach_tensors_per_launch{110, 64, 48, 36, 30};  ///< by number of lists, 1 to 5
  int foreach_chunk = 65536;                                         ///< elements
  bool zero_grad_to_none = true;   ///< zero_grad() drops gradients; before PyTorch 2.0 it filled them with zeros
  bool foreach_by_default = true;  ///< optimizers use the foreach implementation when none is asked for
  Bytes cublas_workspace, cublas_workspace_hopper;
  Bytes cublaslt_workspace;
  std::string default_gelu = "erf";
};

}  // namespace ridgeline
