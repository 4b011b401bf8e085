#include "sim/answer/ranges/residual_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/config/data_folder.h"
#include "sim/hardware/chip_distance.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct LawsOfFamily {
  std::string_view name;
  Laws laws;  ///< that a kernel of it is timed by
};
constexpr Laws kEvery = Law::occupancy | Law::power | static_cast<Laws>(Law::hierarchy);
constexpr Laws kMemoryBound = kEvery | (Law::stream | Law::code) | (Law::residency | Law::copies);
constexpr Laws kProduct = kEvery | (Law::choice | Law::product) | static_cast<Laws>(Law::residency);
constexpr std::array<LawsOfFamily, 7> kFamilyLaws{
    {{"gemm", kProduct},
     {"attention", kEvery | (Law::choice | Law::attention) | static_cast<Laws>(Law::residency)},
     {"convolution", kProduct | static_cast<Laws>(Law::convolution)},
     {"reduction", kMemoryBound},
     {"pointwise", kMemoryBound},
     {"generated", kMemoryBound},
     {"other", kMemoryBound}}};
/// Of a step: gaps and launches too.
constexpr Laws kOfTime =
    kProduct | kMemoryBound | (Law::attention | Law::convolution) | static_cast<Laws>(Law::timeline);

constexpr std::array<std::string_view, 4> kSizeNames{"small", "medium", "large", "any"};

std::size_t index_of(std::string_view family) {
  for (std::size_t i = 0; i < kFamilyLaws.size(); ++i)
    if (kFamilyLaws[i].name == family) return i;
  return kFamilyLaws.size() - 1;
}

std::size_t size_index(Seconds time) {
  const double us = in_microseconds(time);
  return us < 10.0 ? 0 : us < 100.0 ? 1 : 2;
}

/// Factors on kShortestKernel as factors on a shorter time.
Range on_shorter(Range range, Seconds time) {
  const double factor = kShortestKernel.value() / std::max(time.value(), 1e-15);
  range.low = std::min(1.0, range.low * factor);
  range.high *= factor;
  return range;
}

/// The entry of a size, or that of any.
template <class Sizes>
auto of_size_or_any(const Sizes& sizes, std::size_t size) {
  return sizes[size] ? sizes[size] : sizes[kSizeNames.size() - 1];
}

template <class Map>
auto find(const Map& map, std::string_view key) -> const typename Map::mapped_type* {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// From the half-width of near GPUs to that of all GPUs: wider from the first step, narrower beyond kNearby alone.
double towards(double near, double all, double distance) {
  const double strange = std::min(1.0, distance / kStranger),
               beyond = std::clamp((distance - kNearby) / (kStranger - kNearby), 0.0, 1.0);
  return near + strange * std::max(0.0, all - near) - beyond * std::max(0.0, near - all);
}

}  // namespace

std::string_view size_bucket(Seconds time) { return kSizeNames[size_index(time)]; }

double Range::percent() const { return 100.0 * std::max(high - 1.0, 1.0 - low); }

std::string reason_of(const Range& range, const OperationKind& kind) {
  switch (range.evidence) {
    case Evidence::measured: return "";
    case Evidence::software: return "this GPU was measured with other versions of the software";
    case Evidence::size:
      return fmt::format("{} was measured on this GPU in other sizes, up to {:.3g} ms", kind.words(),
                         1e3 * range.longest.value());
    case Evidence::type: return fmt::format("{} was measured on this GPU in other types or kernels", kind.operation);
    case Evidence::operation:
      return fmt::format("no {} was measured on this GPU; operations left out are met within {:.0f} %", kind.words(),
                         range.percent());
    case Evidence::gpu:
      return fmt::format("no {} was measured on this GPU; GPUs left out are met within {:.0f} %", kind.words(),
                         range.percent());
    case Evidence::none: break;
  }
  return "nothing comparable was measured: the range is a guess";
}

ResidualRanges::Cells ResidualRanges::cells_of(const nlohmann::json& list) {
  Cells cells;
  for (const auto& [key, sizes] : list.items()) {
    Sizes& into = cells[key];
    for (std::size_t i = 0; i < kSizes; ++i) {
      const auto found = sizes.find(kSizeNames[i]);
      if (found == sizes.end()) continue;
      // A law that errs one way only has no prediction outside its own range.
      into[i] = Cell{std::min(1.0, found->at(0).get<double>()), std::max(1.0, found->at(1).get<double>()),
                     microseconds(found->size() > 3 ? found->at(3).get<double>() : 0.0)};
    }
  }
  return cells;
}

ResidualRanges ResidualRanges::from(const nlohmann::json& table) {
  const std::vector<std::string> known = hardware_names();
  ResidualRanges result;
  for (const auto& [name, board] : table.at("gpus").items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) continue;
    MeasuredChip chip;
    chip.name = name;
    chip.software = board.at("software").get<std::vector<std::string>>();
    for (const auto& [engine, cells] : board.at("engines").items()) {
      chip.kinds[engine] = cells_of(cells.at("kinds"));
      chip.families[engine] = cells_of(cells.at("families"));
    }
    result.chips_.push_back(std::move(chip));
  }
  for (const auto& [engine, families] : table.at("elsewhere").items()) result.elsewhere_[engine] = cells_of(families);
  if (const auto steps = table.find("steps"); steps != table.end())
    for (const auto& [gpu, one] : steps->items()) result.steps_[gpu] = {one.at(0).get<int>(), one.at(1).get<double>()};
  if (const auto runs = table.find("runs"); runs != table.end())
    result.runs_ = {std::min(1.0, runs->at(0).get<double>()), std::max(1.0, runs->at(1).get<double>()),
                    runs->at(2).get<int>()};
  if (const auto most = table.find("most"); most != table.end())
    for (const auto& [quantity, value] : most->items()) result.most_[quantity] = value.get<double>();
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

std::optional<ResidualRanges::MeasuredSteps> ResidualRanges::steps_on(const std::string& gpu) const {
  const MeasuredSteps* found = find(steps_, gpu);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

double ResidualRanges::most(const std::string& quantity) const {
  const double* found = find(most_, quantity);
  return found != nullptr ? *found : 0.0;
}

const Gpu& ResidualRanges::MeasuredChip::gpu() const {
  return description->get([&] { return load_gpu(name); });
}

namespace {

/// One of each family, then one of all.
std::vector<double> distances_of(const Gpu& gpu, const Gpu& other) {
  std::vector<Laws> laws;
  for (const LawsOfFamily& family : kFamilyLaws) laws.push_back(family.laws);
  laws.push_back(kOfTime);
  return chip_distances(gpu, other, laws);
}

}  // namespace

ChipRanges::ChipRanges(const ResidualRanges& ranges, const Gpu& gpu, std::string_view software)
    : ranges_(&ranges), gpu_(&gpu) {
  distance_ = std::numeric_limits<double>::infinity();
  // No two measured GPUs are the same to the laws of a family: others need not be read for a GPU as it was measured.
  for (std::size_t i = 0; i < ranges.chips_.size(); ++i) {
    const ResidualRanges::MeasuredChip& chip = ranges.chips_[i];
    if (chip.name != gpu.name) continue;
    const std::vector<double> distances = distances_of(gpu, chip.gpu());
    if (std::any_of(distances.begin(), distances.end(), [](double distance) { return distance > 0.0; })) continue;
    own_ = i;
    look_at(chip, 0.0, software);
    return;
  }
  for (const Near& one : near())
    if (one.of_time < distance_) look_at(*one.chip, one.of_time, software);
}

void ChipRanges::look_at(const ResidualRanges::MeasuredChip& chip, double distance, std::string_view software) {
  distance_ = distance;
  nearest_ = &chip.gpu();
  software_measured_ =
      software.empty() || std::find(chip.software.begin(), chip.software.end(), software) != chip.software.end();
}

const std::vector<ChipRanges::Near>& ChipRanges::near() const {
  return near_->get([&] {
    std::vector<Near> all;
    for (const ResidualRanges::MeasuredChip& chip : ranges_->chips_) {
      const std::vector<double> distances = distances_of(*gpu_, chip.gpu());
      std::copy_n(distances.begin(), kFamilies, all.emplace_back(Near{&chip, {}, distances.back()}).distance.begin());
    }
    return all;
  });
}

bool ChipRanges::is_shipped() const {
  return shipped_->get([&] {
    const std::vector<std::string> names = hardware_names();
    return std::find(names.begin(), names.end(), gpu_->name) != names.end() &&
           chip_distance(*gpu_, load_gpu(gpu_->name), ~Laws{0}) == 0.0;
  });
}

std::shared_ptr<const std::vector<ResidualRanges::OnChip>> ResidualRanges::on_chips(const OperationKind& kind,
                                                                                    std::string_view engine) const {
  const std::string key = kind.key();
  std::string name = fmt::format("{}/{}", engine, key);
  KnownKinds::Kinds& known = known_.get();
  {
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.by_key.find(name); found != known.by_key.end()) return found->second;
  }
  auto made = std::make_shared<std::vector<OnChip>>();
  for (const MeasuredChip& chip : chips_) {
    OnChip& one = made->emplace_back();
    const auto* kinds = find(chip.kinds, engine);
    const auto* families = find(chip.families, engine);
    if (families == nullptr || kinds == nullptr) continue;
    one.any = true;
    one.kind = find(*kinds, key);
    one.family = find(*families, kind.family);
    one.other_type = std::any_of(kinds->begin(), kinds->end(),
                                 [&](const auto& other) { return other.first.starts_with(kind.operation + "/"); });
  }
  const std::lock_guard lock(known.mutex);
  return known.by_key.try_emplace(std::move(name), std::move(made)).first->second;
}

std::optional<Range> ChipRanges::on_this_gpu(const OnChip& measured, Seconds time) const {
  const std::size_t size = size_index(time);
  const auto range_of = [](const ResidualRanges::Cell& cell, Evidence evidence) {
    return Range{cell.low, cell.high, evidence == Evidence::measured, evidence, cell.longest};
  };
  if (!measured.any) return std::nullopt;
  if (const ResidualRanges::Sizes* sizes = measured.kind) {
    const auto& cell = (*sizes)[size];
    const auto& any = (*sizes)[ResidualRanges::kAnySize];
    if (any && time > kBeyondMeasured * any->longest) {
      Range range = range_of(cell ? *cell : *any, Evidence::size);
      range.longest = any->longest;
      return range;
    }
    if (cell) return range_of(*cell, software_measured_ ? Evidence::measured : Evidence::software);
    if (any) return range_of(*any, Evidence::size);
  }
  if (measured.family != nullptr)
    if (const auto cell = of_size_or_any(*measured.family, size))
      return range_of(*cell, measured.other_type ? Evidence::type : Evidence::operation);
  return std::nullopt;
}

Range ChipRanges::on_a_stranger(std::span<const OnChip> measured, const OperationKind& kind, Seconds time,
                                std::string_view engine) const {
  const std::size_t index = index_of(kind.family);
  const std::size_t size = size_index(time);
  struct Width {
    double distance, below, above;
  };
  std::vector<Width> widths;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < near().size(); ++i) {
    const auto range = on_this_gpu(measured[i], time);
    if (!range) continue;
    const double distance = near()[i].distance[index];
    widths.push_back({distance, -std::log(range->low), std::log(range->high)});
    least = std::min(least, distance);
  }
  if (widths.empty()) return Range{};
  double below = 0.0, above = 0.0;
  for (const Width& width : widths) {
    const double faded = kFading * std::max(0.0, width.distance - std::max(least, kNearby));
    below = std::max(below, width.below - faded);
    above = std::max(above, width.above - faded);
  }
  if (const auto* families = find(ranges_->elsewhere_, engine))
    if (const ResidualRanges::Sizes* sizes = find(*families, kind.family))
      if (const auto cell = of_size_or_any(*sizes, size)) {
        below = towards(below, -std::log(cell->low), least);
        above = towards(above, std::log(cell->high), least);
      }
  return {std::exp(-below - kWidening * least), std::exp(above + kWidening * least), false, Evidence::gpu, Seconds{0}};
}

Range ChipRanges::of(const OperationKind& kind, Seconds time, std::string_view engine) const {
  if (time < kShortestKernel) return on_shorter(of(kind, kShortestKernel, engine), time);
  const std::size_t index = index_of(kind.family);
  const auto measured = ranges_->on_chips(kind, engine);  // beside near()
  if (own_) {
    if (const auto range = on_this_gpu((*measured)[*own_], time)) return *range;
  } else {
    for (std::size_t i = 0; i < near().size(); ++i)
      if (near()[i].distance[index] == 0.0)
        if (const auto range = on_this_gpu((*measured)[i], time)) return *range;
  }
  return on_a_stranger(*measured, kind, time, engine);
}

}  // namespace ridgeline
