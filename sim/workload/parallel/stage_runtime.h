// What one rank of a pipeline does in a step: the actions of its schedule, with the tensors that PyTorch's stages keep.
//
// Follows torch/distributed/pipelining/{stage,schedules,_backward}.py of PyTorch 2.11. Every micro-batch has buffers of
// its own for what is received, made in the first step and never freed. A stage keeps its output and the graph behind
// it until the backward pass; sent tensors are held until their sends were waited for. Batches of sends and receives
// run on the group's stream, one after the other, and the default stream waits for events. The host never waits.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/family.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {

/// What wraps the modules of a stage, told when its passes run.
struct StageHooks {
  std::function<void()> before_forward, after_forward;
  std::function<void(bool last)> before_backward, after_backward;
  std::function<void()> reduce_gradients;  ///< after the last backward pass of a step
  /// Gradient of a trained parameter that is divided then, in the place of the stage's own.
  std::function<eager::Tensor*(std::size_t)> gradient_of{};
};

class StageRuntime {
 public:
  /// Of rank `training.parallel.pipeline_rank`. A step of many micro-batches is traced with as many as make it differ
  /// (ShortSchedule); buffers are those of all. `batch` holds the tokens and targets of all micro-batches.
  StageRuntime(eager::Eager& eager, families::Family& family, const TrainingDescription& training,
               const families::Batch& batch, std::optional<DType> autocast, StageHooks hooks);

  /// All micro-batches. Notes the records of each action, and those that repeat, in `trace`.
  void step(OpTrace& trace);

 private:
  using Tensors = std::vector<eager::Tensor>;
  struct Kept {
    Tensors output;
    eager::Tensor loss;
    eager::Tape::Weights weights;
  };
  struct Stage {
    std::int32_t number = 0;
    std::size_t part = 0;
    bool first = false, last = false;
    // By micro-batch, for each tensor that stages hand on there.
    std::deque<eager::Parameters> inputs;   ///< received activations, or local ones
    std::vector<Tensors> output_gradients;  ///< received gradients, or local ones
    std::vector<Tensors> input_gradients;   ///< to be sent
    std::vector<Kept> kept;
    std::int32_t passes = 0;  ///< through its weights, in this step
  };

  void infer_shapes();
  void make_buffers();
  void run(const StageAction& action);
  void forward(Stage& stage, std::size_t micro_batch);
  void backward(Stage& stage, std::size_t micro_batch, StageAction::Kind kind);
  void backward_weights(Stage& stage, std::size_t micro_batch);
  /// Gradients are there from the second micro-batch on. Whether this pass is the last.
  bool begin_weights(Stage& stage);
  void input_gradient_made(Stage& stage, std::size_t micro_batch);
  void exchange(const StageAction& action);
  void reduce_gradients(const Stage& stage);
  [[nodiscard]] Stage& stage_of(std::int32_t number);
  [[nodiscard]] Stage* on_this_rank(std::int32_t number);
  /// A micro-batch of what all have: views.
  [[nodiscard]] families::Batch one_batch() const;
  [[nodiscard]] std::size_t parameters_of(const Stage& stage) const;

  eager::Eager& eager_;
  families::Family& family_;
  const TrainingDescription& training_;
  const families::Batch& batch_;
  std::optional<DType> autocast_;
  StageHooks hooks_;
  std::size_t rank_;
  ShortSchedule short_;
  RankActions actions_;
  ProcessGroup group_;
  std::deque<Stage> stages_;
  DType type_;   ///< of what stages hand on
  bool single_;  ///< one stage a rank, in a loop of its own
  Tensors losses_, rest_of_buffers_;
  Tensors output_;                    ///< of the last forward pass: a variable of the loop
  Tensors sent_forward_, sent_back_;  ///< likewise, of the loops of one stage
  std::vector<Tensors> held_;         ///< by batch, until it is waited for
  std::vector<Work> works_;           ///< by batch
};

}  // namespace ridgeline::parallel
