// Graphs of torch.compile written by hand, node after node.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/compile/graph.h"

namespace ridgeline::compile {

class GraphSketch {
 public:
  using Kind = Node::Kind;
  struct Space {
    std::int64_t rows = 1, cols = 1;
  };

  /// From outside the graph, in a storage of the script's.
  ValueId given(std::int64_t bytes) {
    Value value;
    value.bytes = bytes;
    value.storage = static_cast<StorageId>(graph.values.size());
    value.stored = true;
    graph.values.push_back(value);
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  /// A node that makes one value: of the whole space, of a row or of a column each, in `type`.
  ValueId node(Kind kind, std::string_view name, Space space, const std::vector<ValueId>& in,
               DType type = DType::fp32) {
    Node node;
    node.kind = kind;
    node.name = name;
    node.rows = space.rows;
    node.cols = space.cols;
    node.type = type;
    node.arithmetic = node.operations = 1;
    node.backward = backward;
    node.phase = backward ? Phase::backward : Phase::forward;
    if (kind == Kind::columns) node.column_results = 1;
    if (kind == Kind::library) node.op = 0;
    for (const ValueId v : in) node.inputs.push_back({v, graph.values[v].bytes});
    graph.nodes.push_back(node);
    const std::int64_t count = kind == Kind::columns                           ? space.cols
                               : kind == Kind::rows || kind == Kind::long_rows ? space.rows
                                                                               : space.rows * space.cols;
    return output(count * bytes_of(type));
  }
  ValueId pointwise(std::string_view name, Space space, const std::vector<ValueId>& in, DType type = DType::fp32) {
    return node(Kind::pointwise, name, space, in, type);
  }
  ValueId library(std::string_view name, Space space, const std::vector<ValueId>& in, DType type = DType::fp32) {
    return node(Kind::library, name, space, in, type);
  }
  /// A further result of the last node.
  ValueId output(std::int64_t bytes) {
    Value value;
    value.bytes = bytes;
    value.producer = static_cast<NodeId>(graph.nodes.size() - 1);
    value.category = backward ? Category::temporaries : Category::activations;
    graph.values.push_back(value);
    const auto id = static_cast<ValueId>(graph.values.size() - 1);
    graph.nodes.back().outputs.push_back({id, bytes});
    return id;
  }
  Node& last() { return graph.nodes.back(); }
  Value& operator[](ValueId id) { return graph.values[id]; }
  /// The value is a result of the graph, in a storage of its own.
  ValueId leaves(ValueId id) {
    graph.values[id].leaves = graph.values[id].stored = true;
    graph.values[id].storage = id;
    return id;
  }

  Graph graph;
  bool backward = false;  ///< of nodes from here on
};

}  // namespace ridgeline::compile
