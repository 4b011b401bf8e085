// JSON Schema (draft 2020-12) of the files that the program reads and of the JSON that it prints, and docs/keys.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/report/schema/input_keys.h"

namespace ridgeline {

/// One object with a definition a kind of file or output; `name` chooses the one that documents are checked against, an
/// empty one leaves that to whoever refers to "#/$defs/NAME". Throws UserError with the nearest name for an unknown
/// one.
nlohmann::ordered_json schema_json(std::span<const InputDocument> documents, const std::string& name);
/// Names that schema_json takes: inputs, then outputs.
std::vector<std::string> schema_names(std::span<const InputDocument> documents);

/// docs/keys.md.
std::string keys_markdown(std::span<const InputDocument> documents);
/// docs/tools.md: the tables of data/tools.
std::string tools_markdown();
/// "1 to 1048576", "fp32, tf32 or amp-fp16", "a number with a unit (GB/s, TB/s), above 0"; forms with "; or " between.
std::string allowed_values(const InputKey& key);

}  // namespace ridgeline
