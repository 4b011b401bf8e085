#include "sim/workload/eager/tape.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/parameter.h"

namespace ridgeline::eager {
namespace {

/// A session and what it records; handles die unrecorded at its end.
struct Session {
  OpTrace trace;
  Eager eager{trace};
  Parameters parameters;

  Session() { eager.recorder.phase = Phase::forward; }
  ~Session() { eager.recorder.closed = true; }

  Parameter& parameter(const Dims& sizes, DType type = DType::fp32) {
    Parameter& result = parameters.emplace_back();
    result.allocate(eager, sizes, type);
    return result;
  }
  void backward(const Tensor& root) {
    eager.recorder.phase = Phase::backward;
    eager.tape.run(eager, root, eager.empty(root.sizes, root.type));
    eager.tape.destroy_from(0);
  }
  /// Names of the operations of the backward pass, in order.
  std::vector<std::string> backward_operations() const {
    std::vector<std::string> names;
    for (const Call& call : trace.calls)
      if (call.phase == Phase::backward) names.push_back(name_of(trace.ops[call.op]));
    return names;
  }
  std::int64_t allocated() const {
    std::int64_t bytes = 0;
    for (const Record& record : trace.records) {
      if (record.kind == Record::Kind::allocate) bytes += trace.storages[record.index].bytes;
      if (record.kind == Record::Kind::free) bytes -= trace.storages[record.index].bytes;
    }
    return bytes;
  }
};

using Names = std::vector<std::string>;

TEST(Tape, Runs_the_newest_ready_node_first) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  Tensor y = aten::activation(s.eager, w.value, aten::ActivationKind::gelu);
  y = aten::activation(s.eager, y, aten::ActivationKind::tanh);
  s.backward(y);
  EXPECT_EQ(s.backward_operations(), (Names{"tanh_backward", "gelu_backward"}));
}

// One of two roots is in the graph of the other: it waits for what comes through the other one.
TEST(Tape, Roots_get_their_gradients_before_any_node_runs) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  const Tensor inner = aten::activation(s.eager, w.value, aten::ActivationKind::gelu);
  const std::vector<Tensor> roots{aten::activation(s.eager, inner, aten::ActivationKind::tanh), inner, w.value};
  std::vector<Tensor> gradients(3);
  for (Tensor& one : gradients) one = s.eager.empty({8, 8}, DType::fp32);
  s.eager.recorder.phase = Phase::backward;
  s.eager.tape.run(s.eager, roots, std::move(gradients));
  s.eager.tape.destroy_from(0);
  EXPECT_EQ(s.backward_operations(), (Names{"tanh_backward", "add_", "gelu_backward", "add_"}));
  EXPECT_TRUE(w.gradient.defined());
}

TEST(Tape, A_second_gradient_is_added_in_place_into_the_first) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  const Tensor x = aten::activation(s.eager, w.value, aten::ActivationKind::gelu);
  const Tensor y = aten::add(s.eager, aten::scale(s.eager, x), aten::scale(s.eager, x));
  s.backward(y);
  EXPECT_EQ(s.backward_operations(), (Names{"scale", "scale", "add_", "gelu_backward"}));
}

TEST(Tape, A_gradient_that_somebody_else_still_holds_is_added_out_of_place) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  const Tensor x = aten::activation(s.eager, w.value, aten::ActivationKind::gelu);
  // The sum hands one gradient to both branches; x gets it at once and once more through tanh, which is still to run.
  const Tensor y = aten::add(s.eager, x, aten::add(s.eager, x, x));
  s.backward(y);
  const Names names = s.backward_operations();
  EXPECT_NE(std::find(names.begin(), names.end(), "add"), names.end())
      << "the first sum may not overwrite a shared gradient";
}

TEST(Tape, A_gradient_of_broadcast_input_is_summed_to_its_size) {
  Session s;
  Parameter& bias = s.parameter({16});
  const Tensor x = s.eager.empty({32, 16}, DType::fp32);
  s.backward(aten::add(s.eager, x, bias.value));
  EXPECT_EQ(s.backward_operations(), Names{"sum"});
  EXPECT_EQ(bias.gradient.sizes, (Dims{16}));
}

TEST(Tape, A_gradient_takes_the_type_of_what_it_belongs_to) {
  Session s;
  Parameter& half = s.parameter({32, 16}, DType::bf16);
  const Tensor wide = s.eager.empty({32, 16}, DType::fp32);
  s.backward(aten::add(s.eager, wide, half.value));
  EXPECT_EQ(s.backward_operations(), Names{"cast"});
  EXPECT_EQ(half.gradient.type, DType::bf16);
}

TEST(Tape, A_product_keeps_its_factors_until_its_node_ran_and_no_longer) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  Tensor y;
  std::int64_t with_input = 0;
  {
    const Tensor x = s.eager.empty({8, 8}, DType::fp32);
    y = aten::mm(s.eager, x, w.value);
    with_input = s.allocated();
  }
  EXPECT_EQ(s.allocated(), with_input) << "x is saved for the gradient of w";
  s.backward(y);
  EXPECT_EQ(s.allocated(), with_input) << "x is gone, the gradient of w is as large";
  y = Tensor{};
  EXPECT_EQ(s.allocated(), 2 * 256) << "w and its gradient";
}

TEST(Tape, The_first_gradient_of_a_parameter_is_kept_without_a_copy_and_the_next_is_added) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  s.backward(aten::scale(s.eager, w.value));
  EXPECT_EQ(s.backward_operations(), Names{"scale"});
  EXPECT_EQ(s.trace.storages[w.gradient.storage.id()].category, Category::gradients);
  s.eager.recorder.phase = Phase::forward;
  s.backward(aten::scale(s.eager, w.value));
  EXPECT_EQ(s.backward_operations(), (Names{"scale", "scale", "add_"}));
}

TEST(Tape, Weight_gradients_of_a_linear_layer_are_transposed_products_in_the_weights_own_layout) {
  Session s;
  Parameter& w = s.parameter({64, 16});
  Parameter& b = s.parameter({64});
  Parameter& input = s.parameter({32, 16});
  s.backward(aten::linear(s.eager, input.value, w.value, &b.value));
  EXPECT_EQ(s.backward_operations(), (Names{"mm", "mm", "sum"}));
  EXPECT_TRUE(w.gradient.contiguous());
  EXPECT_EQ(w.gradient.sizes, (Dims{64, 16}));
  std::vector<Layout> layouts;
  for (const Op& op : s.trace.ops)
    if (const auto* matmul = std::get_if<Matmul>(&op); matmul != nullptr && !matmul->bias)
      layouts.push_back(matmul->layout);
  EXPECT_EQ(layouts, (std::vector{Layout::nn, Layout::tn})) << "dY·W and dYᵀ·X";
}

TEST(Tape, Nothing_is_kept_without_gradients) {
  Session s;
  Parameter& w = s.parameter({8, 8});
  s.eager.gradients_enabled = false;
  { const Tensor y = aten::mm(s.eager, w.value, aten::scale(s.eager, w.value)); }
  EXPECT_EQ(s.allocated(), 256);
  EXPECT_EQ(s.eager.tape.size(), 0u);
}

}  // namespace
}  // namespace ridgeline::eager
