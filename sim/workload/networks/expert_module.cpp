#include "sim/workload/networks/expert_module.h"

#include <fmt/format.h>

#include "sim/workload/families/stack_network.h"

namespace ridgeline::networks {

class ExpertModule {
 public:
  ExpertModule(ProgramNetwork& n, const Stack& stack)
      : stack_(stack),
        site_{n.session(),
              n.weight_type(),
              n.training(),
              n.attention_choice(),
              {},
              {},
              [] { return false; },
              [] { return false; },
              [] { return false; },
              [] { return std::int64_t{0}; },
              n.place,
              [&n](const Dims& sizes, DType type) { return n.new_buffer(sizes, type); },
              [&n](const Dims& sizes) { return n.new_parameter(sizes); },
              [&n](std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role, bool by_inputs) {
                return n.new_linear(out, in, bias, role, by_inputs);
              },
              n.layers_of_ranks()},
        network_(stack_, site_, 0, families::StagePart{0, 0, false, false}) {
    network_.make_lone_experts();
  }
  Tensor run(const Tensor& x) { return network_.run_lone_experts(x); }
  [[nodiscard]] std::int64_t hidden() const { return stack_.hidden; }

 private:
  const Stack stack_;
  families::StackSite site_;
  families::StackNetwork network_;
};

void make_experts(ProgramNetwork& n, const CallArguments& a, ProgramModule& m) {
  a.require(n.training().parallel.tensor == 1 && n.training().parallel.expert == 1,
            "experts of a program are whole on every rank: tensor and expert parallel ranks are not modelled");
  Stack s;
  s.layers = s.heads = 1;
  s.hidden = a.count("hidden");
  s.expert_feed_forward = s.feed_forward = a.count("inner");
  s.experts = a.count("count");
  s.experts_per_token = a.count("chosen");
  s.shared_feed_forward = a.whole("shared", 0);
  s.shared_gate = a.flag("shared_gate", false);
  s.feed_forward_kind = a.flag("gated", true) ? FeedForwardKind::gated : FeedForwardKind::plain;
  s.feed_forward_bias = false;
  s.final_norm = false;
  a.require(s.experts_per_token <= s.experts, fmt::format("{} of {} experts", s.experts_per_token, s.experts));
  const std::string router = a.text("router", "softmax"), activation = a.text("activation", "silu");
  a.require(router == "softmax" || router == "sigmoid",
            fmt::format("router \"{}\"; expected \"softmax\" or \"sigmoid\"", router));
  s.router = router == "softmax" ? RouterKind::softmax : RouterKind::sigmoid;
  s.router_correction = a.flag("correction", false);
  a.require(activation == "silu" || activation == "gelu" || activation == "relu2",
            fmt::format("activation \"{}\"; expected \"silu\", \"gelu\" or \"relu2\"", activation));
  s.activation = activation == "silu"   ? ComposedActivation::silu
                 : activation == "gelu" ? ComposedActivation::gelu
                                        : ComposedActivation::relu_squared;
  m.experts = std::make_shared<ExpertModule>(n, s);
}

Tensor run_experts(ProgramNetwork&, const CallArguments& a, const ProgramModule& m) {
  const Tensor& x = a.tensor("x");
  a.require(x.sizes.rank() == 3 && x.sizes.last() == m.experts->hidden(),
            fmt::format("a tensor {} for experts of {} inputs", text_of(x.sizes), m.experts->hidden()));
  return m.experts->run(x);
}

}  // namespace ridgeline::networks
