// DeepSpeed's engine around a weight of 3 x 5, a bias of 7 and a table of 2 x 2, whose gradients come when a test says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "sim/workload/deepspeed/engine.h"
#include "tests/support/optimizer_session.h"

namespace ridgeline::testing_support {

/// ZeRO of a stage over three ranks with buckets of 20 numbers and a fused SGD; overlap_comm is off.
inline TrainingDescription zero_training(DataStrategy stage) {
  TrainingDescription t;
  t.optimizer = {OptimizerKind::sgd, OptimizerImplementation::fused};
  t.parallel.framework = Framework::deepspeed;
  t.parallel.strategy = stage;
  t.parallel.data = 3;
  t.parallel.zero.reduce_bucket_size = 20;
  t.parallel.zero.overlap_comm = false;
  return t;
}

/// Operations of Python on single numbers, each with a result of its own, as their count.
inline std::string with_numbers_counted(const std::string& text) {
  static const std::regex kNumber("new ([0-9]+): 4 temporaries\npointwise 1x1 fp32: \\1 4 -> \\1 4\nfree \\1\n");
  std::string result;
  int count = 0;
  const auto end_count = [&] {
    if (count > 0) result += fmt::format("{} operations on numbers\n", count);
    count = 0;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    std::smatch match;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::regex_search(begin, text.end(), match, kNumber, std::regex_constants::match_continuous)) {
      ++count;
      at += static_cast<std::size_t>(match.length());
      continue;
    }
    end_count();
    const std::size_t next = text.find('\n', at) + 1;
    result += text.substr(at, next - at);
    at = next;
  }
  end_count();
  return result;
}

class ZeroSession {
 public:
  /// The weight and the bias are one part of the network, the table is another.
  ZeroSession(DType type, TrainingDescription t, const eager::Dims& table = {2, 2})
      : session(type, {{3, 5}, {7}, table}),
        training_(std::move(t)),
        optimizer_(optimizers::make_optimizer(training_)) {
    for (eager::Parameter& parameter : session.parameters) {
      parameter.gradient.reset();
      parameter.accumulate.module = &parameter == &session.parameters.back() ? 2 : 1;
    }
    std::uint32_t begin = session.eager.recorder.position();
    const StorageId first = session.parameters.front().value.storage.id();
    engine = deepspeed::make_engine(session.eager, session.parameters, training_);
    // Stage 3 takes the allocations of whole parameters back.
    if (session.trace.records.front().index != first) begin -= static_cast<std::uint32_t>(session.parameters.size());
    made = "\n" + session.listing.lines(begin);
  }

  template <typename Act>
  std::string listed(Act act) {
    return "\n" + session.listed(act);
  }
  /// A backward pass that gives gradients to these parameters, in this order.
  std::string backward(const std::vector<std::size_t>& order = {2, 1, 0}, bool last = true) {
    session.eager.recorder.phase = Phase::backward;
    return listed([&] {
      engine->before_backward(last);
      for (const std::size_t i : order) {
        eager::Parameter& parameter = session.parameters[i];
        if (!parameter.gradient.defined()) {  // else the tape has added to the one that is there
          parameter.gradient = session.eager.empty(parameter.value.sizes, parameter.value.type);
          constexpr std::array kNames{"dw", "db", "dc"};
          session.listing.call(parameter.gradient.storage.id(), kNames[i]);
        }
        parameter.after_accumulate();
      }
      engine->after_backward();
    });
  }
  std::string step() {
    session.eager.gradients_enabled = true;
    WatchedOptimizer watched(*optimizer_);
    const std::string text = listed([&] { engine->step(watched); });
    EXPECT_TRUE(session.eager.gradients_enabled);
    return with_numbers_counted(text);
  }

  OptimizerSession session;
  std::string made;
  std::unique_ptr<deepspeed::Engine> engine;

 private:
  TrainingDescription training_;
  std::unique_ptr<optimizers::Optimizer> optimizer_;
};

/// Stage 3 that keeps nothing whole and gathers nothing ahead.
inline TrainingDescription sparing_training() {
  TrainingDescription t = zero_training(DataStrategy::zero3);
  t.parallel.zero.param_persistence_threshold = 0;
  t.parallel.zero.prefetch_bucket_size = 0;
  t.parallel.zero.max_reuse_distance = 0;
  return t;
}

/// A forward pass that reads the weight, the bias and the table.
inline std::string forward_of(ZeroSession& zero) {
  zero.session.eager.recorder.phase = Phase::forward;
  return zero.listed([&] {
    zero.engine->before_forward();
    for (const eager::Parameter& parameter : zero.session.parameters) {
      const eager::Tensor read = zero.session.eager.empty({1}, DType::fp32);
      eager::aten::pointwise(zero.session.eager, PointwiseFunction::scale, {&parameter.value}, read);
    }
    zero.engine->after_forward();
  });
}

}  // namespace ridgeline::testing_support
