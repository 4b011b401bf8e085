// An operation as a JSON object, as lines of op traces and our own timelines hold it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/workload/op.h"

namespace ridgeline::trace {

/// Adds "kind" and the fields of its kind, those left out that are as usual.
void add_op(nlohmann::ordered_json& line, const Op& op);
std::string op_text(const Op& op);

/// Reads an object's text; nothing for one that is no operation.
std::optional<Op> op_from_text(std::string_view text);

}  // namespace ridgeline::trace
