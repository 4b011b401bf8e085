#include "fit/collective_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/network/collective_range.h"
#include "sim/network/group_links.h"
#include "sim/study/validation/error_statistics.h"
#include "sim/study/validation/measured_collectives.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/units/user_error.h"

namespace ridgeline::fit {
namespace {

constexpr double kOneSide = 0.045;  // nine in a hundred lie outside

struct Rows {
  using Ratios = std::map<std::string, std::vector<double>>;  ///< measured over predicted, by who measured
  Ratios ratios, pairs;                                       ///< pairs: all_to_all and send_recv
  CollectiveRange of;                                         ///< what measured, rows of fits too
  std::uint64_t hash = 0xcbf29ce484222325ull;
};

/// What measurements/DEVIATIONS.md says the law misses, which no range of the others' holds.
bool is_known_deviation(const MeasuredCollective& row) {
  return row.series == "bigscience-v100x16-4nodes" ||
         (row.series == "stas00-b200-x32-4nodes" && row.collective.bytes <= (16 << 20));
}

/// Bridges and PCIe of machines of which a single time was published, and nodes that the law says were not compared.
bool is_one_figure(const Cluster& cluster, const MeasuredCollective& row) {
  if (row.placement.nodes > 1) return row.placement.nodes > 4 || row.placement.ranks_a_node < cluster.gpus;
  const bool linked = cluster.interconnect == Interconnect::nvswitch || cluster.interconnect == Interconnect::mesh;
  return !linked && cluster.links.tree.empty();
}

std::string class_of(const MeasuredCluster& on, const MeasuredCollective& row) {
  if (row.placement.nodes > 1) return "nodes";
  const CollectiveKind kind = row.collective.kind;
  const GroupLinks links = kind == CollectiveKind::send_recv ? pair_links(on.cluster, row.placement)
                                                             : group_links(on.cluster, row.placement);
  const std::string name =
      links.kind == CollectiveLimiter::links ? std::string(name_of(on.cluster.architecture)) : "pcie";
  const std::int64_t bytes = row.collective.bytes;
  return name + (bytes <= kShortCollective ? "_short" : bytes <= kMiddleCollective ? "_middle" : "_long");
}

void add_evidence(CollectiveRange& of, const MeasuredCollective& row) {
  const double ranks = row.placement.ranks;
  of.ranks_from = of.ranks_from == 0.0 ? ranks : std::min(of.ranks_from, ranks);
  of.ranks_to = std::max(of.ranks_to, ranks);
  switch (row.collective.kind) {
    case CollectiveKind::all_reduce: of.reductions = 1; break;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: of.gathers = 1; break;
    case CollectiveKind::all_to_all: of.exchanges = 1; break;
    default: of.copies = 1; break;
  }
}

/// By links and sizes inside a node, and those over nodes: the errors of all rows, fitted on or not, which are alike
/// (two dozen constants, hundreds of rows); those that no fit saw alone are too few for quantiles of a class.
std::map<std::string, Rows> rows_by_class(const MeasurementIndex& index) {
  const MeasuredCollectives measured = load_measured_collectives(index);
  std::map<std::string, Rows> result;
  for (const MeasuredCollective& row : measured.rows) {
    const bool several = row.placement.nodes > 1;
    if (!shows_the_links(row) || (several && row.collective.bytes < kLargeCollective)) continue;
    const MeasuredCluster& on = measured.clusters[static_cast<std::size_t>(row.cluster)];
    if (is_known_deviation(row) || is_one_figure(on.cluster, row)) continue;
    Rows& rows = result[class_of(on, row)];
    add_evidence(rows.of, row);
    const CollectiveTime time = collective_time(on.cluster, on.gpu, row.collective, row.placement);
    const bool pair =
        row.collective.kind == CollectiveKind::all_to_all || row.collective.kind == CollectiveKind::send_recv;
    (pair ? rows.pairs : rows.ratios)[row.published ? "published" : "own"].push_back(
        ratio(row.time, shown_time(row, time.loop, time.call)));
    rows.hash = hash_of(fmt::format("{:x};", row.row), rows.hash);
  }
  return result;
}

/// The widest of what each measured, of all together where none measured often; `either_way`: as far down as up, where
/// few clusters measured.
std::pair<double, double> range_of(const Rows::Ratios& rows, bool either_way) {
  double low = 1.0, high = 1.0;
  constexpr std::size_t kEnough = 6;
  std::map<std::string, std::vector<double>> sets;
  for (const auto& [who, ratios] : rows)
    if (ratios.size() >= kEnough) sets[who] = ratios;
  if (sets.empty())
    for (const auto& [who, ratios] : rows) sets["all"].insert(sets["all"].end(), ratios.begin(), ratios.end());
  for (const auto& [who, ratios] : sets) {
    if (ratios.empty()) continue;
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
    const auto [low, high] = range_of(rows.ratios, name == "nodes");
    const auto [pair_low, pair_high] = range_of(rows.pairs.empty() ? rows.ratios : rows.pairs, name == "nodes");
    const std::map<std::string, double> values{{"low", low},
                                               {"high", high},
                                               {"pair_low", std::min(low, pair_low)},
                                               {"pair_high", std::max(high, pair_high)},
                                               {"ranks_from", rows.of.ranks_from},
                                               {"ranks_to", rows.of.ranks_to},
                                               {"reductions", rows.of.reductions},
                                               {"gathers", rows.of.gathers},
                                               {"exchanges", rows.of.exchanges},
                                               {"copies", rows.of.copies}};
    for (LawConstant& constant : law_class->constants) {
      constant.value = values.at(constant.name);
      constant.text = constant_text(constant.value);
      constant.note = constant.name.ends_with("low") || constant.name.ends_with("high") ? "quantile" : "counted";
    }
    FitRecord record{.data = data_of(rows)};
    std::vector<double> all;
    for (const Rows::Ratios* each : {&rows.ratios, &rows.pairs})
      for (const auto& [who, ratios] : *each)
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
