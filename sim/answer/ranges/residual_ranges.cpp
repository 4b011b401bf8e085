#include "sim/answer/ranges/residual_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/hardware/chip_distance.h"
#include "sim/hardware/load_gpu.h"
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

struct Family {
  std::string_view name;
  Laws laws;  ///< that a kernel of it is timed by
};
constexpr Laws kEvery = Law::occupancy | Law::power | static_cast<Laws>(Law::hierarchy);
constexpr Laws kMemoryBound = kEvery | (Law::stream | Law::code) | (Law::residency | Law::copies);
constexpr Laws kProduct = kEvery | (Law::choice | Law::product) | static_cast<Laws>(Law::residency);
constexpr std::array<Family, 6> kFamilyLaws{
    {{"gemm", kProduct},
     {"attention", kEvery | (Law::choice | Law::attention) | static_cast<Laws>(Law::residency)},
     {"convolution", kProduct | static_cast<Laws>(Law::convolution)},
     {"reduction", kMemoryBound},
     {"pointwise", kMemoryBound},
     {"other", kMemoryBound}}};
/// Of a step: gaps and launches too.
constexpr Laws kOfTime =
    kProduct | kMemoryBound | (Law::attention | Law::convolution) | static_cast<Laws>(Law::timeline);

std::size_t index_of(std::string_view family) {
  for (std::size_t i = 0; i < kFamilyLaws.size(); ++i)
    if (kFamilyLaws[i].name == family) return i;
  return kFamilyLaws.size() - 1;
}

/// Factors on kShortestKernel as factors on a shorter time.
Range on_shorter(Range range, Seconds time) {
  const double factor = kShortestKernel.value() / std::max(time.value(), 1e-15);
  range.low = std::min(1.0, range.low * factor);
  range.high *= factor;
  return range;
}

std::string key_of(std::string_view engine, std::string_view family, std::string_view size) {
  return fmt::format("{}/{}/{}", engine, family, size);
}

}  // namespace

std::string_view family_of(const Op& op) { return std::visit(FamilyName{}, op); }

std::string_view size_bucket(Seconds time) {
  const double us = in_microseconds(time);
  return us < 10.0 ? "small" : us < 100.0 ? "medium" : "large";
}

ResidualRanges ResidualRanges::from(const nlohmann::json& table) {
  const std::vector<std::string> known = hardware_names();
  std::map<std::string, std::map<std::string, Range, std::less<>>> by_chip;
  for (const auto& [key, value] : table.at("ranges").items()) {
    const auto engine = key.find('/'), chip = key.find('/', engine + 1);
    if (chip == std::string::npos) continue;
    // A law that errs one way only has no prediction outside its own range.
    by_chip[key.substr(engine + 1, chip - engine - 1)][key.substr(0, engine) + key.substr(chip)] =
        Range{std::min(1.0, value.at("low").get<double>()), std::max(1.0, value.at("high").get<double>()), true};
  }
  ResidualRanges result;
  for (auto& [name, ranges] : by_chip)
    if (std::find(known.begin(), known.end(), name) != known.end())
      result.chips_.push_back({load_gpu(name), std::move(ranges)});
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
  return ChipRanges(*this, gpu).of_kernel(op, time, engine);
}

Range ResidualRanges::of_family(std::string_view family, Seconds time, const Gpu& gpu, std::string_view engine) const {
  return ChipRanges(*this, gpu).of_family(family, time, engine);
}

ChipRanges::ChipRanges(const ResidualRanges& ranges, const Gpu& gpu) : gpu_(&gpu) {
  distance_ = std::numeric_limits<double>::infinity();
  for (const ResidualRanges::MeasuredChip& chip : ranges.chips_) {
    Near near{&chip, {}};
    for (std::size_t i = 0; i < kFamilies; ++i) near.distance[i] = chip_distance(gpu, chip.gpu, kFamilyLaws[i].laws);
    near_.push_back(near);
    if (const double all = chip_distance(gpu, chip.gpu, kOfTime); all < distance_) {
      distance_ = all;
      nearest_ = &chip.gpu;
    }
  }
}

Range ChipRanges::of_kernel(const Op& op, Seconds time, std::string_view engine) const {
  return of_op(op, of_family(family_of(op), time, engine));
}

Range ChipRanges::of_op(const Op& op, Range family) {
  // Nobody measured sparse products.
  if (const auto* product = std::get_if<Matmul>(&op); product != nullptr && product->sparse != SparseOperand::none)
    family.validated = false;
  return family;
}

Range ChipRanges::of_family(std::string_view family, Seconds time, std::string_view engine) const {
  if (time < kShortestKernel) return on_shorter(of_family(family, kShortestKernel, engine), time);
  const std::size_t index = index_of(family);
  const std::string sized = key_of(engine, family, size_bucket(time)), any = key_of(engine, family, "any");
  struct Width {
    double distance, below, above;
  };
  std::vector<Width> widths;
  double least = std::numeric_limits<double>::infinity();
  for (const Near& near : near_) {
    const auto& ranges = near.chip->ranges;
    const auto of_size = ranges.find(sized), found = of_size != ranges.end() ? of_size : ranges.find(any);
    if (found == ranges.end()) continue;
    const double distance = near.distance[index];
    if (distance == 0.0) {
      Range own = found->second;
      own.validated = of_size != ranges.end();
      return own;
    }
    widths.push_back({distance, -std::log(found->second.low), std::log(found->second.high)});
    least = std::min(least, distance);
  }
  if (widths.empty()) return Range{};
  double below = 0.0, above = 0.0;
  for (const Width& width : widths) {
    const double faded = kFading * (width.distance - least);
    below = std::max(below, width.below - faded);
    above = std::max(above, width.above - faded);
  }
  return {std::exp(-below - kWidening * least), std::exp(above + kWidening * least), false};
}

}  // namespace ridgeline
