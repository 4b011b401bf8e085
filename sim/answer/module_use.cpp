#include "sim/answer/module_use.h"

#include <fmt/format.h>

namespace ridgeline {

Seconds ModuleUse::time() const {
  Seconds sum;
  for (const Seconds& t : time_by_phase) sum += t;
  return sum;
}

ModuleUses modules_of(const OpTrace& trace) {
  ModuleUses uses;
  if (trace.modules.empty()) return uses;
  uses.resize(trace.modules.size() + 1);
  for (std::size_t i = 0; i < trace.modules.size(); ++i) {
    uses[i + 1].name = trace.modules[i].name;
    uses[i + 1].parent = trace.modules[i].parent;
  }
  return uses;
}

void add_memory(ModuleUses& uses, const StepProgram& program, const MemoryResult& result) {
  if (uses.empty()) return;
  std::vector<std::int64_t> own(uses.size(), 0);
  for (const LiveStorage& live : result.at_peak) own[program.storages[live.storage].module] += live.bytes;
  for (std::size_t i = own.size() - 1; i > 0; --i) own[uses[i].parent] += own[i];
  for (std::size_t i = 0; i < own.size(); ++i) uses[i].bytes_at_peak = own[i];
}

void add_up_children(ModuleUses& uses) {
  for (std::size_t i = uses.size(); i-- > 1;) {
    ModuleUse& around = uses[uses[i].parent];
    around.kernels += uses[i].kernels;
    for (std::size_t phase = 0; phase < kPhases; ++phase) around.time_by_phase[phase] += uses[i].time_by_phase[phase];
  }
}

std::string path_of(const ModuleUses& uses, std::size_t module) {
  if (module == 0) return "";
  const std::uint32_t parent = uses[module].parent;
  return parent == 0 ? uses[module].name : fmt::format("{}.{}", path_of(uses, parent), uses[module].name);
}

}  // namespace ridgeline
