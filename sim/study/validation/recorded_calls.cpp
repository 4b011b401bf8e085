#include "sim/study/validation/recorded_calls.h"

#include <nlohmann/json.hpp>
#include <string>

#include "sim/trace/op_trace/read_op_trace.h"

namespace ridgeline {

std::vector<Op> recorded_ops(const nlohmann::json& row) {
  std::string text =
      "{\"ridgeline\":\"op-trace\",\"version\":1,\"parameters\":0}\n"
      "{\"record\":\"step\"}\n";
  for (nlohmann::json record : row["aten"]) {
    record["record"] = "aten";
    text += record.dump() + '\n';
  }
  const trace::Recording recording = trace::parse_op_trace(text + "{\"record\":\"end\"}\n", "a measured call");
  std::vector<Op> ops;
  for (const Call& call : recording.trace.calls) ops.push_back(recording.trace.ops[call.op]);
  return ops;
}

}  // namespace ridgeline
