// A HuggingFace config.json rewritten as a description of ours, each key keeping its place in the file.
#pragma once

#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/value.h"

namespace ridgeline {

struct HuggingFaceDescription {
  config::Node tree;
  std::vector<std::string> unread;  ///< keys that nobody here knows, in the order of the file
};

/// `config` is the tree of a config.json (JSON is YAML). Known model_type: bert,
/// llama, and those of models/families/. Keys that change
/// neither time nor memory are ignored; one that asks for a network which is not built here is refused by its name.
/// Throws config::ConfigError.
HuggingFaceDescription description_from_huggingface(const config::Value& config);

}  // namespace ridgeline
