// Every point-wise function, by its row: what a recorded call becomes, op trace and kernel case, kernels and their
// names in profiles, torch.compile's node, and gradients, whose formulas are checked by differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/report/timeline/pytorch_names.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/trace/aten/aten_call_of.h"
#include "sim/trace/aten/aten_map.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/workload/aten/formula.h"
#include "sim/workload/compile/decompose.h"
#include "sim/workload/kernel_case.h"
#include "sim/workload/op_fields.h"
#include "sim/workload/pointwise_functions.h"
#include "tests/support/formula.h"

namespace ridgeline {
namespace {

using eager::aten::Derivative;
using Term = eager::aten::Formula;

/// On so many tensors of 48 x 80 numbers; casts are down.
Pointwise on_tensors(const PointwiseRow& row, int tensors) {
  Pointwise op{.function = pointwise_function(row.key), .rows = 48, .cols = 80, .input_count = std::uint8_t(tensors)};
  if (row.masks) op.inputs[tensors - 1] = DType::boolean;
  if (op.function == PointwiseFunction::cast) op.output = DType::bf16;
  return op;
}
Pointwise on_tensors(const PointwiseRow& row) { return on_tensors(row, row.tensors); }

template <typename Check>
void for_each_row(const Check& check) {
  std::set<std::string_view> keys;
  for (const PointwiseRow& row : pointwise_rows()) {
    SCOPED_TRACE(row.key);
    EXPECT_TRUE(keys.insert(row.key).second) << "two rows of one key";
    check(row);
  }
}

TEST(PointwiseFunctions, AreWrittenAndReadInAnOpTrace) {
  for_each_row([](const PointwiseRow& row) {
    OpTrace trace;
    trace.ops = {on_tensors(row)};
    trace.calls = {Call{}};
    trace.records = {{Record::Kind::op}};
    trace.steps = {{0, 1}};
    const std::string text = trace::op_trace_lines({}, trace);
    EXPECT_NE(text.find("\"function\":\"" + std::string(row.key) + "\""), text.npos) << text;
    EXPECT_EQ(trace::parse_op_trace(text, "memory").trace.ops, trace.ops);
  });
}

TEST(PointwiseFunctions, OfPlainTensorsAreKernelCases) {
  for_each_row([](const PointwiseRow& row) {
    if (row.tensors < 1 || row.key == "relu") return;  // the case "relu" is of images
    nlohmann::json line{{"op", row.key}, {"params", {{"rows", 48}, {"cols", 80}}}};
    if (row.key == "scale") line["params"] = {{"elements", 48 * 80}};
    const auto op = std::get<Pointwise>(kernel_case_from(line).op);
    EXPECT_EQ(op.function, pointwise_function(row.key));
    EXPECT_EQ(op.input_count, row.tensors);
    EXPECT_EQ(op.elements(), 48 * 80);
    EXPECT_EQ(row.masks, op.inputs[op.input_count - 1] == DType::boolean);
  });
}

TEST(PointwiseFunctions, AreReadFromTheCallTheyAreWrittenAs) {
  for_each_row([](const PointwiseRow& row) {
    if (row.tensors < 1) return;
    EXPECT_TRUE(trace::is_mapped(row.call.name())) << row.call.name();
    // With two tensors a quotient runs as long as a product, and is read as one.
    const Pointwise op = on_tensors(row, row.key == "divide" ? 1 : row.tensors);
    const auto read = trace::map_aten(trace::aten_call_of(op), {});
    ASSERT_TRUE(read && read->size() == 1);
    if (op.function == PointwiseFunction::cast) return;  // no call says of what type its operand is
    EXPECT_EQ(read->front().op, Op(op)) << shape_of(read->front().op);
  });
}

TEST(PointwiseFunctions, HaveKernelsWithTheirNamesInProfiles) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  std::set<std::string_view> laws;
  for (int i = 0; i < static_cast<int>(MemoryBoundKernel::count_); ++i)
    laws.insert(name_of(static_cast<MemoryBoundKernel>(i)));
  for_each_row([&](const PointwiseRow& row) {
    EXPECT_TRUE(row.kernel.law.empty() || laws.contains(row.kernel.law)) << row.kernel.law;
    EXPECT_TRUE(row.kernel.law_of_one.empty() || laws.contains(row.kernel.law_of_one)) << row.kernel.law_of_one;
    const Op op = on_tensors(row);
    const LoweredOp lowered = lower(op, gpu, {});
    ASSERT_FALSE(lowered.launches.empty());
    EXPECT_FALSE(lowered.approximated);
    std::vector<const KernelLaunch*> launches;
    for (const KernelLaunch& launch : lowered.launches) launches.push_back(&launch);
    const std::vector<std::string> names = kernel_names(op, trace::aten_call_of(op), launches);
    ASSERT_EQ(names.size(), launches.size());
    for (const std::string& name : names) EXPECT_FALSE(name.empty());
    if (!row.kernel.law.empty()) {
      EXPECT_EQ(lowered.launches.back().name, row.kernel.name);
    }
    EXPECT_TRUE(autograd_node(HostClass::pointwise_backward, &op).ends_with("Backward0"));
  });
}

TEST(PointwiseFunctions, AreNodesOfACompiledGraph) {
  for_each_row([](const PointwiseRow& row) {
    if (row.key == "complex_mul") return;  // no code is generated for it
    OpTrace trace;
    trace.ops = {on_tensors(row)};
    compile::Graph graph;
    graph.values.resize(static_cast<std::size_t>(row.tensors) + 1);
    std::vector<compile::Use> inputs;
    for (int i = 0; i < row.tensors; ++i) inputs.push_back({static_cast<compile::ValueId>(i), 48 * 80 * 4});
    compile::Decomposer(trace, graph)
        .add({}, inputs, {{static_cast<compile::ValueId>(row.tensors), 48 * 80 * 4}}, false, false);
    ASSERT_EQ(graph.nodes.size(), 1u);
    EXPECT_EQ(graph.nodes.front().kind, compile::Node::Kind::pointwise);
    EXPECT_EQ(graph.nodes.front().name, row.code.name);
    EXPECT_GE(graph.nodes.front().arithmetic, 1);
  });
}

/// Kernels that a formula names and tensors that it reads, in the order in which they run.
void collect(const Term& term, std::vector<PointwiseFunction>& kernels) {
  for (std::size_t i = term.arguments.size(); i-- > 0;) collect(term.arguments[i], kernels);
  if (term.kind == Term::Kind::kernel) kernels.push_back(term.function);
}

TEST(PointwiseFunctions, RunTheKernelsOfTheirGradient) {
  for_each_row([](const PointwiseRow& row) {
    if (row.gradient.empty() || row.masks) return;
    const Derivative derivative(row.gradient);
    std::vector<PointwiseFunction> expected;
    const auto edges = std::min<std::size_t>(derivative.formulas.size(), static_cast<std::size_t>(row.tensors));
    for (std::size_t i = edges; i-- > 0;) collect(derivative.formulas[i], expected);
    testing_support::Formula f;
    const auto &x = f.trained("x", {48, 80}), &y = f.trained("y", {48, 80});
    f.of([&] { return eager::aten::apply(f.eager, pointwise_function(row.key), x, row.tensors > 1 ? &y : nullptr); });
    std::vector<PointwiseFunction> run;
    for (const Call& call : f.trace.calls)
      if (const auto* op = std::get_if<Pointwise>(&f.trace.ops[call.op]);
          op != nullptr && call.phase == Phase::backward)
        run.push_back(op->function);
    EXPECT_EQ(run, expected);
  });
}

/// Functions whose kernel computes one formula, with the defaults of torch.nn beside the tensors.
double standard_normal(double x) { return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))); }
double of_tanh_gelu(double x) { return std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x); }
double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }
const std::map<std::string_view, std::function<double(double, double)>>& meanings() {
  using std::exp, std::tanh;
  static const std::map<std::string_view, std::function<double(double, double)>> all{
      {"add", [](double a, double b) { return a + b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"gelu", [](double x, double) { return x * standard_normal(x); }},
      {"gelu_backward",
       [](double g, double x) { return g * (standard_normal(x) + x * exp(-x * x / 2.0) / std::sqrt(2.0 * M_PI)); }},
      {"gelu_tanh", [](double x, double) { return 0.5 * x * (1.0 + tanh(of_tanh_gelu(x))); }},
      {"gelu_tanh_backward",
       [](double g, double x) {
         const double t = tanh(of_tanh_gelu(x)), slope = std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
         return g * 0.5 * (1.0 + t + x * (1.0 - t * t) * slope);
       }},
      {"silu", [](double x, double) { return x * sigmoid_of(x); }},
      {"silu_backward", [](double g, double x) { return g * sigmoid_of(x) * (1.0 + x * (1.0 - sigmoid_of(x))); }},
      {"relu", [](double x, double) { return std::max(x, 0.0); }},
      {"relu_backward", [](double g, double y) { return y > 0.0 ? g : 0.0; }},
      {"tanh", [](double x, double) { return tanh(x); }},
      {"tanh_backward", [](double g, double y) { return g * (1.0 - y * y); }},
      {"softplus", [](double x, double) { return std::log1p(exp(x)); }},
      {"softplus_backward", [](double g, double x) { return g * exp(x) / (exp(x) + 1.0); }},
      {"mish", [](double x, double) { return x * tanh(std::log1p(exp(x))); }},
      {"mish_backward",
       [](double g, double x) {
         const double t = tanh(std::log1p(exp(x)));
         return g * (t + x * sigmoid_of(x) * (1.0 - t * t));
       }},
      {"softshrink", [](double x, double) { return x > 0.5    ? x - 0.5
                                                   : x < -0.5 ? x + 0.5
                                                              : 0.0; }},
      {"softshrink_backward", [](double g, double x) { return std::abs(x) > 0.5 ? g : 0.0; }}};
  return all;
}
double value_of(const Term& term, const std::array<double, 4>& tensors) {
  if (term.kind == Term::Kind::read) return tensors[static_cast<std::size_t>(term.read)];
  const double first = value_of(term.arguments.front(), tensors), last = value_of(term.arguments.back(), tensors);
  return meanings().at(row_of(term.function).key)(first, last);
}

TEST(PointwiseFunctions, GradientsAreTheSlopesOfTheirFunctions) {
  int checked = 0;
  for_each_row([&](const PointwiseRow& row) {
    const auto found = meanings().find(row.key);
    if (row.gradient.empty() || found == meanings().end()) return;
    const Derivative derivative(row.gradient);
    for (const double x : {-2.3, -0.7, 0.3, 1.9}) {
      constexpr double kOther = 0.6, kGradient = 1.7, kStep = 1e-6;
      const auto& f = found->second;
      const std::array<double, 4> tensors{kOther, x, f(x, kOther), kGradient};
      const double slopes[]{(f(x + kStep, kOther) - f(x - kStep, kOther)) / (2.0 * kStep),
                            (f(x, kOther + kStep) - f(x, kOther - kStep)) / (2.0 * kStep)};
      for (std::size_t i = 0; i < derivative.formulas.size(); ++i, ++checked)
        EXPECT_NEAR(value_of(derivative.formulas[i], tensors), kGradient * slopes[i], 1e-6) << x << " of tensor " << i;
    }
  });
  EXPECT_GE(checked, 40);
}

TEST(PointwiseFunctions, NamesOfKernelsAndCallsThatAreMissingAreFound) {
  EXPECT_THROW(pointwise_function("gelo"), std::out_of_range);
  EXPECT_THROW(Derivative("gelo(grad)"), std::out_of_range);
  EXPECT_THROW(Derivative("gelu_backward(grad, input)"), std::invalid_argument);
  EXPECT_THROW(Derivative("gelu_backward(grad, self"), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline
