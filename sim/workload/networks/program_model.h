// A model that is a program: the program and its sizes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/config/value.h"
#include "sim/workload/model.h"
#include "sim/workload/networks/program_value.h"

namespace ridgeline::networks {

struct ProgramModel {
  NetworkProgram program;
  std::vector<ProgramValue> sizes;  ///< of every key, in the order of the program
  // Found by one forward pass.
  std::int64_t fixed_length = 0;         ///< of every sample; 0: the training says
  std::vector<std::int64_t> kinds;       ///< of each block that is wrapped: equal for equal operations
  std::int64_t heads = 0, head_dim = 0;  ///< of the widest attention
  bool splits = false;                   ///< has layers that tensor parallel ranks share
  std::set<std::string> packaged;        ///< kernels of packages beside PyTorch, which were not measured
  std::string obstacle_to_stages;        ///< why no pipeline cuts it; empty where one does
  [[nodiscard]] const ProgramValue* size(std::string_view name) const;
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise) const;
};

/// A description of family `program`: its file under `program`, its sizes beside it. Throws config::ConfigError.
ModelDescription read_program(const config::Value& value, std::string fallback_name);

/// Such a description of a .block file alone, whose sizes all have defaults or are given later.
config::Node tree_of_program(const std::string& path);

/// Where every sample is as long: of the program's line "length = …".
std::int64_t length_of(const ProgramModel& model);

/// As YAML would write it.
std::string text_of(const ProgramValue& value);

}  // namespace ridgeline::networks
