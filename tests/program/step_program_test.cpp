#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/program/step_program.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
const Software& software() {
  static const Software stack = load_software("pytorch-2.11");
  return stack;
}

/// A trace written down by hand.
struct Trace {
  OpTrace trace;

  void begin_step() { trace.steps.push_back({here(), here()}); }
  void end_step() { trace.steps.back().end = here(); }
  std::uint32_t allocate(std::int64_t bytes) {
    trace.storages.push_back({bytes, Category::activations, 3});
    const auto storage = static_cast<std::uint32_t>(trace.storages.size() - 1);
    trace.records.push_back({Record::Kind::allocate, HostClass::other, 0, storage});
    return storage;
  }
  void free(std::uint32_t storage) { trace.records.push_back({Record::Kind::free, HostClass::other, 0, storage}); }
  void host(HostClass host_class, std::uint32_t times = 1) {
    trace.records.push_back({Record::Kind::host, host_class, 0, times});
  }
  void op(const Op& op, const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& outputs,
          Phase phase = Phase::forward) {
    auto at = std::find(trace.ops.begin(), trace.ops.end(), op);
    if (at == trace.ops.end()) at = trace.ops.insert(at, op);
    Call call;
    call.op = static_cast<std::uint32_t>(at - trace.ops.begin());
    call.operands_begin = static_cast<std::uint32_t>(trace.operands.size());
    call.inputs = static_cast<std::uint16_t>(inputs.size());
    call.outputs = static_cast<std::uint16_t>(outputs.size());
    call.phase = phase;
    for (const auto* list : {&inputs, &outputs}) {
      for (const std::uint32_t storage : *list) trace.operands.push_back({storage, trace.storages[storage].bytes});
    }
    trace.records.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace.calls.size())});
    trace.calls.push_back(call);
  }

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(trace.records.size()); }
};

Pointwise add(std::int64_t rows) {
  Pointwise op;
  op.rows = rows;
  op.cols = 1024;
  op.input_count = 2;
  return op;
}
Matmul product(bool bias) {
  Matmul op;
  op.m = op.n = op.k = 1024;
  op.layout = Layout::nt;
  op.bias = bias;
  return op;
}

std::vector<std::int64_t> allocations_of(const StepProgram& program, Category category) {
  std::vector<std::int64_t> bytes;
  for (const Action& action : program.actions) {
    if (action.kind == Action::Kind::allocate && program.storages[action.index].category == category)
      bytes.push_back(program.storages[action.index].bytes);
  }
  return bytes;
}

TEST(StepProgram, equal_ops_share_their_launches) {
  Trace t;
  const auto a = t.allocate(4 << 20), b = t.allocate(4 << 20);
  t.begin_step();
  for (int i = 0; i < 5; ++i) t.op(add(1024), {a, a}, {b});
  t.op(add(512), {a, a}, {b});
  t.end_step();
  const StepProgram program = make_program(t.trace, h200(), software());
  EXPECT_EQ(program.launches.size(), 2u);
  EXPECT_EQ(std::count_if(program.actions.begin(), program.actions.end(),
                          [](const Action& x) { return x.kind == Action::Kind::launch; }),
            6);
}

TEST(StepProgram, steps_cover_the_same_records_as_in_the_trace) {
  Trace t;
  const auto a = t.allocate(4 << 20);
  for (int i = 0; i < 2; ++i) {
    t.begin_step();
    t.host(HostClass::pointwise);
    t.op(add(1024), {a, a}, {a});
    t.end_step();
  }
  const StepProgram program = make_program(t.trace, h200(), software());
  ASSERT_EQ(program.steps.size(), 2u);
  EXPECT_EQ(program.steps[0].begin, 1u);
  EXPECT_EQ(program.steps[0].end, program.steps[1].begin);
  EXPECT_EQ(program.steps[1].end, program.actions.size());
  EXPECT_EQ(program.steady_step().size(), 2u);
  EXPECT_EQ(program.steady_step()[0].host_class, HostClass::pointwise);
}

TEST(StepProgram, temporaries_stand_around_the_launches_of_their_op) {
  const Reduction sum{ReductionKind::sum_rows, DType::fp32, 16384, 768};
  const LoweredOp lowered = lower(sum, h200(), software());
  ASSERT_FALSE(lowered.temporaries.empty());
  Trace t;
  const auto x = t.allocate(16384 * 768 * 4), y = t.allocate(768 * 4);
  t.op(sum, {x}, {y});
  const StepProgram program = make_program(t.trace, h200(), software());
  const std::size_t n = lowered.temporaries.size(), launches = lowered.launches.size();
  ASSERT_EQ(program.actions.size(), 2 + n + launches + n);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(program.actions[2 + i].kind, Action::Kind::allocate);
    EXPECT_EQ(program.storages[program.actions[2 + i].index].bytes, lowered.temporaries[i]);
    EXPECT_EQ(program.actions[2 + n + launches + i].kind, Action::Kind::free);
    EXPECT_EQ(program.actions[2 + n + launches + i].index, program.actions[2 + n - 1 - i].index);
  }
  EXPECT_EQ(allocations_of(program, Category::temporaries), lowered.temporaries);
}

TEST(StepProgram, each_thread_allocates_the_workspace_of_the_matrix_library_at_its_first_product) {
  Trace t;
  const auto a = t.allocate(4 << 20);
  t.begin_step();
  for (const Phase phase : {Phase::forward, Phase::forward, Phase::backward, Phase::backward})
    t.op(product(false), {a, a}, {a}, phase);
  t.end_step();
  const StepProgram program = make_program(t.trace, h200(), software());
  EXPECT_EQ(allocations_of(program, Category::workspaces), (std::vector<std::int64_t>{32 << 20, 32 << 20}));
}

TEST(StepProgram, the_first_product_with_a_bias_adds_a_smaller_workspace) {
  Trace t;
  const auto a = t.allocate(4 << 20);
  t.begin_step();
  for (const bool bias : {false, true, true}) t.op(product(bias), {a, a, a}, {a});
  t.end_step();
  EXPECT_EQ(allocations_of(make_program(t.trace, h200(), software()), Category::workspaces),
            (std::vector<std::int64_t>{32 << 20, 1 << 20}));
}

TEST(StepProgram, workspaces_are_smaller_before_hopper) {
  Trace t;
  const auto a = t.allocate(4 << 20);
  t.op(product(false), {a, a}, {a});
  const StepProgram program = make_program(t.trace, load_gpu("nvidia-a100-sxm4-80gb"), software());
  EXPECT_EQ(allocations_of(program, Category::workspaces), (std::vector<std::int64_t>{8519680}));
}

TEST(StepProgram, names_ops_without_a_rule) {
  Trace t;
  const auto a = t.allocate(4 << 20);
  t.op(add(1024), {a, a}, {a});
  t.op(UnknownOp{"fft", 1 << 20, 1 << 20}, {a}, {a});
  const StepProgram program = make_program(t.trace, h200(), software());
  ASSERT_EQ(program.approximated.size(), 1u);
  EXPECT_EQ(name_of(t.trace.ops[program.approximated[0]]), "fft");
}

TEST(StepProgram, says_in_a_sentence_which_op_of_the_step_a_gpu_cannot_run) {
  for (const char* name : {"nvidia-v100-sxm2-16gb", "nvidia-t4"}) {
    const Gpu gpu = load_gpu(name);
    for (const AttentionBackend backend :
         {AttentionBackend::flash, AttentionBackend::cudnn, AttentionBackend::efficient}) {
      Trace t;
      t.begin_step();
      const auto q = t.allocate(1 << 20), out = t.allocate(1 << 20);
      t.op(Attention{.backend = backend,
                     .type = DType::bf16,
                     .batch = 4,
                     .heads = 4,
                     .kv_heads = 4,
                     .seq_q = 128,
                     .seq_k = 128,
                     .head_dim = 64},
           {q, q, q}, {out});
      t.end_step();
      try {
        static_cast<void>(make_program(t.trace, gpu, software()));
        ADD_FAILURE() << name;
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("compute capability 8.0"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("fp16"), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline
