// Model descriptions for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/workload/model.h"

namespace ridgeline {

std::string model_list(std::span<const ModelDescription> models);
std::string model_text(const ModelDescription& model);
nlohmann::ordered_json model_json(const ModelDescription& model);

}  // namespace ridgeline
