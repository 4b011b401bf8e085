// How rules are written: a rule takes a call and gives its operations; files of rules add themselves to one table.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <unordered_map>

#include "sim/trace/aten/aten_map.h"

namespace ridgeline::trace {

using MappedOps = std::optional<std::vector<MappedOp>>;
using Rule = std::function<MappedOps(const AtenCall& call, const MapContext& context)>;
using RuleTable = std::unordered_map<std::string_view, Rule>;
/// One rule for calls of several names, parted by spaces; names that have a rule keep it.
void add(RuleTable& table, std::string_view names, const Rule& rule);

void add_pointwise_rules(RuleTable& table);
void add_copy_rules(RuleTable& table);
void add_contraction_rules(RuleTable& table);
void add_convolution_rules(RuleTable& table);
void add_image_rules(RuleTable& table);
void add_attention_rules(RuleTable& table);
void add_row_rules(RuleTable& table);
void add_reduction_rules(RuleTable& table);
void add_list_rules(RuleTable& table);
void add_index_rules(RuleTable& table);
void add_loss_rules(RuleTable& table);
void add_serving_rules(RuleTable& table);
void add_table_rules(RuleTable& table);
void add_apex_rules(RuleTable& table);
void add_expert_rules(RuleTable& table);
void add_resampling_rules(RuleTable& table);
void add_order_rules(RuleTable& table);
void add_composite_rules(RuleTable& table);
/// Point-wise functions by their rows, where no other rule has the name.
void add_rules_of_rows(RuleTable& table);

/// A contiguous tensor of these sizes that no recording names.
inline AtenTensor fresh(DType type, std::vector<std::int64_t> sizes) {
  AtenTensor tensor;
  tensor.type = type;
  tensor.sizes = std::move(sizes);
  return tensor;
}
/// The recorded result at a position, or what the rule says it must be.
inline AtenTensor result_of(const AtenCall& call, std::size_t i, AtenTensor expected) {
  return i < call.outputs.size() && call.outputs[i].elements() == expected.elements() ? call.outputs[i] : expected;
}
/// Sizes and order of dimensions of `like`, another type.
inline AtenTensor like(const AtenTensor& tensor, DType type) {
  AtenTensor result = tensor;
  result.type = type;
  result.storage = AtenTensor::kNoStorage;
  if (!tensor.dense()) result.strides.clear();
  return result;
}
inline AtenTensor like(const AtenTensor& tensor) { return like(tensor, tensor.type); }

inline MappedOps one(MappedOp op) {
  std::vector<MappedOp> ops;
  ops.push_back(std::move(op));
  return ops;
}
inline MappedOps nothing() { return std::vector<MappedOp>{}; }

/// A point-wise kernel over `inputs` (at most three), with the way it walks them.
MappedOp pointwise_op(PointwiseFunction function, std::initializer_list<const AtenTensor*> inputs, AtenTensor output);
/// What copying `from` into `to` runs: a copy, a cast, or a transfer between host and device.
MappedOps copy_ops(const AtenTensor& from, const AtenTensor& to);

/// Sizes two shapes broadcast to.
std::vector<std::int64_t> broadcast_sizes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);

}  // namespace ridgeline::trace
