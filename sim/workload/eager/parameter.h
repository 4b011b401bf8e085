// A trained parameter: its value, its gradient, its optimizer states, and the node at the end of the tape that keeps or
// adds the gradient.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {

struct Parameter;

/// Keeps the first gradient of a step without a copy when it has the parameter's layout, adds later ones in place.
class AccumulateGradient final : public Node {
 public:
  explicit AccumulateGradient(Parameter& parameter) : Node(HostClass::accumulate_grad), parameter_(parameter) {
    sequence = Tape::kAccumulate;
  }
  void backward(Eager& eager, Gradients& incoming, Gradients& outgoing) override;

 private:
  Parameter& parameter_;
};

struct Parameter {
  /// Without a value yet: the order of Module.parameters() may differ from that of allocation.
  Parameter() : accumulate(*this) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  void allocate(Eager& eager, const Dims& sizes, DType type);

  Tensor value;
  Tensor gradient;
  std::vector<Tensor> states;
  AccumulateGradient accumulate;
  bool of_experts = false;                 ///< spread over ranks: others hold other experts
  bool frozen = false;                     ///< requires no gradient
  std::optional<DType> stored;             ///< of its shards, where that is not the network's own type
  bool partial_gradient = false;           ///< whole on each tensor parallel rank, which sees a part of its gradient
  std::function<void()> after_accumulate;  ///< hook of a wrapper: a gradient has arrived
};

/// Parameters in the order of Module.parameters(): addresses stay.
using Parameters = std::deque<Parameter>;

}  // namespace ridgeline::eager
