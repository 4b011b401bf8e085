// A PyTorch execution trace (ExecutionTraceObserver; schemas 1.0.1 to 1.1.1-chakra) to something that can be replayed.
//
// It holds the tree of operators with shapes, types and storages, but no times and no frees: the host is modelled by
// classes, and there is no memory. Nodes stand in the order of their ends; their ids count in the order of their
// begins. Ids of tensors and storages are used again (they are addresses), which does not matter for what the L2 holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/aten/aten_call.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

struct ExecutionNode {
  std::int64_t id = 0, parent = 0;
  std::string name;
  std::vector<Argument> inputs;
  std::vector<AtenTensor> outputs;
  bool has_tensors = false, on_gpu = false;
};

class ExecutionTraceReader {
 public:
  explicit ExecutionTraceReader(std::string path) : path_(std::move(path)) {}

  void schema(std::string_view text) { schema_ = text; }
  /// An element of "nodes". Throws UserError "file:line: what" for text that is not JSON and for sizes that cannot be.
  void node(std::string_view text, std::int64_t line);
  /// Throws UserError where the trace holds no operator.
  Replayable finish();

 private:
  std::string path_, schema_;
  std::vector<ExecutionNode> nodes_;
  Defects defects_;
};

}  // namespace ridgeline::trace
