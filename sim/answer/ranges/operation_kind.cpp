#include "sim/answer/ranges/operation_kind.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <variant>

#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline {
namespace {

struct FamilyOfOp {
  std::string_view operator()(const Matmul&) const { return "gemm"; }
  std::string_view operator()(const Attention&) const { return "attention"; }
  std::string_view operator()(const Convolution&) const { return "convolution"; }
  std::string_view operator()(const ImageOp&) const { return "convolution"; }
  std::string_view operator()(const Softmax&) const { return "reduction"; }
  std::string_view operator()(const Norm&) const { return "reduction"; }
  std::string_view operator()(const Reduction&) const { return "reduction"; }
  std::string_view operator()(const NllLoss&) const { return "reduction"; }
  std::string_view operator()(const MultiTensor& op) const {
    return op.function == MultiTensorFunction::norm ? "reduction" : "pointwise";
  }
  std::string_view operator()(const FusedKernel&) const { return "generated"; }
  std::string_view operator()(const UnknownOp&) const { return "other"; }
  std::string_view operator()(const auto&) const { return "pointwise"; }
};

struct NameOfOperation {
  std::string operator()(const Matmul& op) const {
    const std::string product = op.scaling != Scaling::none ? "_scaled_mm" : op.batch > 1 ? "bmm" : "mm";
    return op.sparse == SparseOperand::none ? product : product + " 2:4 sparse";
  }
  std::string operator()(const FusedKernel& op) const {
    constexpr std::array<std::string_view, 4> kShapes{"pointwise", "rows", "long rows", "columns"};
    return fmt::format("triton {}", kShapes[static_cast<std::size_t>(op.shape)]);
  }
  std::string operator()(const auto& op) const {
    std::string name = name_of(Op(op));
    // Channels in groups run kernels of their own.
    if constexpr (requires { op.groups; }) {
      if (op.groups > 1) name += op.groups == op.in_channels ? " depthwise" : " grouped";
    }
    return name;
  }
};

std::string_view type_name(DType type) { return type == DType::bf16 || type == DType::fp16 ? "16-bit" : name_of(type); }

struct TypeOfOperation {
  std::string_view operator()(const Pointwise& op) const { return type_name(op.inputs[0]); }
  std::string_view operator()(const Softmax& op) const { return type_name(op.input); }
  std::string_view operator()(const FusedKernel&) const { return ""; }  // several
  std::string_view operator()(const auto& op) const {
    if constexpr (requires { type_name(op.type); }) return type_name(op.type);
    else return "";
  }
};

struct KernelLawName {
  std::string_view operator()(const GemmWork& work) const {
    if (work.reduces_splits) return "split sum";
    switch (work.family) {
      case GemmWork::Family::wgmma: return "wgmma";
      case GemmWork::Family::mma_sync: return "mma";
      case GemmWork::Family::simt: return "simt";
    }
    return "product";
  }
  std::string_view operator()(const AttentionWork&) const { return "attention"; }
  std::string_view operator()(const MemoryBoundWork& work) const {
    return name_of(static_cast<MemoryBoundKernel>(work.kernel_class));
  }
  std::string_view operator()(const FixedWork& work) const {
    switch (work.what) {
      case FixedWork::What::memset: return "memset";
      case FixedWork::What::helper: return "helper";
      case FixedWork::What::layout_change: return "layout change";
      case FixedWork::What::collective: return "collective";
      default: return "memcpy";
    }
  }
};

}  // namespace

std::string OperationKind::key() const { return fmt::format("{}/{}/{}", operation, type, law); }

std::string OperationKind::words() const { return type.empty() ? operation : fmt::format("{} in {}", operation, type); }

OperationKind kind_of(const Op& op, const KernelLaunch& longest) {
  return {.operation = std::visit(NameOfOperation{}, op),
          .type = std::visit(TypeOfOperation{}, op),
          .law = std::visit(KernelLawName{}, longest.work),
          .family = family_of(op)};
}

std::string_view family_of(const Op& op) { return std::visit(FamilyOfOp{}, op); }

}  // namespace ridgeline
