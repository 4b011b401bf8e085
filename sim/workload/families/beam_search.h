// Beam search as GenerationMixin._beam_search of Transformers runs it since its version 4.50 (generation/utils.py):
// sequences of the full length from the start, chosen and gathered on the device, one kernel a line.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/workload/eager/eager.h"

namespace ridgeline::families {

/// `count` one-kernel operations in a row on tensors of this size; the result of the last.
eager::Tensor small_kernels(eager::Eager& eager, const eager::Dims& sizes, DType type, int count = 1);

class BeamSearch {
 public:
  /// `longest`: prompt and all new tokens. No token ends a sequence.
  BeamSearch(eager::Eager& eager, std::int64_t sequences, std::int64_t beams, std::int64_t prompt, std::int64_t longest,
             std::int64_t vocabulary);
  /// Chooses the candidates that go on from the scores of the last position. `logits` dies with its copy in fp32.
  void take(eager::Tensor& logits);
  /// Asks the device whether any sequence goes on, behind the reordering of the cache.
  void finish_token();
  /// Tokens that a pass of the network reads of each candidate: the flat copy that is cut to its last column.
  [[nodiscard]] eager::Tensor flat(std::int64_t tokens);

 private:
  using Tensor = eager::Tensor;
  using Dims = eager::Dims;
  Tensor small(const Dims& sizes, DType type, int count = 1) { return small_kernels(eager_, sizes, type, count); }
  /// take_along_dim.
  Tensor gathered(const Tensor& from, std::int64_t rows);
  Tensor joined(const Tensor& one, const Tensor& other);
  /// torch.topk: values and places.
  std::pair<Tensor, Tensor> largest(const Tensor& of, std::int64_t rows, std::int64_t cols, std::int64_t kept);

  eager::Eager& eager_;
  std::int64_t sequences_, beams_, kept_, vocabulary_;
  Tensor running_, finished_, running_places_, finished_places_;  ///< tokens and beams of candidates and of the best
  Tensor scores_, finished_scores_, is_finished_, improves_, hits_;
};

}  // namespace ridgeline::families
