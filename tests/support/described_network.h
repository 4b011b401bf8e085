// The network that a HuggingFace config.json describes, from the JSON itself.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/workload/load_model.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::testing {

/// Throws as load_model does; the file that is read lives no longer than the call.
inline ModelDescription described_network(const nlohmann::json& config) {
  struct File {
    std::filesystem::path path = temporary_path("config-of-a-network.json");
    ~File() { std::filesystem::remove(path); }
  } const file;
  std::ofstream(file.path) << config.dump();
  return load_model(file.path.string());
}

}  // namespace ridgeline::testing
