// The operations of a steady step against those that profilers recorded: shapes of the matrix products, and the number
// of launches of everything else.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/program/step_program.h"
#include "tests/support/measured_runs.h"

namespace ridgeline {
namespace {

using Product = std::array<std::int64_t, 4>;  ///< batch, m, n, k
using Products = std::map<Product, int>;

/// Products of a recorded step that launched a kernel, from the recorded sizes of their operands.
Products recorded_products(const std::string& path) {
  const nlohmann::json trace = nlohmann::json::parse(testing::unzipped(path));
  std::set<std::int64_t> launched;  // ids of operations with a kernel
  for (const auto& event : trace["traceEvents"])
    if (event.value("cat", "") == "kernel") launched.insert(event["args"]["External id"].get<std::int64_t>());
  Products products;
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "cpu_op") continue;
    const std::string name = event["name"];
    if (name != "aten::mm" && name != "aten::addmm" && name != "aten::bmm") continue;
    const auto& dims = event["args"]["Input Dims"];
    const std::size_t first = name == "aten::addmm" ? 1 : 0;  // after the bias
    const auto a = dims[first].get<std::vector<std::int64_t>>(), b = dims[first + 1].get<std::vector<std::int64_t>>();
    if (!launched.contains(event["args"]["External id"].get<std::int64_t>())) continue;
    ++products[{name == "aten::bmm" ? a[0] : 1, a[a.size() - 2], b.back(), a.back()}];
  }
  return products;
}

Products generated_products(const OpTrace& trace) {
  Products products;
  const StepRange step = trace.steps.back();
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const auto* op = std::get_if<Matmul>(&trace.ops[trace.calls[trace.records[i].index].op]);
    if (op != nullptr) ++products[{op->batch, op->m, op->n, op->k}];
  }
  return products;
}

TEST(RecordedOperations, Matrix_products_of_a_step_have_the_recorded_shapes) {
  int traces = 0;
  for (const testing::MeasuredRun& run : testing::measured_runs()) {
    const auto path = run.recorded("traces", ".json.gz");
    if (!path) continue;
    ++traces;
    EXPECT_EQ(recorded_products(*path), generated_products(run.trace())) << run.name;
  }
  EXPECT_EQ(traces, 12);
}

/// Kernels that a matrix library launches for a product, and memsets (which many operations launch).
bool belongs_to_products(const std::string& kernel) {
  static const std::array kParts{"nvjet", "cutlass::Kernel", "cutlass_80",  "xmma_gemm", "sgemm",      "gemm",
                                 "gemv",  "splitKreduce",    "scal_kernel", "cublasLt",  "dot_kernel", "reduce_1Block",
                                 "Memset"};
  if (kernel.find("fmha") != std::string::npos || kernel.find("sdpa") != std::string::npos) return false;
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](const char* part) { return kernel.find(part) != std::string::npos; });
}

TEST(RecordedOperations, Launches_outside_matrix_products_are_as_many_as_the_profiler_counted) {
  int runs = 0;
  for (const testing::MeasuredRun& run : testing::measured_runs()) {
    ++runs;
    std::int64_t measured = 0, predicted = 0;
    for (const auto& kernel : run.row["profiled"]["by_kernel"])
      if (!belongs_to_products(kernel[0])) measured += kernel[1].get<std::int64_t>();
    const OpTrace trace = run.trace();
    const StepProgram program = make_program(trace, run.scenario.gpu, run.scenario.software);
    for (const Action& action : program.steady_step()) {
      if (action.kind != Action::Kind::launch) continue;
      const bool product = std::holds_alternative<Matmul>(trace.ops[trace.calls[action.call].op]);
      if (!product && program.launches[action.index].name.find("Memset") == std::string::npos) ++predicted;
    }
    EXPECT_EQ(measured, predicted) << run.name;
  }
  EXPECT_GE(runs, 50);
}

}  // namespace
}  // namespace ridgeline
