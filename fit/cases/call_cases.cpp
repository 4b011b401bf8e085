#include "fit/cases/call_cases.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "fit/cases/call_ops.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/recorded_calls.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;
using K = MemoryBoundKernel;

/// Classes that no other file has.
constexpr std::array kOnlyInCalls{K::power,
                                  K::scan,
                                  K::scan_columns,
                                  K::sort_block,
                                  K::sort_exchange,
                                  K::select_block,
                                  K::broadcast_mixed,
                                  K::unrolled_mixed,
                                  K::nll_loss,
                                  K::tanh,
                                  K::dropout_backward,
                                  K::concatenate_strided,
                                  K::index_select,
                                  K::max_pool_backward,
                                  K::update_blocks_two,
                                  K::update_blocks_one,
                                  K::update_two,
                                  K::update_one,
                                  K::expand_codes,
                                  K::quantize_rows,
                                  K::scale_sums};
/// Those of which other files have too few sizes. Of these the calls over the same operands alone are read: a sweep of
/// the L2 takes the kernel's code with it and leaves the page tables, sets of operands in turn do the reverse.
constexpr std::array kAlsoInCalls{K::scale,         K::tanh,         K::dropout_backward, K::masked_fill,
                                  K::gelu_backward, K::strided_copy, K::broadcast_binary};

/// Those that calls with their dispatcher's records show (`aten`): whatever the rules of sim/trace make of them.
constexpr std::array kInRecords{K::special,
                                K::modulo,
                                K::arctangent,
                                K::strided_copy,
                                K::concatenate_unaligned,
                                K::flip,
                                K::search,
                                K::sort_segment,
                                K::index_pairs,
                                K::index_copy,
                                K::gather_elements,
                                K::scatter_value,
                                K::softmax_spatial,
                                K::softmax_backward_spatial,
                                K::scan,
                                K::scan_columns,
                                K::random,
                                K::triangle,
                                K::reduce_rows_places,
                                K::reduce_columns_places,
                                K::reduce_all_places,
                                K::reduce_rows_moments,
                                K::reduce_columns_moments,
                                K::reduce_all_moments,
                                K::reduce_groups,
                                K::scan_places,
                                K::scan_columns_places,
                                K::index_add,
                                K::index_elements,
                                K::scatter_add,
                                K::index_few,
                                K::index_add_few,
                                K::interpolate_linear,
                                K::interpolate_cubic,
                                K::interpolate_linear_backward,
                                K::interpolate_cubic_backward,
                                K::pad,
                                K::pad_backward,
                                K::grid_sample,
                                K::grid_sample_backward,
                                K::unfold,
                                K::fold,
                                K::select_marked,
                                K::write_places};

template <class Kernels>
bool holds(const Kernels& kernels, K kernel) {
  return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
}

bool same_grid(const KernelLaunch& launch, const json& kernel) {
  const auto grid = kernel.find("grid");
  if (grid == kernel.end() || grid->is_null()) return true;
  return launch.blocks() == (*grid)[0].get<double>() * (*grid)[1].get<double>() * (*grid)[2].get<double>();
}

/// Where a call's observation stands.
struct Origin {
  int machine = 0;
  bool held_out = false;
  std::uint64_t shape = 0, line = 0;
};

/// Once after a sweep of the L2 (`sets` 0), or over the same operands again and again (1).
void add_kernels(const Call& call, const json& kernels, const Origin& origin, int sets, const LoweredOp& lowered,
                 const Gpu& gpu, Collected& collected) {
  const auto residency =
      repeated_residency(lowered.launches, rotating_operands(call.op), sets, gpu.l2, partly_used_bytes(call.op));
  std::size_t next = 0;
  for (std::size_t i = 0; i < lowered.launches.size(); ++i) {
    const KernelLaunch& launch = lowered.launches[i];
    const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
    const K kernel = work != nullptr ? static_cast<K>(work->kernel_class) : K::count_;
    if (!holds(kOnlyInCalls, kernel) && !(sets > 0 && holds(kAlsoInCalls, kernel))) continue;
    std::size_t at = next;
    while (at < kernels.size() && !names_launch(kernels[at]["name"].get<std::string>(), launch)) ++at;
    if (at == kernels.size()) continue;
    next = at + 1;
    if (!same_grid(launch, kernels[at])) continue;
    auto& [cases, timed] = collected[std::string(name_of(kernel))];
    const double us = kernels[at][sets == 0 ? "us_cold" : "us_warm"];
    cases.push_back(
        {us * 1e-6, origin.machine, origin.held_out, origin.shape, hash_of(sets == 0 ? "cold" : "warm", origin.line)});
    timed.push_back(
        {.launch = launch, .residency = residency.empty() ? std::vector<double>{} : residency[i], .gpu = &gpu});
  }
}

/// Calls of which every kernel has its launch. What later operations of a call read was touched shortly before: of
/// those the calls without a sweep are read.
void add_recorded(const json& row, const Origin& origin, const Lowering& lowering, const Gpu& gpu,
                  Collected& collected) {
  struct Placed {
    KernelLaunch launch;
    std::vector<double> cold, warm;
    bool first;
  };
  std::vector<Placed> placed;
  const std::vector<Op> ops = recorded_ops(row);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const LoweredOp lowered = lowering.lower(ops[i]);
    const auto residency = [&](int sets) {
      return repeated_residency(lowered.launches, rotating_operands(ops[i]), sets, gpu.l2, partly_used_bytes(ops[i]));
    };
    const auto cold = residency(0), warm = residency(1);
    for (std::size_t k = 0; k < lowered.launches.size(); ++k)
      placed.push_back({lowered.launches[k], cold.empty() ? std::vector<double>{} : cold[k],
                        warm.empty() ? std::vector<double>{} : warm[k], i == 0});
  }
  const json& kernels = row["kernels"];
  if (placed.size() != kernels.size()) return;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto* work = std::get_if<MemoryBoundWork>(&placed[i].launch.work);
    const K kernel = work != nullptr ? static_cast<K>(work->kernel_class) : K::count_;
    if (!holds(kInRecords, kernel) || !names_launch(kernels[i]["name"].get<std::string>(), placed[i].launch) ||
        !same_grid(placed[i].launch, kernels[i]))
      continue;
    auto& [cases, timed] = collected[std::string(name_of(kernel))];
    for (const bool cold : {true, false}) {
      if (cold && !placed[i].first) continue;
      cases.push_back({kernels[i][cold ? "us_cold" : "us_warm"].get<double>() * 1e-6, origin.machine, origin.held_out,
                       origin.shape, hash_of(cold ? "cold" : "warm", origin.line + i)});
      timed.push_back({.launch = placed[i].launch, .residency = cold ? placed[i].cold : placed[i].warm, .gpu = &gpu});
    }
  }
}

}  // namespace

void add_calls(const Measurements& measurements, const Laboratory& laboratory, Collected& collected) {
  for (const MeasuredFile* file : measurements.index.of_kind("calls")) {
    const bool here = file->machine.hardware == "nvidia-h200-sxm-141gb";
    const Gpu& gpu = here ? laboratory.gpu : laboratory.other_gpu;
    const Lowering lowering(gpu, laboratory.software);
    // Boards of one type are alike; the other's factor is what its description does not say.
    const int machine = here ? 0 : measurements.machine(file->machine.name);
    for_each_row(*file, [&](const json& row) {
      if (row.contains("aten")) {
        const std::uint64_t shape = hash_of(row["op"].get<std::string>() + row["case"].dump());
        const bool apart =
            file->split == Split::held_out || (file->split == Split::by_shape && held_out_by_shape(shape));
        return add_recorded(row, {machine, apart, shape, hash_of(row["aten"].dump())}, lowering, gpu, collected);
      }
      const std::optional<Call> call = call_of(row);
      if (!call) return;
      const LoweredOp lowered = lowering.lower(call->op);
      const std::uint64_t shape = hash_of(call->shape);
      const bool held_out =
          file->split == Split::held_out || (file->split == Split::by_shape && held_out_by_shape(shape));
      for (const int sets : {0, 1})
        add_kernels(*call, row["kernels"], {machine, held_out, shape, hash_of(row.dump())}, sets, lowered, gpu,
                    collected);
    });
  }
}

}  // namespace ridgeline::fit
