#include "sim/trace/profiler/recorded_ops.h"

#include <simdjson.h>

#include <string>
#include <variant>

#include "sim/trace/op_trace/op_text.h"

namespace ridgeline::trace {

const Op* RecordedOps::of(std::size_t op) {
  if (events_.source != ProfilerSource::timeline) return nullptr;
  const std::string& arguments = events_.operators[op].arguments;
  if (arguments.find("\"Op\":") == std::string::npos) return nullptr;
  const auto [entry, is_new] = read_.try_emplace(op);
  if (is_new) {
    simdjson::dom::parser parser;
    simdjson::dom::element all, own;
    if (parser.parse(arguments).get(all) == simdjson::SUCCESS && all["Op"].get(own) == simdjson::SUCCESS)
      entry->second = op_from_text(simdjson::minify(own));
  }
  // An exchange of ranks stands beside its kernel.
  return entry->second && !std::holds_alternative<Collective>(*entry->second) ? &*entry->second : nullptr;
}

}  // namespace ridgeline::trace
