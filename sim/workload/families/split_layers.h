// Layers that tensor parallel ranks share, by a program's vocabulary: linear layers over columns and over rows, the
// token table, norms between them, the output projection. One rank: each is the plain operation.
//
// By hand (TensorStyle::by_hand) tables, norms and the output projection are whole on each rank. By
// torch.distributed.tensor.parallel the token table is RowwiseParallel, the output projection ColwiseParallel, and with
// a split sequence norms are SequenceParallel.
#pragma once

#include "sim/workload/families/functional.h"
#include "sim/workload/parallel/tensor_parallel.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

class SplitLayers {
 public:
  /// `ranks`: null where there is one.
  SplitLayers(Eager& eager, const TrainingDescription& training, parallel::TensorParallel* ranks)
      : eager_(eager), training_(training), ranks_(ranks) {}

  [[nodiscard]] bool several() const { return ranks_ != nullptr; }
  [[nodiscard]] bool dtensor() const {
    return ranks_ != nullptr && !training_.parallel.megatron() &&
           training_.parallel.tensor_style == TensorStyle::dtensor;
  }
  [[nodiscard]] bool cuts_sequence() const { return ranks_ != nullptr && training_.parallel.sequence_parallel; }
  /// This rank's part of a count of heads, columns or rows.
  [[nodiscard]] std::int64_t share(std::int64_t whole) const { return whole / training_.parallel.tensor; }
  /// Rows of the token table and of the output projection that this rank has.
  [[nodiscard]] std::int64_t vocabulary(std::int64_t whole) const;
  /// Tokens of a sequence of which this rank has `length` between its layers.
  [[nodiscard]] std::int64_t whole_length(std::int64_t length) const {
    return dtensor() && cuts_sequence() ? length * training_.parallel.tensor : length;
  }

  /// The input of what is split.
  Tensor enter(const Tensor& x);
  /// The same where each layer could not take its own.
  Tensor enter_module(const Tensor& x);
  /// The same of a tensor that is whole on every rank already.
  Tensor enter_whole(const Tensor& x);
  /// The input of one of the layers behind it, where each takes its own.
  Tensor enter_layer(const Tensor& x);
  /// A linear layer over this rank's columns.
  Tensor column_linear(const Tensor& x, const Affine& layer);
  /// A linear layer over columns of which each rank has some: its result is added up, then the bias comes.
  Tensor row_linear(const Tensor& x, const Affine& layer);
  /// The same before the sum.
  Tensor partial_linear(const Tensor& x, const Affine& layer);
  /// The sum of what ranks computed of their parts.
  Tensor leave(const Tensor& partial);
  /// All ranks' columns …
  Tensor gather_columns(const Tensor& x, std::int64_t columns);
  /// … and this rank's of them, behind what every rank computed alike.
  Tensor own_columns(const Tensor& x);
  /// The whole sequence of what every rank then computes alike, and this rank's part of one that every rank computed.
  Tensor whole_sequence(const Tensor& x);
  Tensor own_sequence(const Tensor& x);

  /// Rows of the token table; `cut`: this rank's part of the sequence.
  Tensor embedding(const Tensor& tokens, const Affine& table, bool cut);
  /// A norm between split layers, of `operations` on DTensors where it is SequenceParallel.
  Tensor between(const Tensor& x, int operations) { return cuts_sequence() ? dispatched(x, operations) : x; }
  /// Columns of the vocabulary; `inside`: x is whole on every rank.
  Tensor output_projection(const Tensor& x, const Affine& layer, bool inside);
  /// Logits of all classes, where the loss is not taken of this rank's.
  Tensor logits(const Tensor& own, std::int64_t classes) {
    return splits_logits() || !dtensor() ? own : gather_columns(own, classes);
  }
  [[nodiscard]] bool splits_logits() const { return dtensor() && training_.parallel.loss_parallel; }
  /// Mean loss of this rank's logits [rows, classes].
  Tensor split_loss(const Tensor& logits, const Tensor& targets);

  /// `count` operations on DTensors whose result is x: what their dispatch costs the host, forward and backward.
  Tensor dispatched(const Tensor& x, int count);
  /// Gradients that a rank has a part of, before the optimizer reads them.
  void add_up_gradients(eager::Parameters& updated);

 private:
  Eager& eager_;
  const TrainingDescription& training_;
  parallel::TensorParallel* ranks_;
};

}  // namespace ridgeline::families
