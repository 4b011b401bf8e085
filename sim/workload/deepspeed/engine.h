// What DeepSpeed's engine does around forward pass, backward pass and update of a script that trains with ZeRO.
//
// Parameters and gradients have 16 bits where the script asks for them, and are the network's own; what the optimizer
// updates is an fp32 copy of this rank's share, one flat tensor.
#pragma once

#include <memory>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::deepspeed {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual void before_forward() {}
  virtual void after_forward() {}
  /// `last`: the step's update follows.
  virtual void before_backward(bool last) = 0;
  virtual void after_backward() = 0;
  virtual void step(optimizers::Optimizer& optimizer) = 0;
};

/// For the stage that the strategy names; on one GPU nothing is cut, and stage 3 is what stage 2 is. `all`: the
/// parameters and those that nobody trains, which stage 3 cuts too; empty: all are trained.
std::unique_ptr<Engine> make_engine(eager::Eager& eager, eager::Parameters& parameters,
                                    const TrainingDescription& training, std::vector<eager::Parameter*> all = {});

}  // namespace ridgeline::deepspeed
