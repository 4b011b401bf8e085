#include "sim/study/validation/generated_kernels.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using K = MemoryBoundKernel;

/// A generated kernel as its name, its numbers and its launch tell it.
struct Generated {
  std::string name;
  std::string_view heuristic{};  ///< pointwise, persistent_reduction or reduction
  std::int64_t across = 0;       ///< elements, or rows of a reduction
  std::int64_t along = 1;        ///< elements of a reduced row
  double read = 0, written = 0;  ///< bytes
  bool random = false, scattered = false;
  DType type = DType::fp32;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  int threads = 128, registers = 32;
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Kernels of which an operand is read in part: how much their operands' sizes do not say.
bool reads_in_part(std::string_view name) {
  return (has(name, "embedding") && !has(name, "embedding_dense_backward")) || has(name, "slice") ||
         has(name, "nll_loss") || has(name, "gather") || has(name, "index");
}

/// Instructions an element beyond those that move it, as sim/workload/compile/decompose.cpp counts them. A sum's name
/// has all that came before it, most of which it reads.
double arithmetic_of(const Generated& kernel, K kind) {
  if (kind == K::triton_columns) return 1.0;
  constexpr std::array<std::pair<std::string_view, double>, 5> kCosts{
      {{"gelu_backward", 12.0}, {"gelu", 42.0}, {"tanh", 30.0}, {"silu", 12.0}, {"layer_norm", 4.0}}};
  double result = kernel.random ? 150.0 : 1.0;
  for (const auto& [part, cost] : kCosts)
    if (has(kernel.name, part)) result += cost;
  if (has(kernel.name, "softmax")) result += kind == K::triton_long_rows ? 36.0 : 12.0;
  return result;
}

K class_of(const Generated& kernel) {
  constexpr std::int64_t kRowsOfBlock = 16;
  const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  if (kernel.heuristic == "pointwise") return kernel.scattered ? K::triton_gather : K::triton_pointwise;
  if (kernel.heuristic == "persistent_reduction")
    return kernel.across == kRowsOfBlock * blocks ? K::triton_row_blocks : K::triton_rows;
  return has(kernel.name, "softmax") || kernel.along > 1024 ? K::triton_long_rows : K::triton_columns;
}

KernelLaunch launch_of(const Generated& kernel) {
  const K kind = class_of(kernel);
  const auto elements = static_cast<double>(kernel.across * kernel.along);
  const double threads = static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2] * kernel.threads);
  const double work = 1.0 + arithmetic_of(kernel, kind) / constants_of(kind).instructions_full;
  double turns = 1.0;
  switch (kind) {
    case K::triton_row_blocks: turns = elements / threads; break;
    case K::triton_long_rows: turns = static_cast<double>(ceil_div(kernel.along, 2048)); break;
    case K::triton_columns: turns = static_cast<double>(ceil_div(kernel.along, 16)); break;
    default: turns = elements / threads * work; break;
  }
  KernelLaunch launch = memory_bound_launch(kind, kernel.name, TimeClass::elementwise, kernel.type,
                                            {kernel.grid[0], kernel.grid[1], kernel.threads, kernel.registers, 0},
                                            {.elements = elements * work, .iterations = turns});
  launch.grid[2] = kernel.grid[2];
  launch.reads = {{0, kernel.read}};
  launch.writes = {{1, kernel.written}};
  return launch;
}

std::array<std::int64_t, 3> grid_of(const json& grid) { return {grid[0], grid[1], grid[2]}; }

/// Functions of [rows, cols] (tools/measure_calls.py) that became one kernel.
bool describe(const json& row, Generated& kernel) {
  const std::string op = row["op"];
  if (op.rfind("fused_", 0) != 0 || row["kernels"].size() != 1) return false;
  const std::int64_t rows = std::stoll(row["case"][0].get<std::string>()),
                     cols = std::stoll(row["case"][1].get<std::string>());
  const bool half = row["case"][2] == "bfloat16";
  const double tensor = static_cast<double>(rows * cols) * (half ? 2.0 : 4.0);
  const json& one = row["kernels"][0];
  kernel.name = one["name"];
  kernel.type = half ? DType::bf16 : DType::fp32;
  kernel.read = kernel.written = tensor;
  kernel.across = rows * cols;
  kernel.heuristic = "pointwise";
  if (op == "fused_add" || op == "fused_transposed") kernel.read += tensor;
  kernel.scattered = op == "fused_transposed";
  if (op == "fused_softmax" || op == "fused_norm") {
    kernel.across = rows, kernel.along = cols;
    kernel.heuristic = has(kernel.name, "_per_") ? "persistent_reduction" : "reduction";
  } else if (op == "fused_columns") {
    return false;  // two kernels but for the smallest
  }
  kernel.grid = grid_of(one["grid"]);
  kernel.threads = one["block"][0];
  kernel.registers = one["regs"];
  return true;
}

FusedKernel::Shape fused_shape_of(K kind) {
  switch (kind) {
    case K::triton_rows:
    case K::triton_row_blocks: return FusedKernel::Shape::rows;
    case K::triton_long_rows: return FusedKernel::Shape::long_rows;
    case K::triton_columns: return FusedKernel::Shape::columns;
    default: return FusedKernel::Shape::pointwise;
  }
}

GeneratedKernel measured_as(const Generated& kernel) {
  FusedKernel op;
  op.name = kernel.name;
  op.shape = fused_shape_of(class_of(kernel));
  op.type = kernel.type;
  return {.op = std::move(op), .launch = launch_of(kernel)};
}

}  // namespace

std::vector<GeneratedKernel> generated_of_steps(const MeasuredFile& file) {
  constexpr double kKept = 20e6;
  std::vector<GeneratedKernel> result;
  for_each_row(file, [&](const json& row) {
    Generated kernel{.name = row["name"], .read = row["rd"], .written = row["wr"], .random = row["random"]};
    const std::string heuristic = row["heuristic"];
    const auto& numbers = row["nums"];
    if (reads_in_part(kernel.name) || kernel.read <= 0.0) return;
    kernel.heuristic = heuristic;
    const bool reduces = heuristic != "pointwise";
    if (numbers.size() < (reduces ? 2u : 1u)) return;
    kernel.across = numbers[numbers.size() - (reduces ? 2 : 1)];
    if (reduces) kernel.along = numbers[numbers.size() - 1];
    kernel.grid = grid_of(row["grid"]);
    kernel.scattered = kernel.grid[1] > 1;
    kernel.threads = row["thr"];
    kernel.registers = row["regs"];
    GeneratedKernel& added = result.emplace_back(measured_as(kernel));
    added.residency = {kernel.read <= kKept ? 1.0 : 0.0, 0.0};
    added.time = Seconds{row["us"].get<double>() * 1e-6};
    added.shape = hash_of(row["cfg"].get<std::string>());
    added.held_out = held_out_by_shape(added.shape);
    added.row = hash_of(row.dump());
  });
  return result;
}

std::vector<GeneratedKernel> generated_of_calls(const MeasuredFile& file, const Gpu& gpu) {
  std::vector<GeneratedKernel> result;
  for_each_row(file, [&](const json& row) {
    Generated kernel;
    if (!describe(row, kernel)) return;
    GeneratedKernel added = measured_as(kernel);
    const std::vector<KernelLaunch> launches{added.launch};
    const std::uint64_t line = hash_of(row.dump());
    added.shape = hash_of(row["op"].get<std::string>() + row["case"].dump());
    added.held_out = file.split == Split::held_out || (file.split == Split::by_shape && held_out_by_shape(added.shape));
    for (const bool cold : {true, false}) {
      const auto residency = repeated_residency(launches, 1, cold ? 0 : 1, gpu.l2);
      added.residency = residency.empty() ? std::vector<double>{} : residency.front();
      added.time = Seconds{row["kernels"][0][cold ? "us_cold" : "us_warm"].get<double>() * 1e-6};
      added.row = hash_of(cold ? "cold" : "warm", line);
      result.push_back(added);
    }
  });
  return result;
}

}  // namespace ridgeline
