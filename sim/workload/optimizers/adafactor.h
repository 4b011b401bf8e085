// Adafactor as Transformers runs it with its defaults (no momentum, relative steps): one tensor after the other. A
// matrix keeps one state a row and one a column; the update is a temporary of the parameter's size.
#pragma once

#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

class Adafactor final : public Optimizer {
 public:
  void step(eager::Eager& eager, eager::Parameters& parameters) override;

 private:
  void step_one(eager::Eager& eager, eager::Parameter& parameter);
};

}  // namespace ridgeline::optimizers
