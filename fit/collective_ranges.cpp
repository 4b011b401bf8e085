#include "fit/collective_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/study/validation/error_statistics.h"
#include "sim/study/validation/measured_collectives.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/units/user_error.h"

namespace ridgeline::fit {
namespace {

constexpr double kOneSide = 0.045;  // nine in a hundred lie outside

struct Rows {
  std::map<std::string, std::vector<double>> ratios;  ///< measured over predicted, by who measured
  std::uint64_t hash = 0xcbf29ce484222325ull;
};

/// What measurements/DEVIATIONS.md says the law misses, which no range of the others' holds.
bool is_known_deviation(const MeasuredCollective& row) {
  return row.series == "bigscience-v100x16-4nodes" ||
         (row.series == "stas00-b200-x32-4nodes" && row.collective.bytes <= (16 << 20));
}

/// large and small collectives of one node, and those over nodes, of links that the law knows. Within a node rows that
/// no fit saw; over nodes, where the law has no constants of its own, all.
std::map<std::string, Rows> rows_by_class(const MeasurementIndex& index) {
  const MeasuredCollectives measured = load_measured_collectives(index);
  std::map<std::string, Rows> result;
  for (const MeasuredCollective& row : measured.rows) {
    const bool several = row.placement.nodes > 1;
    const bool large = row.collective.bytes >= kLargeCollective;
    if (!several && !row.held_out) continue;
    if (row.published && !large) continue;  // the time of its program
    const MeasuredCluster& on = measured.clusters[static_cast<std::size_t>(row.cluster)];
    const CollectiveTime time = collective_time(on.cluster, on.gpu, row.collective, row.placement);
    if (!time.validated || is_known_deviation(row)) continue;
    Rows& rows = result[several ? "nodes" : large ? "large" : "small"];
    rows.ratios[row.published ? "published" : "own"].push_back(ratio(row.time, time.call));
    rows.hash = hash_of(fmt::format("{:x};", row.row), rows.hash);
  }
  return result;
}

/// The widest of what each measured; `either_way`: as far down as up, where few clusters measured.
std::pair<double, double> range_of(const Rows& rows, bool either_way) {
  double low = 1.0, high = 1.0;
  for (const auto& [who, ratios] : rows.ratios) {
    low = std::min(low, quantile(ratios, kOneSide));
    high = std::max(high, quantile(ratios, 1.0 - kOneSide));
  }
  if (either_way) {
    const double farther = std::max(1.0 / low, high);
    low = 1.0 / farther;
    high = farther;
  }
  return {std::floor(100.0 * low) / 100.0, std::ceil(100.0 * high) / 100.0};
}

std::string data_of(const Rows& rows) { return fmt::format("x{:016x}", rows.hash); }

}  // namespace

void set_collective_ranges(const MeasurementIndex& index, LawTable& table) {
  for (const auto& [name, rows] : rows_by_class(index)) {
    LawClass* law_class = table.find(name);
    if (law_class == nullptr) throw UserError(fmt::format("{}: no class {}", table.name, name));
    const auto [low, high] = range_of(rows, name == "nodes");
    for (LawConstant& constant : law_class->constants) {
      constant.value = constant.name == "low" ? low : high;
      constant.text = constant_text(constant.value);
      constant.note = "quantile";
    }
    FitRecord record{.data = data_of(rows)};
    std::vector<double> all;
    for (const auto& [who, ratios] : rows.ratios)
      for (const double one : ratios) all.push_back(1.0 / one);
    const ErrorStatistics errors = error_statistics(all);
    record.held_out = {errors.n, errors.median, errors.mean};
    law_class->fit = record;
    law_class->numbers = law_class->hash();
  }
}

std::vector<std::string> check_collective_ranges(const MeasurementIndex& index, const LawTable& table) {
  LawTable made = table;
  set_collective_ranges(index, made);
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const LawClass &was = table.classes[i], &is = made.classes[i];
    if (was.numbers != was.hash()) wrong.push_back(fmt::format("{}: a number was changed by hand", was.name));
    if (!was.fit || was.fit->data != is.fit->data)
      wrong.push_back(fmt::format("{}: the measurements or what is read of them changed", was.name));
    for (std::size_t k = 0; k < was.constants.size(); ++k)
      if (std::abs(was.constants[k].value - is.constants[k].value) > 1e-9)
        wrong.push_back(fmt::format("{}: {} is {}; the rows give {}", was.name, was.constants[k].name,
                                    was.constants[k].value, is.constants[k].value));
  }
  return wrong;
}

}  // namespace ridgeline::fit
