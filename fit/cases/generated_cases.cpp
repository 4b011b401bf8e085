#include "fit/cases/generated_cases.h"

#include "sim/study/validation/generated_kernels.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline::fit {
namespace {

void add(const std::vector<GeneratedKernel>& kernels, int machine, const Gpu& gpu, Collected& collected) {
  for (const GeneratedKernel& one : kernels) {
    const int kernel_class = std::get<MemoryBoundWork>(one.launch.work).kernel_class;
    auto& [cases, timed] = collected[std::string(name_of(static_cast<MemoryBoundKernel>(kernel_class)))];
    cases.push_back({one.time.value(), machine, one.held_out, one.shape, one.row});
    timed.push_back({.launch = one.launch, .residency = one.residency, .gpu = &gpu});
  }
}

}  // namespace

void add_generated(const Measurements& measurements, const Laboratory& laboratory, Collected& collected) {
  for (const MeasuredFile* file : measurements.index.of_kind("fused-kernels"))
    add(generated_of_steps(*file), 0, laboratory.gpu, collected);
  for (const MeasuredFile* file : measurements.index.of_kind("calls"))
    if (file->machine.hardware != "nvidia-h200-sxm-141gb")
      add(generated_of_calls(*file, laboratory.other_gpu), measurements.machine(file->machine.name),
          laboratory.other_gpu, collected);
}

}  // namespace ridgeline::fit
