#include "sim/trace/aten/aten_map.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

const RuleTable& rules() {
  static const RuleTable table = [] {
    RuleTable all;
    add_pointwise_rules(all);
    add_copy_rules(all);
    add_contraction_rules(all);
    add_convolution_rules(all);
    add_image_rules(all);
    add_attention_rules(all);
    add_row_rules(all);
    add_reduction_rules(all);
    add_list_rules(all);
    add_index_rules(all);
    add_loss_rules(all);
    add_serving_rules(all);
    add_table_rules(all);
    add_apex_rules(all);
    add_expert_rules(all);
    add_resampling_rules(all);
    add_order_rules(all);
    add_composite_rules(all);
    add_rules_of_rows(all);
    return all;
  }();
  return table;
}

void visit_tensors(const Argument& argument, const auto& visit) {
  if (const auto* tensor = std::get_if<AtenTensor>(&argument)) visit(*tensor);
  if (const auto* list = std::get_if<TensorList>(&argument))
    for (const AtenTensor& tensor : *list) visit(tensor);
}

}  // namespace

void add(RuleTable& table, std::string_view names, const Rule& rule) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    table.try_emplace(name, rule);
  }
}

std::optional<std::vector<MappedOp>> map_aten(const AtenCall& call, const MapContext& context) {
  if (launches_nothing(call.name)) return std::vector<MappedOp>{};
  const auto rule = rules().find(call.name);
  if (rule == rules().end()) return std::nullopt;
  return rule->second(call, context);
}

bool is_mapped(std::string_view name) { return rules().contains(name); }

std::vector<std::string_view> mapped_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool launches_nothing(std::string_view name) {
  static const std::unordered_set<std::string_view> names{"aten::view",
                                                          "aten::_unsafe_view",
                                                          "aten::t",
                                                          "aten::transpose",
                                                          "aten::permute",
                                                          "aten::expand",
                                                          "aten::slice",
                                                          "aten::select",
                                                          "aten::split",
                                                          "aten::split_with_sizes",
                                                          "aten::chunk",
                                                          "aten::unbind",
                                                          "aten::squeeze",
                                                          "aten::squeeze_",
                                                          "aten::unsqueeze_",
                                                          "aten::t_",
                                                          "aten::transpose_",
                                                          "aten::as_strided_",
                                                          "aten::view_as",
                                                          "aten::reshape",
                                                          "aten::unsqueeze",
                                                          "aten::as_strided",
                                                          "aten::detach",
                                                          "aten::detach_",
                                                          "aten::alias",
                                                          "aten::_reshape_alias",
                                                          "aten::unfold",
                                                          "aten::diagonal",
                                                          "aten::narrow",
                                                          "aten::empty",
                                                          "aten::empty_like",
                                                          "aten::empty_strided",
                                                          "aten::new_empty",
                                                          "aten::new_empty_strided",
                                                          "aten::resize_",
                                                          "aten::set_",
                                                          "aten::lift_fresh",
                                                          "aten::is_same_size",
                                                          "aten::result_type",
                                                          "aten::is_nonzero",
                                                          "aten::item",
                                                          "aten::sym_size",
                                                          "aten::sym_stride",
                                                          "aten::sym_numel",
                                                          "aten::view_as_real",
                                                          "aten::view_as_complex",
                                                          "aten::_conj",
                                                          "aten::real",
                                                          "aten::imag"};
  return names.contains(name);
}

UnknownOp unknown_op(const AtenCall& call) {
  UnknownOp op{call.name, 0, 0};
  std::int64_t first = 0;
  for (const Argument& input : call.inputs)
    visit_tensors(input, [&](const AtenTensor& tensor) {
      op.read_bytes += tensor.bytes();
      if (first == 0) first = tensor.bytes();
    });
  for (const AtenTensor& output : call.outputs) op.written_bytes += output.bytes();
  if (call.outputs.empty()) op.written_bytes = first;
  return op;
}

std::optional<DType> dtype_of_aten(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, DType>, 26> kNames{{{"float", DType::fp32},
                                                                       {"c10::Half", DType::fp16},
                                                                       {"c10::BFloat16", DType::bf16},
                                                                       {"double", DType::fp64},
                                                                       {"long int", DType::int64},
                                                                       {"long", DType::int64},
                                                                       {"int", DType::int32},
                                                                       {"bool", DType::boolean},
                                                                       {"unsigned char", DType::uint8},
                                                                       {"signed char", DType::uint8},
                                                                       {"char", DType::uint8},
                                                                       {"short", DType::fp16},
                                                                       {"short int", DType::fp16},
                                                                       {"c10::Float8_e4m3fn", DType::uint8},
                                                                       {"c10::Float8_e5m2", DType::uint8},
                                                                       {"c10::complex<float>", DType::int64},
                                                                       {"float32", DType::fp32},
                                                                       {"float16", DType::fp16},
                                                                       {"bfloat16", DType::bf16},
                                                                       {"float64", DType::fp64},
                                                                       {"int64", DType::int64},
                                                                       {"int32", DType::int32},
                                                                       {"uint8", DType::uint8},
                                                                       {"int8", DType::uint8},
                                                                       {"int16", DType::fp16},
                                                                       {"half", DType::fp16}}};
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  return dtype_from(name);
}

}  // namespace ridgeline::trace
