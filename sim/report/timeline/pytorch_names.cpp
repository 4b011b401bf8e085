#include "sim/report/timeline/pytorch_names.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/config/data_folder.h"
#include "sim/trace/aten/aten_call_of.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline {
namespace {

using Kernels = std::vector<std::string>;
/// By call and types of its first two tensors ("aten::mul|float,float"), the most often recorded first.
using KernelsByName = std::map<std::string, std::vector<Kernels>, std::less<>>;

const KernelsByName& recorded_kernels() {
  static const KernelsByName table = [] {
    std::ifstream file(config::data_folder("data") / "kernel_names.json");
    const auto json = nlohmann::json::parse(file, nullptr, false);
    KernelsByName read;
    if (json.is_object() && json.contains("calls")) read = json["calls"].get<KernelsByName>();
    return read;
  }();
  return table;
}

std::string key_of(const trace::AtenCall& call) {
  std::string key = call.name + "|";
  int types = 0;
  const auto add = [&](std::string_view type) {
    if (++types > 2) return;
    if (types == 2) key += ',';
    key += type;
  };
  for (const trace::Argument& input : call.inputs) {
    if (const auto* tensor = std::get_if<trace::AtenTensor>(&input); tensor != nullptr && !tensor->sizes.empty())
      add(trace::aten_name_of(tensor->type));
    if (std::holds_alternative<trace::TensorList>(input)) add("TensorList");
  }
  return key;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// The element type of a list stands in the kernel's name alone.
bool is_of_type(std::string_view kernel, DType type) {
  if (has(kernel, "OpaqueType<")) return has(kernel, "OpaqueType<" + std::to_string(bytes_of(type)));
  return has(kernel, "BFloat16") == (type == DType::bf16) && has(kernel, "Half") == (type == DType::fp16);
}

/// Whether a recorded kernel works as ours: over contiguous or other operands, in a warp or in a block.
bool alike(const std::string& recorded, const Op& op, const KernelLaunch& ours) {
  if (const auto* pointwise = std::get_if<Pointwise>(&op)) {
    using P = PointwiseFunction;
    const bool tanh = pointwise->function == P::gelu_tanh || pointwise->function == P::gelu_tanh_backward;
    if (has(recorded, "at::native::GeluType)::{lambda()#") && has(recorded, "GeluType)::{lambda()#1}") != tanh)
      return false;
    return has(recorded, "at::native::elementwise_kernel<") == (pointwise->walk != Walk::contiguous);
  }
  if (std::holds_alternative<Softmax>(op)) return has(recorded, "_warp_") == has(ours.name, "warp");
  if (const auto* list = std::get_if<MultiTensor>(&op)) return is_of_type(recorded, list->type);
  if (const auto* copy = std::get_if<Copy>(&op)) {
    if (concatenates(copy->kind)) return is_of_type(recorded, copy->type);
    return has(recorded, "at::native::elementwise_kernel<") == (copy->kind != CopyKind::contiguous);
  }
  return true;
}

/// cuBLAS' kernels are named by type, tile and layout: "nvjet_sm90_tst_192x192_64x4_TNN" is one of bf16.
std::string library_name(const std::string& ours) {
  constexpr std::string_view kNvjet = "nvjet_sm90_";
  if (!ours.starts_with(kNvjet) || ours.size() < kNvjet.size() + 8) return ours;
  std::string name = ours;
  for (const auto& [type, letters] : {std::pair{"bf16_", "tst_"}, std::pair{"fp16_", "hsh_"}})
    if (name.compare(kNvjet.size(), 5, type) == 0) name.replace(kNvjet.size(), 5, std::string(letters));
  for (const auto& [layout, letters] :
       {std::pair{"_nn", "_NNN"}, std::pair{"_nt", "_NTN"}, std::pair{"_tn", "_TNN"}, std::pair{"_tt", "_TTN"}})
    if (name.ends_with(layout)) name.replace(name.size() - 3, 3, letters);
  return name;
}

std::string node_of_pointwise(const Op* op) {
  if (const auto* image = op != nullptr ? std::get_if<ImageOp>(op) : nullptr) {
    constexpr std::array<std::string_view, 5> kNodes{"CudnnBatchNormBackward0", "ReluBackward0",
                                                     "MaxPool2DWithIndicesBackward0", "UpsampleNearest2DBackward0",
                                                     "AvgPool2DBackward0"};
    return std::string(kNodes[static_cast<std::size_t>(image->function)]);
  }
  const auto* pointwise = op != nullptr ? std::get_if<Pointwise>(op) : nullptr;
  if (pointwise == nullptr)
    return op != nullptr && std::holds_alternative<Copy>(*op) ? "CloneBackward0" : "MulBackward0";
  return std::string(row_of(pointwise->function).node);
}

std::string node_of_attention(const Op* op) {
  const auto* attention = op != nullptr ? std::get_if<Attention>(op) : nullptr;
  if (attention != nullptr && attention->backend == AttentionBackend::efficient)
    return "ScaledDotProductEfficientAttentionBackward0";
  if (attention != nullptr && attention->lengths.any()) return "FlashAttentionBackward0";
  return "ScaledDotProductFlashAttentionBackward0";
}

}  // namespace

std::string_view operator_around(HostClass host_class) {
  switch (host_class) {
    case HostClass::linear:
    case HostClass::linear_autocast: return "aten::linear";
    case HostClass::matmul: return "aten::matmul";
    case HostClass::layer_norm:
    case HostClass::layer_norm_module: return "aten::layer_norm";
    case HostClass::attention_cudnn:
    case HostClass::attention_fused: return "aten::scaled_dot_product_attention";
    case HostClass::dropout:
    case HostClass::dropout_off: return "aten::dropout";
    case HostClass::softmax: return "aten::softmax";
    case HostClass::contiguous: return "aten::contiguous";
    case HostClass::view: return "aten::view";
    case HostClass::transpose: return "aten::transpose";
    case HostClass::split: return "aten::split";
    case HostClass::cross_entropy: return "aten::cross_entropy_loss";
    case HostClass::cast: return "aten::to";
    case HostClass::convolution: return "aten::conv2d";
    case HostClass::batch_norm: return "aten::batch_norm";
    default: return "";
  }
}

std::string autograd_node(HostClass host_class, const Op* op) {
  switch (host_class) {
    case HostClass::addmm_backward: return "AddmmBackward0";
    case HostClass::mm_backward: return "MmBackward0";
    case HostClass::bmm_backward: return "BmmBackward0";
    case HostClass::view_backward: return "ViewBackward0";
    case HostClass::view_backward_copy: return "TransposeBackward0";
    case HostClass::accumulate_grad:
    case HostClass::accumulate_grad_add: return "torch::autograd::AccumulateGrad";
    case HostClass::cast_backward: return "ToCopyBackward0";
    case HostClass::layer_norm_backward: return "NativeLayerNormBackward0";
    case HostClass::attention_cudnn_backward: return "ScaledDotProductCudnnAttentionBackward0";
    case HostClass::attention_fused_backward: return node_of_attention(op);
    case HostClass::fan_in_add:
    case HostClass::add_backward: return "AddBackward0";
    case HostClass::softmax_backward: return "SoftmaxBackward0";
    case HostClass::masked_fill_backward: return "MaskedFillBackward0";
    case HostClass::split_backward: return "SplitBackward0";
    case HostClass::embedding_backward:
    case HostClass::embedding_backward_sorted: return "EmbeddingBackward0";
    case HostClass::nll_backward: return "NllLossBackward0";
    case HostClass::log_softmax_backward: return "LogSoftmaxBackward0";
    case HostClass::convolution_backward: return "ConvolutionBackward0";
    case HostClass::batch_norm_backward: return "CudnnBatchNormBackward0";
    case HostClass::pointwise_backward: return node_of_pointwise(op);
    default: return "";
  }
}

std::vector<std::string> kernel_names(const Op& op, const trace::AtenCall& call,
                                      std::span<const KernelLaunch* const> launches) {
  std::vector<std::string> names;
  std::vector<std::size_t> kind;  // of each launch, counting from one different neighbour to the next
  for (const KernelLaunch* launch : launches) {
    const bool fresh = names.empty() || names.back() != launch->name;
    kind.push_back(kind.empty() ? 0 : kind.back() + (fresh ? 1 : 0));
    names.push_back(launch->name);
  }
  if (launches.empty()) return names;
  for (std::string& name : names) name = library_name(name);
  const auto found = recorded_kernels().find(key_of(call));
  if (found == recorded_kernels().end()) return names;
  // What a call clears first is cleared by an operator of its own in PyTorch.
  const std::size_t cleared = launches.front()->name == "fill" && kind.size() > 1 && kind[1] == 1 ? 1 : 0;
  for (const Kernels& recorded : found->second) {
    if (recorded.size() + cleared != kind.back() + 1 || !alike(recorded.front(), op, *launches[cleared])) continue;
    for (std::size_t i = cleared; i < names.size(); ++i) names[i] = recorded[kind[i] - cleared];
    break;
  }
  if (cleared > 0) {
    const auto fill =
        recorded_kernels().find(fmt::format("aten::fill_|{}", trace::aten_name_of(launches.front()->type)));
    if (fill != recorded_kernels().end()) names.front() = fill->second.front().front();
  }
  return names;
}

std::int64_t runtime_version(double cuda) {
  const std::int64_t tenths = std::llround(10.0 * cuda);
  return tenths / 10 * 1000 + tenths % 10 * 10;
}

}  // namespace ridgeline
