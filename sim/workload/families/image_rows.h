// Patches of an image tower as rows among the tokens of a language model: the projector of Transformers' LLaVA,
// PaliGemma, Gemma 3, Idefics 3, Mistral 3, InternVL and Qwen2-VL.
#pragma once

#include <vector>

#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

class ImageRows {
 public:
  ImageRows(const Composition& composition, StackSite& site);
  /// [batch, rows, hidden] of what the tower gives, [batch, class token and patches, width].
  Tensor rows(Tensor features);
  /// Rows for the first layers. Transformers reads layers inside the tower; here all read its last one, at the same
  /// cost.
  std::vector<Tensor> deep_rows(const Tensor& features);

 private:
  Tensor pooled(const Tensor& patches);
  Tensor joined(const Tensor& patches);

  const Stack s_;  ///< the main stack, without positions
  const Stack& tower_;
  Eager& eager_;
  StackNetwork blocks_;  ///< without layers: norms and activations as the main stack's
  Affine norm_, merge_, first_, second_;
  struct Deep {
    Affine norm, first, second;
  };
  std::vector<Deep> deep_;
};

/// Rows of `features` in the place of rows whose ids mark them: masked_scatter.
Tensor with_image_rows(Eager& eager, const Tensor& rows, const Tensor& ids, const Tensor& features);

}  // namespace ridgeline::families
