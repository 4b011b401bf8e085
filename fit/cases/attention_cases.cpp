// Fused attention: the kernel that multiplies, found in a profile by its name; its tile is that of the lowering.
#include <stdexcept>

#include "fit/law_problem.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/packed_attention.h"
#include "sim/timing/attention/attention_constants.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/laws.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

const Law<AttentionConstants> kLaw{{
#include "sim/timing/tables/attention_fields.inc"
                                   },
                                   [](const TimedLaunch& timed, const Gpu& gpu, const AttentionConstants& constants) {
                                     return attention_time(timed.launch, std::get<AttentionWork>(timed.launch.work),
                                                           gpu, timed.residency, constants)
                                         .time.value();
                                   }};

struct ClassName {
  AttentionClass kernel_class;
  const char* name;
  const char* in_profile;  ///< what its kernels' names contain
};
constexpr ClassName kClasses[]{{AttentionClass::flash_forward, "flash_forward", "flash_fwd_kernel"},
                               {AttentionClass::flash_forward_split, "flash_forward_split", "flash_fwd_splitkv_kernel"},
                               {AttentionClass::flash_backward, "flash_backward", "flash_bwd_dq_dk_dv"},
                               {AttentionClass::flash_forward_packed, "flash_forward_packed", "flash_fwd_kernel"},
                               {AttentionClass::flash_backward_packed, "flash_backward_packed", "flash_bwd_dq_dk_dv"},
                               {AttentionClass::cudnn_forward, "cudnn_forward", "_fprop_"},
                               {AttentionClass::cudnn_backward, "cudnn_backward", "_bprop_"},
                               {AttentionClass::efficient_forward_half, "efficient_forward_half", "fmha_cutlassF"},
                               {AttentionClass::efficient_backward_half, "efficient_backward_half", "fmha_cutlassB"},
                               {AttentionClass::efficient_forward_fp32, "efficient_forward_fp32", "fmha_cutlassF"},
                               {AttentionClass::efficient_backward_fp32, "efficient_backward_fp32", "fmha_cutlassB"}};

const AttentionWork* multiplying(const KernelLaunch& launch) {
  const auto* work = std::get_if<AttentionWork>(&launch.work);
  return work != nullptr && work->part != AttentionWork::Part::layout_copy ? work : nullptr;
}

/// The kernels of operations that multiply, by their class.
Collected collect(const std::vector<MeasuredOp>& rows, const Gpu& gpu, const Software& software) {
  const Lowering lowering(gpu, software);
  Collected collected;
  for (const MeasuredOp& row : rows) {
    if (!std::holds_alternative<Attention>(row.kernel.op)) continue;
    const LoweredOp lowered = lowering.lower(row.kernel.op);
    const auto residency =
        repeated_residency(lowered.launches, rotating_operands(row.kernel.op), row.kernel.input_sets, gpu.l2);
    for (std::size_t i = 0; i < lowered.launches.size(); ++i) {
      const AttentionWork* work = multiplying(lowered.launches[i]);
      if (work == nullptr) continue;
      const AttentionClass kernel_class = attention_class_of(*work);
      for (const ClassName& one : kClasses)
        for (const ProfiledKernel& kernel : row.kernels) {
          if (one.kernel_class != kernel_class || kernel.name.find(one.in_profile) == std::string::npos) continue;
          auto& [cases, launches] = collected[one.name];
          cases.push_back({kernel.seconds, row.machine, row.held_out, row.shape, row.row});
          launches.push_back({lowered.launches[i], residency.empty() ? std::vector<double>{} : residency[i]});
        }
    }
  }
  return collected;
}

}  // namespace

std::vector<Problem> attention_problems(const Measurements& measurements, const Laboratory& laboratory) {
  std::vector<Problem> problems =
      problems_of(collect(measurements.rows, laboratory.gpu, laboratory.software), kLaw, laboratory.gpu);
  for (const MeasuredFile* file : measurements.index.of_kind("packed-attention"))
    for (Problem& packed : problems_of(collect(load_packed_attention(*file), laboratory.other_gpu, laboratory.software),
                                       kLaw, laboratory.other_gpu))
      problems.push_back(std::move(packed));
  return problems;
}

}  // namespace ridgeline::fit
