#include "sim/scenario/residual_ranges.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/config/data_folder.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct FamilyName {
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
  std::string_view operator()(const FusedKernel& op) const {
    return op.shape == FusedKernel::Shape::pointwise ? "pointwise" : "reduction";
  }
  std::string_view operator()(const UnknownOp&) const { return "other"; }
  std::string_view operator()(const auto&) const { return "pointwise"; }
};

}  // namespace

std::string_view family_of(const Op& op) { return std::visit(FamilyName{}, op); }

std::string_view size_bucket(Seconds time) {
  const double us = in_microseconds(time);
  return us < 10.0 ? "small" : us < 100.0 ? "medium" : "large";
}

ResidualRanges ResidualRanges::from(const nlohmann::json& table) {
  ResidualRanges result;
  for (const auto& [key, value] : table.at("ranges").items())
    result.ranges_[key] = Range{value.at("low").get<double>(), value.at("high").get<double>(), true};
  return result;
}

ResidualRanges ResidualRanges::load() {
  std::ifstream file(config::data_folder("hw") / "residuals.json");
  if (!file) return {};
  try {
    return from(nlohmann::json::parse(file));
  } catch (const nlohmann::json::exception& e) {
    throw UserError(fmt::format(
        "hw/residuals.json is damaged ({}); regenerate it with `ridgeline validate --write-residuals`", e.what()));
  }
}

Range ResidualRanges::of_kernel(const Op& op, Seconds time, const Gpu& gpu, std::string_view engine) const {
  Range range = of_family(family_of(op), time, gpu, engine);
  // Nobody measured sparse products, nor kernels that a hardware file makes up.
  if (const auto* product = std::get_if<Matmul>(&op);
      product != nullptr && (product->sparse != SparseOperand::none || !gpu.gemm.tiles.empty()))
    range.validated = false;
  return range;
}

Range ResidualRanges::of_family(std::string_view family, Seconds time, const Gpu& gpu, std::string_view engine) const {
  const std::string_view size = size_bucket(time);
  // From the most specific group of comparable kernels to the least: this GPU, its architecture, any GPU.
  for (const std::string& group :
       {gpu.name, fmt::format("sm_{}{}", gpu.compute_major, gpu.compute_minor), std::string("any")})
    for (const std::string_view bucket : {size, std::string_view("any")})
      if (const auto found = ranges_.find(fmt::format("{}/{}/{}/{}", engine, group, family, bucket));
          found != ranges_.end()) {
        Range range = found->second;
        range.validated = group != "any";
        return range;
      }
  return Range{};
}

}  // namespace ridgeline
