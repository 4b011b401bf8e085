// Calls over lists of tensors: the foreach operations of optimizers, and concatenation.
//
// Profilers leave out what is in a list. A foreach list without shapes is taken to be that of all trained parameters;
// if its kernels were measured and have far fewer thread blocks than the parameters need, to be one number a parameter.
#include <algorithm>
#include <cmath>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

using M = MultiTensorFunction;
using Sizes = std::shared_ptr<const std::vector<std::int64_t>>;

constexpr std::int64_t kChunk = 65536;  ///< elements of one thread block of a multi-tensor kernel

struct Listed {
  Sizes sizes;
  DType type = DType::fp32;
  bool on_host = false;
};

DType type_of_kernel(std::string_view name, DType otherwise) {
  if (name.find("BFloat16") != name.npos) return DType::bf16;
  if (name.find("Half") != name.npos) return DType::fp16;
  return otherwise;
}

std::optional<Listed> sizes_of(const AtenCall& call, std::size_t argument, const MapContext& context) {
  const TensorList* list = call.list(argument);
  if (list != nullptr && !list->empty()) {
    auto sizes = std::make_shared<std::vector<std::int64_t>>();
    for (const AtenTensor& tensor : *list) sizes->push_back(tensor.elements());
    return Listed{std::move(sizes), list->front().type, list->front().on_host};
  }
  if (!context.parameter_sizes || context.parameter_sizes->empty()) return std::nullopt;
  Listed result{context.parameter_sizes, DType::fp32, false};
  std::int64_t blocks = 0, chunks = 0;
  for (const MeasuredKernel& kernel : call.kernels) {
    blocks += kernel.blocks;
    result.type = type_of_kernel(kernel.name, result.type);
  }
  for (const std::int64_t size : *context.parameter_sizes) chunks += (size + kChunk - 1) / kChunk;
  const auto tensors = static_cast<std::int64_t>(context.parameter_sizes->size());
  if (!call.kernels.empty() && blocks < (chunks + tensors) / 2 && chunks > 2 * tensors)
    result.sizes = std::make_shared<std::vector<std::int64_t>>(context.parameter_sizes->size(), 1);
  return result;
}

MappedOps foreach_of(const AtenCall& call, const MapContext& context, M function, bool scalar_per_tensor) {
  const auto listed = sizes_of(call, 0, context);
  if (!listed) return std::nullopt;
  if (listed->on_host) return nothing();
  MultiTensor op{function, listed->type, listed->sizes, scalar_per_tensor};
  return one({op, {}, {}});
}

template <M Function, bool ScalarPerTensor = false>
MappedOps list(const AtenCall& call, const MapContext& context) {
  return foreach_of(call, context, Function, ScalarPerTensor);
}
/// With a second list or with one number for all.
template <M WithList, M WithNumber>
MappedOps list_or_number(const AtenCall& call, const MapContext& context) {
  return foreach_of(call, context, call.list(1) != nullptr ? WithList : WithNumber, false);
}

/// Bytes of one element from the name of a copy kernel ("OpaqueType<2u>").
std::int64_t element_bytes(std::string_view kernel) {
  const auto at = kernel.find("OpaqueType<");
  return at == kernel.npos || at + 11 >= kernel.size() ? 4 : kernel[at + 11] - '0';
}

/// torch.cat has no kernel of its own for parts of several types, or with more than four dimensions that are views.
bool copies_each(const TensorList& parts) {
  constexpr std::size_t kMostDimensions = 4;
  return std::any_of(parts.begin(), parts.end(), [&](const AtenTensor& part) {
    return part.type != parts.front().type || (!part.contiguous() && part.sizes.size() > kMostDimensions);
  });
}
/// A copy or cast of each part into its place.
MappedOps copied_each(const TensorList& parts, const AtenTensor& result) {
  DType widest = parts.front().type;
  for (const AtenTensor& part : parts)
    if (bytes_of(part.type) > bytes_of(widest)) widest = part.type;
  std::vector<MappedOp> ops;
  for (const AtenTensor& part : parts) {
    if (part.elements() < 1) continue;
    AtenTensor place = fresh(widest, part.sizes);
    place.storage = result.storage;
    MappedOp op = copy_ops(part, place)->front();
    if (auto* copy = std::get_if<Copy>(&op.op); copy != nullptr && copy->kind == CopyKind::contiguous)
      copy->kind = CopyKind::permute;
    if (auto* cast = std::get_if<Pointwise>(&op.op)) cast->walk = Walk::strided;
    ops.push_back(std::move(op));
  }
  return ops;
}

/// Element by element in two blocks an SM, whatever lies contiguous: PyTorch's kernel of other layouts, and of 16-bit
/// types in releases before 2025.
bool element_by_element(const AtenCall& call) {
  return std::any_of(call.kernels.begin(), call.kernels.end(), [](const MeasuredKernel& kernel) {
    return kernel.name.find("CatArrayBatchedCopy<") != kernel.name.npos ||
           kernel.name.find("CatArrayBatchedCopy_contig<") != kernel.name.npos;
  });
}

/// Blocks are dealt out by input, as many to a short one as to the longest, which decides: so many inputs of the
/// longest one's size do as much.
std::vector<AtenTensor> that_decide(std::vector<AtenTensor> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const AtenTensor& a, const AtenTensor& b) { return a.elements() > b.elements(); });
  double elements = 0.0;
  for (const AtenTensor& part : parts) elements += static_cast<double>(part.elements());
  const double largest = static_cast<double>(parts.front().elements());
  parts.resize(static_cast<std::size_t>(std::max(1.0, std::round(elements / largest))));
  return parts;
}

MappedOps concatenate(const AtenCall& call, const MapContext&) {
  const TensorList* list = call.list(0);
  std::vector<MappedOp> ops;
  if (list == nullptr || list->empty()) {
    if (call.outputs.empty() || call.outputs.front().elements() < 1) return std::nullopt;
    // Only the result is known: two parts, as most gradients of a split have or more.
    AtenTensor y = call.outputs.front();
    if (!call.kernels.empty() && element_bytes(call.kernels.front().name) == 2 && bytes_of(y.type) == 4) {
      y.type = DType::bf16;
      y.sizes = {y.elements() * 2};
    }
    AtenTensor part = y;
    part.sizes = {std::max<std::int64_t>(1, y.elements() / 2)};
    ops.push_back({Copy{CopyKind::concatenate, y.type, 1, part.elements(), 2}, {part, part}, {y}});
    return ops;
  }
  const AtenTensor& first = list->front();
  if (first.on_host) return nothing();
  std::int64_t elements = 0;
  for (const AtenTensor& part : *list) elements += part.elements();
  if (elements < 1) return nothing();
  const auto rank = static_cast<std::int64_t>(first.sizes.size());
  std::int64_t dim = call.whole(1, 0);
  if (dim < 0) dim += rank;
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < dim && i < rank; ++i)
    rows *= std::max<std::int64_t>(1, first.sizes[static_cast<std::size_t>(i)]);
  // torch.cat takes at most 128 inputs a kernel.
  constexpr std::size_t kMostInputs = 128;
  const AtenTensor y = result_of(call, 0, fresh(first.type, {elements}));
  if (copies_each(*list)) return copied_each(*list, y);
  const bool strided = element_by_element(call) || std::any_of(list->begin(), list->end(), [](const AtenTensor& part) {
                         return !part.contiguous();
                       });
  for (std::size_t begin = 0; begin < list->size(); begin += kMostInputs) {
    const std::size_t end = std::min(list->size(), begin + kMostInputs);
    std::int64_t part_elements = 0;
    for (std::size_t i = begin; i < end; ++i) part_elements += (*list)[i].elements();
    if (part_elements < 1) continue;
    MappedOp op;
    op.inputs = that_decide(
        {list->begin() + static_cast<std::ptrdiff_t>(begin), list->begin() + static_cast<std::ptrdiff_t>(end)});
    const std::size_t parts = op.inputs.size();
    const std::int64_t cols = std::max<std::int64_t>(1, part_elements / rows / static_cast<std::int64_t>(parts));
    const std::int64_t stacked = call.name == "aten::stack" ? 1 : 0;
    op.op = Copy{strided ? CopyKind::concatenate_strided : CopyKind::concatenate,
                 first.type,
                 rows,
                 cols,
                 static_cast<std::int64_t>(parts),
                 rank + stacked > 2 ? rank + stacked : 0};
    op.outputs = {y};
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace

void add_list_rules(RuleTable& table) {
  add(table, "aten::cat aten::stack", concatenate);
  add(table, "aten::_foreach_add_ aten::_foreach_add aten::_foreach_sub_ aten::_foreach_sub",
      list_or_number<M::add, M::add_scalar>);
  add(table, "aten::_foreach_mul_ aten::_foreach_mul", list_or_number<M::add, M::mul>);
  add(table, "aten::_foreach_div_ aten::_foreach_div", list_or_number<M::divide, M::divide>);
  add(table, "aten::_foreach_lerp_", list<M::lerp>);
  add(table, "aten::_foreach_addcmul_", list<M::addcmul>);
  add(table, "aten::_foreach_addcdiv_", list<M::addcdiv, true>);
  add(table,
      "aten::_foreach_sqrt aten::_foreach_sqrt_ aten::_foreach_rsqrt aten::_foreach_rsqrt_ "
      "aten::_foreach_reciprocal aten::_foreach_reciprocal_ aten::_foreach_neg "
      "aten::_foreach_abs",
      list<M::square_root>);
  add(table, "aten::_foreach_neg_ aten::_foreach_zero_ aten::_foreach_clamp_min_", list<M::mul>);
  add(table, "aten::_foreach_maximum_", list<M::add>);
  add(table, "aten::_foreach_copy_", list<M::copy>);
  add(table, "aten::_foreach_norm", list<M::norm>);
  add(table, "aten::_amp_foreach_non_finite_check_and_unscale_", list<M::unscale>);
  add(table, "aten::_fused_adamw_", list<M::fused_adamw>);
  add(table, "aten::_fused_adam_", list<M::fused_adam>);
  add(table, "aten::_fused_sgd_", list<M::fused_sgd>);
}

}  // namespace ridgeline::trace
