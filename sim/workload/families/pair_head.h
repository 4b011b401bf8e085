// SigLIP's head: a trained query pools an image's patches, the last token stands for a text, and every pair of a batch
// is a yes or no.
#pragma once

#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

class PairHead {
 public:
  /// `at` makes the parameters; the image's pooling has the sizes of `image`.
  PairHead(Eager& eager, StackNetwork& at, const Stack& text, const Stack& image);
  /// Takes hidden states [batch, tokens, hidden] of texts and [batch, patches, width] of images.
  Tensor loss(const Tensor& text, const Tensor& patches);

 private:
  Tensor pooled(const Tensor& patches);

  Eager& eager_;
  StackNetwork& at_;
  const Stack& image_;
  Parameter* probe_;
  Affine query_, key_value_, output_, norm_, up_, down_, text_;
  Parameter *temperature_, *shift_;
};

/// Rows of length one.
Tensor unit_rows(Eager& eager, const Tensor& x);

}  // namespace ridgeline::families
