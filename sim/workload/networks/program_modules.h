// Modules with parameters that a program declares: linear, conv2d, layer_norm, …
#pragma once

#include <span>

#include "sim/workload/networks/program_value.h"

namespace ridgeline::networks {

class ProgramNetwork;

struct ModuleKind {
  std::string_view name;
  std::string_view parameters;  ///< of its declaration
  void (*make)(ProgramNetwork&, const CallArguments&, ProgramModule&);
  /// Of a call; null: the module is a tensor, which its name gives.
  Tensor (*run)(ProgramNetwork&, const CallArguments&, const ProgramModule&);
};

std::span<const ModuleKind> module_kinds();
const ModuleKind* find_module_kind(std::string_view name);
std::vector<std::string> module_kind_names();

}  // namespace ridgeline::networks
