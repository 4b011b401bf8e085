// A weight of 3 x 5 and a bias of 7 with their gradients, and what an optimizer writes down over them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"
#include "tests/support/record_listing.h"

namespace ridgeline::testing_support {

/// Sees to it that an update makes no nodes of a graph.
class WatchedOptimizer final : public optimizers::Optimizer {
 public:
  explicit WatchedOptimizer(optimizers::Optimizer& inner) : inner_(inner) {}
  void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) override {
    EXPECT_FALSE(eager.gradients_enabled);
    inner_.step(eager, parameters, overflow_flag);
  }

 private:
  optimizers::Optimizer& inner_;
};

class OptimizerSession {
 public:
  /// Tensors w (its gradient dw), b (db), as many as there are `sizes`.
  explicit OptimizerSession(DType type = DType::fp32, std::initializer_list<eager::Dims> sizes = {{3, 5}, {7}}) {
    eager.recorder.phase = Phase::optimizer;
    eager.gradients_enabled = false;
    constexpr std::array kNames{"w", "b", "c"};
    for (const eager::Dims& one : sizes) {
      const std::string name = kNames[parameters.size()];
      eager::Parameter& parameter = parameters.emplace_back();
      parameter.value = eager.empty(one, type);
      parameter.gradient = eager.empty(one, type);
      listing.call(parameter.value.storage.id(), name);
      listing.call(parameter.gradient.storage.id(), "d" + name);
    }
  }
  OptimizerSession(const OptimizerSession&) = delete;
  OptimizerSession& operator=(const OptimizerSession&) = delete;
  ~OptimizerSession() { eager.recorder.closed = true; }

  /// What `act` writes down.
  template <typename Act>
  std::string listed(Act act) {
    const std::uint32_t begin = eager.recorder.position();
    act();
    return listing.lines(begin);
  }
  std::string step_of(optimizers::Optimizer& optimizer, const eager::Tensor& flag = {}) {
    return listed([&] { optimizer.step(eager, parameters, flag); });
  }
  /// State `number` of each parameter, from 0, is called w0, b0 … from here on.
  void name_states() {
    for (const eager::Parameter& parameter : parameters)
      for (std::size_t i = 0; i < parameter.states.size(); ++i)
        listing.call(parameter.states[i].storage.id(), listing.name(parameter.value.storage.id()) + std::to_string(i));
  }

  OpTrace trace;
  RecordListing listing{trace};
  eager::Eager eager{trace};
  eager::Parameters parameters;
};

}  // namespace ridgeline::testing_support
