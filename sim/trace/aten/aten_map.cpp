#include "sim/trace/aten/aten_map.h"

#include <algorithm>
#include <unordered_set>

#include "sim/trace/aten/aten_rules.h"
#include "sim/units/word_list.h"
#include "sim/workload/aten/embedding.h"

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

/// Work of the host for an operation: called in the forward pass, and as a node of the backward pass.
struct HostsOf {
  using H = HostClass;
  struct Pair {
    H forward, backward;
  };
  static Pair of(bool backward, H call, H node) { return backward ? Pair{node, node} : Pair{call, node}; }

  Pair operator()(const auto&) const { return {H::pointwise, H::pointwise_backward}; }
  Pair operator()(const Memset&) const { return {H::other, H::other}; }
  Pair operator()(const MultiTensor&) const { return {H::optimizer_op, H::optimizer_op}; }
  Pair operator()(const Dropout&) const { return {H::dropout, H::pointwise_backward}; }
  Pair operator()(const Norm& op) const { return of(op.backward, H::layer_norm, H::layer_norm_backward); }
  Pair operator()(const NllLoss& op) const { return of(op.backward, H::cross_entropy, H::nll_backward); }
  Pair operator()(const Convolution& op) const { return of(op.backward, H::convolution, H::convolution_backward); }
  Pair operator()(const Softmax& op) const {
    if (op.backward && op.log) return {H::softmax_backward, H::log_softmax_backward};
    return of(op.backward, H::softmax, H::softmax_backward);
  }
  Pair operator()(const Copy& op) const {
    return concatenates(op.kind) ? Pair{H::concatenate, H::split_backward} : Pair{H::contiguous, H::view_backward_copy};
  }
  Pair operator()(const Embedding& op) const {
    if (op.accumulates) return {H::pointwise, H::pointwise_backward};
    const bool sorts = op.backward && op.tokens > eager::aten::kEmbeddingTokensUnsorted;
    return of(op.backward, H::embedding, sorts ? H::embedding_backward_sorted : H::embedding_backward);
  }
  Pair operator()(const Attention& op) const {
    const bool cudnn = op.backend == AttentionBackend::cudnn;
    return of(op.backward, cudnn ? H::attention_cudnn : H::attention_fused,
              cudnn ? H::attention_cudnn_backward : H::attention_fused_backward);
  }
  Pair operator()(const ImageOp& op) const {
    const bool norm = op.function == ImageFunction::batch_norm;
    const H one = op.backward ? norm ? H::batch_norm_backward : H::pointwise_backward
                  : norm      ? H::batch_norm
                              : H::pointwise;
    return {one, one};
  }
};

void visit_tensors(const Argument& argument, const auto& visit) {
  if (const auto* tensor = std::get_if<AtenTensor>(&argument)) visit(*tensor);
  if (const auto* list = std::get_if<TensorList>(&argument))
    for (const AtenTensor& tensor : *list) visit(tensor);
}

}  // namespace

void add(RuleTable& table, std::string_view names, const Rule& rule) {
  for_each_word(names, " ", [&](std::string_view name) { table.try_emplace(name, rule); });
}

std::optional<std::vector<MappedOp>> map_aten(const AtenCall& call, const MapContext& context) {
  if (launches_nothing(call.name)) return std::vector<MappedOp>{};
  const auto rule = rules().find(call.name);
  if (rule == rules().end()) return std::nullopt;
  auto ops = rule->second(call, context);
  if (!ops) return std::nullopt;
  for (MappedOp& mapped : *ops) {
    const HostsOf::Pair hosts = std::visit(HostsOf{}, mapped.op);
    if (mapped.forward == HostClass::other) mapped.forward = hosts.forward;
    if (mapped.backward == HostClass::other) mapped.backward = hosts.backward;
  }
  return ops;
}

bool is_mapped(std::string_view name) { return rules().contains(name); }

std::vector<std::string_view> mapped_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool launches_nothing(std::string_view name) {
  static const std::unordered_set<std::string_view> names = [] {
    std::unordered_set<std::string_view> all;
    for_each_word(
        "aten::view aten::_unsafe_view aten::t aten::transpose aten::permute aten::expand aten::slice "
        "aten::select aten::split aten::split_with_sizes aten::chunk aten::unbind aten::squeeze "
        "aten::squeeze_ aten::unsqueeze_ aten::t_ aten::transpose_ aten::as_strided_ aten::view_as "
        "aten::reshape aten::unsqueeze aten::as_strided aten::detach aten::detach_ aten::alias "
        "aten::_reshape_alias aten::unfold aten::diagonal aten::narrow aten::empty aten::empty_like "
        "aten::empty_strided aten::new_empty aten::new_empty_strided aten::resize_ aten::set_ "
        "aten::lift_fresh aten::is_same_size aten::result_type aten::is_nonzero aten::item aten::sym_size "
        "aten::sym_stride aten::sym_numel aten::view_as_real aten::view_as_complex aten::_conj aten::real "
        "aten::imag",
        " ", [&](std::string_view one) { all.insert(one); });
    return all;
  }();
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
  static const std::unordered_map<std::string_view, DType> types = [] {
    std::unordered_map<std::string_view, DType> all;
    for (const auto& [type, names] : std::initializer_list<std::pair<DType, std::string_view>>{
             {DType::fp32, "float,float32"},
             {DType::fp16, "c10::Half,short,short int,float16,int16,half"},
             {DType::bf16, "c10::BFloat16,bfloat16"},
             {DType::fp64, "double,float64"},
             {DType::int64, "long int,long,c10::complex<float>,int64"},
             {DType::int32, "int,int32"},
             {DType::boolean, "bool"},
             {DType::uint8, "unsigned char,signed char,char,c10::Float8_e4m3fn,c10::Float8_e5m2,uint8,int8"}})
      for_each_word(names, ",", [&, of = type](std::string_view one) { all.emplace(one, of); });
    return all;
  }();
  const auto found = types.find(name);
  return found != types.end() ? found->second : dtype_from(name);
}

}  // namespace ridgeline::trace
