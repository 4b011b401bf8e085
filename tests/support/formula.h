// An operation of PyTorch and its formula backward, as they are recorded.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "tests/support/recorded_text.h"

namespace ridgeline::testing_support {

using eager::Dims;
using eager::Tensor;

/// Trained tensors x, y, … and what is recorded from them to the gradients of all; results are a, b, c ….
class Formula {
 public:
  Formula() = default;
  Formula(const Formula&) = delete;
  Formula& operator=(const Formula&) = delete;
  ~Formula() { eager.recorder.closed = true; }

  const Tensor& trained(const std::string& name, const Dims& sizes, DType type = DType::fp32) {
    eager::Parameter& made = parameters_.emplace_back();
    made.allocate(eager, sizes, type);
    names_.emplace_back(made.value.storage.id(), name);
    return made.value;
  }
  Tensor given(const std::string& name, const Dims& sizes, DType type = DType::fp32) {
    Tensor made = eager.empty(sizes, type);
    names_.emplace_back(made.storage.id(), name);
    return made;
  }
  /// What `forward` records, then what the gradient dy of its result does.
  std::string of(const std::function<Tensor()>& forward) {
    eager.recorder.phase = Phase::forward;
    const std::uint32_t begin = eager.recorder.position();
    {
      Tensor result = forward();
      eager.recorder.phase = Phase::backward;
      const Tensor gradient = given("dy", result.sizes, result.type);
      if (result.node != nullptr) eager.tape.run(eager, result, gradient);
    }
    RecordedText text(trace);
    for (const auto& [storage, name] : names_) text.call(storage, name);
    const std::string recorded = text.letters().text(begin, eager.recorder.position());
    for (eager::Parameter& parameter : parameters_) parameter.gradient = Tensor{};
    eager.tape.destroy_from(0);
    return "\n" + recorded;
  }

  OpTrace trace;
  eager::Eager eager{trace};

 private:
  eager::Parameters parameters_;
  std::vector<std::pair<StorageId, std::string>> names_;
};

}  // namespace ridgeline::testing_support
