#include "sim/workload/eager/autocast.h"

#include <gtest/gtest.h>

#include "sim/workload/families/functional.h"

namespace ridgeline::families {
namespace {

struct Session {
  OpTrace trace;
  Eager eager{trace};
  eager::Parameters parameters;
  Affine layer;
  Session() {
    for (const Dims& sizes : {Dims{64, 16}, Dims{64}}) parameters.emplace_back().allocate(eager, sizes, DType::fp32);
    layer = {&parameters[0], &parameters[1]};
    eager.recorder.phase = Phase::forward;
  }
  ~Session() { eager.recorder.closed = true; }
  std::vector<std::int64_t> cast_elements() const {
    std::vector<std::int64_t> result;
    for (const Call& call : trace.calls) {
      const auto* op = std::get_if<Pointwise>(&trace.ops[call.op]);
      if (op != nullptr && op->function == PointwiseFunction::cast) result.push_back(op->elements());
    }
    return result;
  }
};

TEST(Autocast, Casts_bias_then_weight_then_input_and_parameters_once_a_region) {
  Session s;
  const Tensor x = s.eager.empty({32, 16}, DType::fp32);
  s.eager.autocast.enter(DType::bf16);
  const Tensor first = linear(s.eager, x, s.layer);
  EXPECT_EQ(first.type, DType::bf16);
  EXPECT_EQ(s.cast_elements(), (std::vector<std::int64_t>{64, 64 * 16, 32 * 16}));
  const Tensor second = linear(s.eager, x, s.layer);
  EXPECT_EQ(s.cast_elements().size(), 4u) << "only the input is cast again";
  s.eager.autocast.leave();
}

TEST(Autocast, A_cast_weight_outlives_the_region_in_the_node_that_saved_it_and_a_cast_bias_does_not) {
  Session s;
  Parameter& input = s.parameters.emplace_back();  // wants a gradient, for which the weight is saved
  input.allocate(s.eager, {32, 16}, DType::bf16);
  const Tensor x = input.value;
  s.eager.autocast.enter(DType::bf16);
  const Tensor y = linear(s.eager, x, s.layer);
  s.eager.autocast.leave();
  std::int64_t freed = 0;
  for (const Record& record : s.trace.records)
    if (record.kind == Record::Kind::free) freed += s.trace.storages[record.index].bytes;
  EXPECT_EQ(freed, 64 * 2) << "the bias alone";
}

TEST(Autocast, Softmax_is_fp32_in_one_kernel_from_fp16_and_after_a_cast_from_bf16) {
  for (const DType type : {DType::fp16, DType::bf16}) {
    Session s;
    const Tensor scores = s.eager.empty({2, 4, 8, 8}, type);
    s.eager.autocast.enter(type);
    EXPECT_EQ(softmax(s.eager, scores).type, DType::fp32);
    EXPECT_EQ(s.trace.calls.size(), type == DType::fp16 ? 1u : 2u);
    s.eager.autocast.leave();
  }
}

TEST(Autocast, The_logarithm_of_softmax_stays_in_16_bits_and_the_loss_is_fp32) {
  Session s;
  const Tensor logits = s.eager.empty({32, 100}, DType::bf16), target = s.eager.empty({32}, DType::int64);
  s.eager.autocast.enter(DType::bf16);
  EXPECT_EQ(cross_entropy(s.eager, logits, target).type, DType::fp32);
  s.eager.autocast.leave();
  EXPECT_EQ(std::get<Softmax>(s.trace.ops[0]).output, DType::bf16);
}

TEST(Dropout, Of_probability_zero_launches_nothing_and_returns_its_input) {
  Session s;
  const Tensor x = s.eager.empty({32, 16}, DType::fp32);
  EXPECT_EQ(dropout(s.eager, x, 0.0).storage.id(), x.storage.id());
  EXPECT_TRUE(s.trace.calls.empty());
  EXPECT_NE(dropout(s.eager, x, 0.1).storage.id(), x.storage.id());
}

}  // namespace
}  // namespace ridgeline::families
