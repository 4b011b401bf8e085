// A graph of torch.compile in words: nodes, values and groups, a line each.
//
//   rows native_layer_norm 6x10 fp32 x1: 0:240 -> 3:240 4:24      a node: its space, instructions, operands by value
//   4: 24 kept activations of 5.3                                a value: bytes, what holds for it, layer and module
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "sim/workload/compile/fuse.h"

namespace ridgeline::compile {

inline std::string words_of(const std::vector<Use>& uses) {
  std::string text;
  for (const Use& use : uses) text += fmt::format(" {}:{}", use.value, use.bytes);
  return text;
}
inline const char* words_of(Node::Kind kind) {
  constexpr std::array kNames{"library", "pointwise", "rows", "long rows", "columns"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// `ops`: of the trace that library nodes stand in.
inline std::string words_of(const Node& node, const std::vector<Op>& ops) {
  std::string text = node.backward ? "backward " : "";
  for (const auto& [holds, word] :
       {std::pair(node.after, "after "), std::pair(node.by_block, "by block "), std::pair(node.casts, "casting "),
        std::pair(node.gathers, "gathering "), std::pair(node.alone, "alone "), std::pair(node.realizes, "real ")})
    if (holds) text += word;
  text += fmt::format("{} {} {}x{} {}", words_of(node.kind), node.name, node.rows, node.cols, name_of(node.type));
  if (node.kind == Node::Kind::library) {
    if (node.op < ops.size()) text += fmt::format(" [{} {}]", name_of(ops[node.op]), shape_of(ops[node.op]));
  } else {
    text += fmt::format(" x{}", node.arithmetic);
    if (node.operations != node.arithmetic) text += fmt::format("/{}", node.operations);
  }
  if (node.column_results > 0) text += fmt::format(" sums {}", node.column_results);
  for (const std::string_view inner : node.inner) text += fmt::format(" ({})", inner);
  return text + ":" + words_of(node.inputs) + " ->" + words_of(node.outputs);
}

inline std::string words_of(const Value& value) {
  std::string text = std::to_string(value.bytes);
  for (const auto& [holds, word] :
       {std::pair(value.held, " held"), std::pair(value.leaves, " leaves"), std::pair(value.ends_here, " ends here"),
        std::pair(value.gone, " gone"), std::pair(value.of_caller, " of caller"), std::pair(value.stored, " stored"),
        std::pair(value.kept, " kept")})
    if (holds) text += word;
  for (const auto& [other, word] : {std::pair(value.producer, " by"), std::pair(value.storage, " in storage"),
                                    std::pair(value.in_place_of, " over"), std::pair(value.again, " again as")})
    if (other != kNone) text += fmt::format("{} {}", word, other);
  return text;
}

/// Nodes from `first` on.
inline std::string nodes_of(const Graph& graph, const std::vector<Op>& ops = {}, std::size_t first = 0) {
  std::string text;
  for (std::size_t i = first; i < graph.nodes.size(); ++i) text += words_of(graph.nodes[i], ops) + "\n";
  return text;
}
/// Values from `first` on, numbered.
inline std::string values_of(const Graph& graph, std::size_t first = 0) {
  std::string text;
  for (std::size_t i = first; i < graph.values.size(); ++i)
    text += fmt::format("{}: {}\n", i, words_of(graph.values[i]));
  return text;
}

/// "backward rows 6x10 fp32 x7 sums 2 of add, norm: nodes 1 2 reads 0:240 writes 3:240".
inline std::string words_of(const Group& group) {
  std::string text = group.backward ? "backward " : "";
  for (const auto& [holds, word] : {std::pair(group.after, "after "), std::pair(group.by_block, "by block "),
                                    std::pair(group.gathers, "gathering "), std::pair(group.alone, "alone ")})
    if (holds) text += word;
  text += fmt::format("{} {}x{} {} x{}", words_of(group.kind), group.rows, group.cols, name_of(group.type),
                      group.arithmetic);
  if (group.column_results > 0) text += fmt::format(" sums {}", group.column_results);
  text += " of";
  for (const std::string_view name : group.names) text += fmt::format(" {}", name);
  text += ": nodes";
  for (const NodeId node : group.nodes) text += fmt::format(" {}", node);
  return text + " reads" + words_of(group.reads) + " writes" + words_of(group.writes);
}
inline std::string groups_of(const std::vector<Group>& groups) {
  std::string text;
  for (const Group& group : groups) text += words_of(group) + "\n";
  return text;
}

}  // namespace ridgeline::compile
