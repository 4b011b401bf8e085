#include "fit/cases/call_cases.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;
using K = MemoryBoundKernel;

constexpr std::array kOnlyInCalls{K::power,           K::scan,           K::scan_columns,
                                  K::sort_block,      K::sort_exchange,  K::select_block,
                                  K::broadcast_mixed, K::unrolled_mixed, K::nll_loss};

struct Call {
  Op op;
  std::string shape{};  ///< equal ones are on one side of the split
};

std::int64_t number(const json& row, std::size_t i) { return std::stoll(row["case"].at(i).get<std::string>()); }
DType type_named(const std::string& name) { return name == "bfloat16" ? DType::bf16 : DType::fp32; }

Call power(std::int64_t rows, std::int64_t cols, const std::string& type, std::uint8_t inputs) {
  const DType t = type_named(type);
  return {Pointwise{.function = PointwiseFunction::power,
                    .rows = rows,
                    .cols = cols,
                    .inputs = {t, t, t},
                    .input_count = inputs,
                    .output = t},
          fmt::format("power {} {} {}", rows, cols, type)};
}

/// bf16 plus fp32 of fewer elements: a row of it, a table repeated over the batch, a mask over batch and heads.
std::optional<Call> mixed_addition(const json& row) {
  const std::string kind = row["case"].at(0);
  const std::int64_t a = number(row, 1), b = number(row, 2), c = number(row, 3);
  Pointwise op{.inputs = {DType::bf16, DType::fp32, DType::fp32}, .input_count = 2, .walk = Walk::broadcast};
  if (kind == "bcast_mixed" || kind == "mask_mixed") op.rows = a * b * c, op.cols = c;
  else if (kind == "row_mixed" || kind == "pos_mixed") op.rows = a * b, op.cols = c;
  else return std::nullopt;
  if (kind == "row_mixed") op.walk = Walk::broadcast_row;
  if (a == 1 && (kind == "bcast_mixed" || kind == "pos_mixed")) op.walk = Walk::contiguous;  // nothing is repeated
  return Call{op, fmt::format("add {} {} {} {}", kind, a, b, c)};
}

std::optional<Call> call_of(const json& row) {
  const std::string op = row["op"];
  const auto text = [&](std::size_t i) { return row["case"].at(i).get<std::string>(); };
  // Squares, cubes and roots have kernels of their own.
  if (op == "pow" && (text(0) == "1.5" || text(0) == "4")) return power(number(row, 1), number(row, 2), text(3), 1);
  if (op == "pow_tt") return power(number(row, 0), number(row, 1), text(2), 2);
  if (op == "add") return mixed_addition(row);
  if (op == "cumsum")
    return Call{Reduction{ReductionKind::scan_cols, type_named(text(2)), number(row, 0), number(row, 1)},
                fmt::format("scan {} {} {}", text(0), text(1), text(2))};
  if (op == "cumsum_i64")
    return Call{Reduction{ReductionKind::scan_rows, DType::int64, number(row, 0), number(row, 1)},
                fmt::format("scan {} {} int64", text(0), text(1))};
  if (op == "argsort_i64")
    return Call{Sort{.type = DType::int64, .rows = 1, .cols = number(row, 0)}, fmt::format("argsort {}", text(0))};
  if (op == "sort" || op == "topk2" || op == "topk50")
    return Call{Sort{.rows = number(row, 0),
                     .cols = number(row, 1),
                     .kept = op == "topk2"    ? 2
                             : op == "topk50" ? 50
                                              : 0},
                fmt::format("sort {} {}", text(0), text(1))};
  if (op == "nll")
    return Call{NllLoss{.rows = number(row, 0), .classes = number(row, 1)}, fmt::format("nll {} {}", text(0), text(1))};
  return std::nullopt;
}

bool names_launch(const std::string& name, const KernelLaunch& launch, K kernel) {
  switch (kernel) {
    case K::power: return name.find("pow_tensor") != name.npos;
    case K::broadcast_mixed:
      return name.find("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<") == 0;
    case K::unrolled_mixed: return name.find("unrolled_elementwise_kernel") != name.npos;
    default: return name.find(launch.name) != name.npos;
  }
}

/// Where a call's observation stands.
struct Origin {
  bool held_out = false;
  std::uint64_t shape = 0, line = 0;
};

/// Once after a sweep of the L2 (`sets` 0), or over the same operands again and again (1).
void add_kernels(const Call& call, const json& kernels, const Origin& origin, int sets, const LoweredOp& lowered,
                 const L2Spec& l2, Collected& collected) {
  constexpr int kMachine = 0;  // all calls ran on one board, whose factor nothing would tell apart from the law
  const auto residency =
      repeated_residency(lowered.launches, rotating_operands(call.op), sets, l2, partly_used_bytes(call.op));
  std::size_t next = 0;
  for (std::size_t i = 0; i < lowered.launches.size(); ++i) {
    const KernelLaunch& launch = lowered.launches[i];
    const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
    const K kernel = work != nullptr ? static_cast<K>(work->kernel_class) : K::count_;
    if (std::find(kOnlyInCalls.begin(), kOnlyInCalls.end(), kernel) == kOnlyInCalls.end()) continue;
    std::size_t at = next;
    while (at < kernels.size() && !names_launch(kernels[at]["name"], launch, kernel)) ++at;
    if (at == kernels.size()) continue;
    next = at + 1;
    auto& [cases, timed] = collected[std::string(name_of(kernel))];
    const double us = kernels[at][sets == 0 ? "us_cold" : "us_warm"];
    cases.push_back(
        {us * 1e-6, kMachine, origin.held_out, origin.shape, hash_of(sets == 0 ? "cold" : "warm", origin.line)});
    timed.push_back({launch, residency.empty() ? std::vector<double>{} : residency[i]});
  }
}

}  // namespace

void add_calls(const Measurements& measurements, const Laboratory& laboratory, const Lowering& lowering,
               Collected& collected) {
  for (const MeasuredFile* file : measurements.index.of_kind("calls")) {
    if (file->machine.hardware != "nvidia-h200-sxm-141gb") continue;
    for_each_row(*file, [&](const json& row) {
      const std::optional<Call> call = call_of(row);
      if (!call) return;
      const LoweredOp lowered = lowering.lower(call->op);
      const std::uint64_t shape = hash_of(call->shape);
      const bool held_out =
          file->split == Split::held_out || (file->split == Split::by_shape && held_out_by_shape(shape));
      for (const int sets : {0, 1})
        add_kernels(*call, row["kernels"], {held_out, shape, hash_of(row.dump())}, sets, lowered, laboratory.gpu.l2,
                    collected);
    });
  }
}

}  // namespace ridgeline::fit
