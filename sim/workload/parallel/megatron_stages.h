// What one rank of a pipeline of Megatron-LM does in a step, up to its optimizer.
//
// Follows megatron/core/pipeline_parallel/{schedules,p2p_communication}.py. Tensors to be received are made when they
// are; an output that was sent gives its memory up and keeps its graph. After each batch of sends and receives the
// host waits for the GPU. Each tensor parallel rank sends its part, all parts are gathered where they arrive
// (--scatter-gather-tensors-in-pipeline of its earlier versions; with a split sequence there is nothing to gather).
// The first and the last stage take a micro-batch from the loader.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/family.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {

/// What the training script does with the loss of a micro-batch.
struct LossHooks {
  std::function<void(const eager::Tensor&)> average;  ///< over ranks, for the log
  bool scaled = false;                                ///< before the backward pass, as fp16 needs it
};

class MegatronStages {
 public:
  /// Of rank `training.parallel.pipeline_rank`. A step of many micro-batches is traced with as many as make it differ
  /// (ShortSchedule). `batch` holds the tokens and targets of a micro-batch.
  MegatronStages(eager::Eager& eager, families::Family& family, const TrainingDescription& training,
                 const families::Batch& batch, LossHooks hooks);

  /// All micro-batches. Notes the records of each action, and those that repeat, in `trace`.
  void step(OpTrace& trace);

 private:
  struct MicroBatch {
    eager::Parameter input;         ///< received
    eager::Tensor output, loss;     ///< with the graph behind them
    eager::Tensor output_gradient;  ///< received
    eager::Tensor input_gradient;   ///< to be sent
  };
  struct Stage {
    std::int32_t number = 0;
    std::size_t part = 0;
    bool first = false, last = false;
    std::deque<MicroBatch> passes;
  };

  void run(const StageAction& action);
  void forward(Stage& stage, MicroBatch& pass);
  void backward(Stage& stage, MicroBatch& pass);
  void exchange(const StageAction& action);
  void receive(const Transfer& transfer);
  void wait(const StageAction& action);
  void take(eager::Tensor& part);
  [[nodiscard]] Stage& stage_of(std::int32_t number);
  /// What goes from stage to stage: a rank's part of [sequence, micro-batch, hidden].
  [[nodiscard]] eager::Tensor handed_on();
  [[nodiscard]] bool gathers() const { return training_.parallel.tensor > 1 && !training_.parallel.sequence_parallel; }

  eager::Eager& eager_;
  families::Family& family_;
  const TrainingDescription& training_;
  const families::Batch& batch_;
  LossHooks hooks_;
  std::size_t rank_;
  ShortSchedule short_;
  RankActions actions_;
  ProcessGroup group_;
  std::deque<Stage> stages_;
  std::vector<Transfer> moving_;
  Work work_;
};

}  // namespace ridgeline::parallel
