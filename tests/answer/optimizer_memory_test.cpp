// Bytes of weights, gradients and optimizer states from first principles, for every optimizer and precision.
#include <gtest/gtest.h>

#include <set>

#include "sim/answer/memory_prediction.h"
#include "tests/support/trace_mistakes.h"

namespace ridgeline {
namespace {

struct Shape {
  std::int64_t elements, rows, columns;  ///< a vector has one column
};
/// Parameters of the model below, biases and norms among them.
std::vector<Shape> shapes() {
  constexpr std::int64_t d = 512, v = 4000, positions = 128, inner = 4 * d;
  std::vector<Shape> out;
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) { out.push_back({rows * columns, rows, columns}); };
  const auto vector = [&](std::int64_t rows) { out.push_back({rows, rows, 1}); };
  matrix(v, d);
  matrix(positions, d);
  for (int layer = 0; layer < 2; ++layer) {
    for (int i = 0; i < 4; ++i) vector(d);
    matrix(3 * d, d), vector(3 * d);
    matrix(d, d), vector(d);
    matrix(inner, d), vector(inner);
    matrix(d, inner), vector(d);
  }
  vector(d), vector(d);
  return out;
}
std::int64_t rounded(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

MemoryPrediction memory(const std::string& optimizer, const std::string& implementation, const std::string& precision,
                        const std::string& software = "pytorch-2.11") {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-h100-sxm5-80gb, model: {family: gpt2, layers: 2, heads: 8, hidden: 512, vocabulary: 4000, "
      "max_positions: 128, dropout: 0.0}, training: {micro_batch: 1, sequence_length: 16, precision: " +
      precision + ", attention: sdpa, optimizer: {name: " + optimizer + ", implementation: " + implementation +
      "}}, software: " + software + "}";
  source.text_name = "test";
  return predict_memory(load_scenario(source));
}
std::int64_t at_peak(const MemoryPrediction& m, Category category) {
  return m.at_peak[static_cast<std::size_t>(category)];
}

/// Sum over the parameters of the states one of them needs, each state in a block of its own.
template <typename StatesOf>
void expect_states(const std::string& optimizer, const std::string& implementation, const std::string& precision,
                   StatesOf states_of, const std::string& software = "pytorch-2.11") {
  std::int64_t expected = 0;
  for (const Shape& shape : shapes())
    for (const std::int64_t bytes : states_of(shape)) expected += rounded(bytes);
  const MemoryPrediction m = memory(optimizer, implementation, precision, software);
  // Blocks of the large pool may be up to 1 MiB larger than asked for; maps and scales of a few KiB come on top.
  const auto states = static_cast<double>(at_peak(m, Category::optimizer_state));
  EXPECT_GE(states, static_cast<double>(expected)) << optimizer << " " << implementation << " " << precision;
  EXPECT_LE(states, 1.02 * static_cast<double>(expected) + (64 << 10))
      << optimizer << " " << implementation << " " << precision;
}

TEST(OptimizerMemory, AdamKeepsTwoStatesInTheTypeOfTheWeights) {
  for (const char* name : {"adamw", "adam"}) {
    for (const char* implementation : {"for-loop", "foreach", "fused"}) {
      for (const char* precision : {"fp32", "amp-fp16", "amp-bf16", "bf16"}) {
        const std::int64_t size = precision == std::string("bf16") ? 2 : 4;
        expect_states(name, implementation, precision, [&](const Shape& s) {
          std::vector<std::int64_t> states{s.elements * size, s.elements * size};
          if (implementation == std::string("fused")) states.push_back(4);  // its step count
          return states;
        });
      }
    }
  }
}

TEST(OptimizerMemory, SgdKeepsNothingAndWithMomentumOneState) {
  for (const char* implementation : {"for-loop", "foreach", "fused"}) {
    EXPECT_EQ(at_peak(memory("sgd", implementation, "fp32"), Category::optimizer_state), 0) << implementation;
    expect_states("sgd-momentum", implementation, "fp32",
                  [](const Shape& s) { return std::vector<std::int64_t>{s.elements * 4}; });
  }
}

TEST(OptimizerMemory, AdafactorKeepsARowAndAColumnOfAMatrix) {
  expect_states("adafactor", "for-loop", "fp32", [](const Shape& s) {
    return s.columns > 1 ? std::vector<std::int64_t>{s.rows * 4, s.columns * 4} : std::vector<std::int64_t>{s.rows * 4};
  });
}

// The weights of eight experts lie in one tensor: 512 to 2 x 256 numbers, and 256 back.
TEST(OptimizerMemory, AdafactorKeepsARowAndAColumnOfEveryExpert) {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-h100-sxm5-80gb, model: {family: composed, layers: 1, heads: 8, hidden: 512, vocabulary: 4000, "
      "max_positions: 128, feed_forward_kind: gated-fused, feed_forward: 256, experts: 8, experts_per_token: 2}, "
      "training: {micro_batch: 2, sequence_length: 64, precision: fp32, optimizer: {name: adafactor}}}";
  source.text_name = "test";
  const Scenario scenario = load_scenario(source);
  const OpTrace trace = trace_of(scenario);
  EXPECT_EQ(testing_support::first_mistake(trace, scenario.model.layers), "");
  std::multiset<std::int64_t> states;
  for (const Storage& storage : trace.storages)
    if (storage.category == Category::optimizer_state) states.insert(storage.bytes);
  EXPECT_EQ(states.count(4 * 8 * 512), 3u);
  EXPECT_EQ(states.count(4 * 8 * 256), 1u);
  // Every update is multiplied with its whole gradient.
  std::int64_t multiplied = 0;
  const StepRange step = trace.steps.back();
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    const auto* op = std::get_if<Pointwise>(&trace.ops[call.op]);
    if (call.phase == Phase::optimizer && op != nullptr && op->function == PointwiseFunction::mul &&
        op->rows * op->cols > 1)
      multiplied += op->elements();
  }
  EXPECT_GE(multiplied, trace.parameters);
}

TEST(OptimizerMemory, EightBitStatesTakeAByteAndAScaleABlockAndSmallTensorsStayInFp32) {
  for (const auto& [software, block] : {std::pair{"pytorch-2.11", 256}, {"pytorch-1.13", 2048}}) {
    const auto states = [block = block](const Shape& s) {
      if (s.elements < 4096) return std::vector<std::int64_t>{s.elements * 4, s.elements * 4};
      const std::int64_t scales = (s.elements + block - 1) / block * 4;
      return std::vector<std::int64_t>{s.elements, scales, s.elements, scales};
    };
    expect_states("adamw-8bit", "fused", "fp32", states, software);
  }
}

TEST(OptimizerMemory, AForeachAdamHoldsOneListOfTemporariesAndTwoBeforePyTorch21) {
  const auto temporaries = [](const std::string& software) {
    const MemoryPrediction m = memory("adamw", "foreach", "fp32", software);
    EXPECT_EQ(m.peak_phase, Phase::optimizer);
    // Blocks of the large pool may be up to 1 MiB larger than asked for.
    return static_cast<double>(at_peak(m, Category::temporaries)) / static_cast<double>(at_peak(m, Category::weights));
  };
  EXPECT_NEAR(temporaries("pytorch-2.11"), 1.0, 0.02);
  EXPECT_NEAR(temporaries("pytorch-2.0"), 2.0, 0.04);
}

TEST(OptimizerMemory, KahanSummationKeepsAThirdStateInBf16) {
  expect_states("adamw-kahan", "foreach", "bf16", [](const Shape& s) {
    return std::vector<std::int64_t>{s.elements * 2, s.elements * 2, s.elements * 2};
  });
}

TEST(OptimizerMemory, PureBf16HalvesWeights) {
  const std::int64_t half = at_peak(memory("adamw", "foreach", "bf16"), Category::weights);
  const std::int64_t whole = at_peak(memory("adamw", "foreach", "fp32"), Category::weights);
  EXPECT_NEAR(static_cast<double>(half), 0.5 * static_cast<double>(whole), 0.02 * static_cast<double>(whole));
}

}  // namespace
}  // namespace ridgeline
