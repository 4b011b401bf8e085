// What Megatron-LM does around apex's FusedAdam: gradients of all micro-batches are added up in one buffer, exchanged
// once, brought to fp32, looked through for overflow, clipped; fp32 copies are updated and cast back.
//
// Follows megatron/model/distributed.py and megatron/optimizer/{optimizer,clip_grads,distrib_optimizer}.py. The buffer
// has the type of the parameters, but fp32 for bf16. Over the stages of a pipeline numbers are agreed on between all
// ranks that hold parts of the network, and the first and the last stage add up the gradients of a tied token table. As
// distributed optimizer (zero1) each data parallel rank updates its share of the buffer: gradients are reduced and
// scattered, parameters, which lie in a buffer too, gathered.
#pragma once

#include <optional>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/optimizers/optimizer.h"
#include "sim/workload/parallel/tensor_parallel.h"

namespace ridgeline::optimizers {

class MegatronOptimizer {
 public:
  /// `tensor`: of ranks that share layers, or null. Those of `repeated` parameters are whole on each of them: with a
  /// split sequence their gradients are added up. `shared_table`: elements of a token table that two stages hold, on
  /// this rank; 0: none.
  MegatronOptimizer(eager::Eager& eager, eager::Parameters& parameters, const TrainingDescription& training,
                    parallel::TensorParallel* tensor, std::vector<std::size_t> repeated, std::int64_t shared_table = 0);

  /// Zeros in the buffer.
  void begin_step();
  /// Loss of one micro-batch, averaged for the log.
  void average_loss(const eager::Tensor& loss);
  /// After the last backward pass: exchange, overflow, clipping, update.
  void step(Optimizer& optimizer);

  [[nodiscard]] const eager::Parameters& mains() const { return mains_; }
  [[nodiscard]] std::int64_t buffer_elements() const { return buffer_.elements(); }

 private:
  struct Piece {
    std::size_t parameter = 0;
    std::int64_t elements = 0;
  };
  [[nodiscard]] bool sixteen_bits() const { return bytes_of(parameters_.front().value.type) == 2; }
  /// fp32 copies of parameters in 16 bits; without them these are updated themselves.
  [[nodiscard]] bool copies() const { return sixteen_bits() && training_.parallel.fp32_copies; }
  [[nodiscard]] bool distributed() const {
    return data_.has_value() && training_.parallel.strategy == DataStrategy::zero1;
  }
  void make_mains();
  void gradient_arrived(std::size_t parameter);
  void add_up_repeated();
  void add_up_shared_table();
  void exchange();
  void take_gradients();
  void look_for_overflow();
  void clip();
  void return_values();
  /// A number that all ranks that hold different parameters agree on.
  void agree(const eager::Tensor& number);

  eager::Eager& eager_;
  eager::Parameters& parameters_;
  const TrainingDescription& training_;
  parallel::TensorParallel* tensor_;
  std::vector<std::size_t> repeated_;
  std::optional<parallel::ProcessGroup> data_, model_, tables_;
  std::int64_t shared_table_;
  eager::Tensor buffer_, values_;  ///< gradients; parameters, where they lie in one piece
  std::vector<Piece> pieces_;      ///< of `mains_`, in their order
  eager::Parameters mains_;
};

}  // namespace ridgeline::optimizers
