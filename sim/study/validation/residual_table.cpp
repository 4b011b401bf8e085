#include "sim/study/validation/residual_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/study/validation/error_statistics.h"

namespace ridgeline {
namespace {

constexpr double kLevel = 0.955;  // of each end; interleaved halves of the cases then hold nine in ten of each other
constexpr double kMixedLevel = 0.97;  // … of rows of several kinds, populations or dies, which know a tail less well
constexpr std::size_t kEnoughKinds = 5;
constexpr std::size_t kSmallest = 0, kAny = 3, kSizes = 4;
constexpr std::array<const char*, kSizes> kSizeNames{"small", "medium", "large", "any"};

struct Weighted {
  double value = 0, weight = 0;
};
using Sample = std::vector<Weighted>;

/// Appends `more` with a total weight of `weight`.
void add(Sample& sample, const std::vector<double>& more, double weight) {
  for (const double value : more) sample.push_back({value, weight / static_cast<double>(more.size())});
}

double weighted_quantile(Sample sample, double q) {
  std::sort(sample.begin(), sample.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double total = 0, passed = 0;
  for (const Weighted& one : sample) total += one.weight;
  for (const Weighted& one : sample)
    if ((passed += one.weight) >= q * total * (1.0 - 1e-12)) return one.value;
  return sample.back().value;
}

struct ResidualBounds {
  double low = 1e300, high = 0;
  void widen(double l, double h) { low = std::min(low, l), high = std::max(high, h); }
};

ResidualBounds bounds_of(const Sample& sample) {
  ResidualBounds bounds;
  if (!sample.empty())
    bounds.widen(weighted_quantile(sample, 1.0 - kMixedLevel), weighted_quantile(sample, kMixedLevel));
  return bounds;
}

double weight_of(const Sample& sample) {
  double total = 0;
  for (const Weighted& one : sample) total += one.weight;
  return total;
}

/// `sample` with as much of `rest` as it lacks of a weight of `whole`.
Sample filled_up(Sample sample, const Sample& rest, double whole) {
  const double lacks = whole - weight_of(sample), has = weight_of(rest);
  if (lacks > 0 && has > 0)
    for (const Weighted& one : rest) sample.push_back({one.value, one.weight * lacks / has});
  return sample;
}

/// Few rows have their share of kOwnRange of the weight.
Sample of_few_rows(const std::vector<double>& rows, const Sample& rest) {
  Sample sample;
  add(sample, rows, std::min(1.0, static_cast<double>(rows.size()) / kOwnRange));
  return filled_up(std::move(sample), rest, 1.0);
}

/// Residuals of one kind and size, all and by population.
struct KindRows {
  std::vector<double> all;
  std::map<std::string, std::vector<double>> populations;
  double longest_us = 0;
  void add(const ValidatedCase& c, double residual) {
    all.push_back(residual);
    populations[c.source].push_back(residual);
    longest_us = std::max(longest_us, in_microseconds(c.measured));
  }
  /// Nine in ten of every population, not of their mixture alone: a case to come may belong to any.
  /// `of_any_size`: rows of the same kind.
  [[nodiscard]] ResidualBounds bounds(const KindRows& of_any_size) const {
    ResidualBounds bounds;
    Sample every;
    ridgeline::add(every, all, 1.0);
    const auto widen = [&](const std::vector<double>& residuals, const std::vector<double>& in_any_size) {
      if (residuals.size() < static_cast<std::size_t>(kFewestRows)) return;
      if (residuals.size() < kOwnRange) {
        const ResidualBounds few = bounds_of(of_few_rows(residuals, of_few_rows(in_any_size, every)));
        bounds.widen(few.low, few.high);
        return;
      }
      // A finite sample knows its tails less well than it seems: the levels are those of conformal prediction.
      const double n = static_cast<double>(residuals.size()), level = std::min(1.0, kLevel * (n + 1.0) / n);
      bounds.widen(quantile(residuals, 1.0 - level), quantile(residuals, level));
    };
    widen(all, all);
    for (const auto& [source, residuals] : populations) widen(residuals, of_any_size.populations.at(source));
    return bounds;
  }
};
using SizedRows = std::array<KindRows, kSizes>;

struct Board {
  std::string die;
  std::set<std::string> software;
  std::map<std::string, std::map<std::string, SizedRows>> kinds;  ///< by family, then by kind
};

/// Every kind of a family but `left_out` in equal parts. Kinds of fewer than kOwnRange rows count by their rows.
Sample of_kinds(const std::map<std::string, SizedRows>& kinds, std::size_t size, const std::string& left_out = "") {
  Sample sample;
  for (const auto& [kind, rows] : kinds)
    if (kind != left_out && !rows[size].all.empty())
      add(sample, rows[size].all, std::min(1.0, static_cast<double>(rows[size].all.size()) / kOwnRange));
  return sample;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

nlohmann::ordered_json cell(const ResidualBounds& bounds) { return {rounded(bounds.low), rounded(bounds.high)}; }

/// One line for an object that holds no others.
void write_json(std::string& out, const nlohmann::ordered_json& value, const std::string& indent) {
  const bool nested = std::any_of(value.begin(), value.end(), [](const auto& item) { return item.is_object(); });
  if (!value.is_object() || !nested) {
    out += value.dump();
    return;
  }
  out += "{";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    out += (first ? "\n" : ",\n") + indent + " " + nlohmann::json(key).dump() + ": ";
    write_json(out, item, indent + " ");
    first = false;
  }
  out += "\n" + indent + "}";
}

/// The table of one engine.
class EngineTable {
 public:
  void add(const ValidatedCase& c, Seconds predicted) { add_as(c, c.kind.family, c.kind.key(), predicted); }
  /// As an operation that nobody has a law for, costed by its bytes.
  void add_by_bytes(const ValidatedCase& c) { add_as(c, "other", c.kind.key() + " by bytes", *c.by_bytes); }

  [[nodiscard]] nlohmann::ordered_json of_board(const std::string& name) const {
    const Board& board = boards_.at(name);
    nlohmann::ordered_json kinds = nlohmann::ordered_json::object(), families = nlohmann::ordered_json::object();
    for (const auto& [family, of_family] : board.kinds) {
      for (std::size_t size = kSmallest; size < kSizes; ++size) {
        const Sample own = of_kinds(of_family, size);
        if (own.empty()) continue;
        families[family][kSizeNames[size]] =
            cell(bounds_of(filled_up(own, elsewhere(family, size, ""), static_cast<double>(kEnoughKinds))));
      }
      if (family == "other") continue;
      for (const auto& [kind, rows] : of_family)
        for (std::size_t size = kSmallest; size < kSizes; ++size) {
          const KindRows& here = rows[size];
          if (here.all.size() < static_cast<std::size_t>(kFewestRows)) continue;
          nlohmann::ordered_json& out = kinds[kind][kSizeNames[size]];
          out = cell(here.all.size() >= kOwnRange ? here.bounds(rows[kAny]) : of_few(name, family, kind, size));
          out.push_back(here.all.size());
          out.push_back(std::round(here.longest_us * 100.0) / 100.0);
        }
    }
    return {{"kinds", std::move(kinds)}, {"families", std::move(families)}};
  }

  [[nodiscard]] nlohmann::ordered_json elsewhere() const {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    std::set<std::string> families;
    for (const auto& [name, board] : boards_)
      for (const auto& [family, kinds] : board.kinds) families.insert(family);
    for (const std::string& family : families)
      for (std::size_t size = kSmallest; size < kSizes; ++size)
        if (const Sample sample = elsewhere(family, size, ""); !sample.empty())
          out[family][kSizeNames[size]] = cell(bounds_of(sample));
    return out;
  }

  [[nodiscard]] const std::map<std::string, Board>& boards() const { return boards_; }

 private:
  void add_as(const ValidatedCase& c, std::string_view family, const std::string& kind, Seconds predicted) {
    const double residual = ratio(c.measured, std::max(predicted, kShortestKernel));
    Board& board = boards_[c.hardware];
    board.die = c.die;
    board.software.insert(c.software);
    SizedRows& rows = board.kinds[std::string(family)][kind];
    const std::string_view size = size_bucket(predicted);
    for (std::size_t i = kSmallest; i < kSizes; ++i)
      if (i == kAny || size == kSizeNames[i]) rows[i].add(c, residual);
  }

  /// A range of fewer than kOwnRange rows: they have their share of the weight, the board's other kinds the rest.
  [[nodiscard]] ResidualBounds of_few(const std::string& board, const std::string& family, const std::string& kind,
                                      std::size_t size) const {
    const auto& kinds = boards_.at(board).kinds.at(family);
    Sample others = of_kinds(kinds, size, kind);
    if (others.empty()) others = of_kinds(kinds, kAny, kind);
    others = filled_up(others, elsewhere(family, size, board), 1.0);
    return bounds_of(of_few_rows(kinds.at(kind)[size].all, others));
  }

  /// Dies with kOwnRange rows of a family in equal parts, fewer by their number; `left_out` is a board without a part.
  [[nodiscard]] Sample elsewhere(const std::string& family, std::size_t size, const std::string& left_out) const {
    struct Die {
      std::vector<double> of_size, of_any;
    };
    std::map<std::string, Die> dies;
    for (const auto& [name, board] : boards_) {
      const auto found = board.kinds.find(family);
      if (name == left_out || found == board.kinds.end()) continue;
      Die& die = dies[board.die.empty() ? name : board.die];
      for (const auto& [kind, rows] : found->second) {
        die.of_size.insert(die.of_size.end(), rows[size].all.begin(), rows[size].all.end());
        die.of_any.insert(die.of_any.end(), rows[kAny].all.begin(), rows[kAny].all.end());
      }
    }
    Sample sample;
    for (const auto& [name, die] : dies) {
      // Few rows of a size are no better evidence than those of all sizes.
      const std::vector<double>& residuals = die.of_size.size() >= kOwnRange ? die.of_size : die.of_any;
      ridgeline::add(sample, residuals, std::min(1.0, static_cast<double>(residuals.size()) / kOwnRange));
    }
    return sample;
  }

  std::map<std::string, Board> boards_;
};

void add_steps(nlohmann::ordered_json& table, std::span<const ValidatedStep> steps) {
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, double> most{{"gpus", 1}, {"micro_batch", 1}, {"sequence_length", 1}};
  for (const ValidatedStep& step : steps) {
    if (!step.measured.step_time || step.measured.source.find("not comparable") != std::string::npos) continue;
    errors[step.scenario.gpu.name].push_back(100.0 *
                                             std::abs(ratio(step.predicted.step.time, *step.measured.step_time) - 1.0));
    const TrainingDescription& training = step.scenario.training;
    const auto reach = [&](const char* quantity, std::int64_t value) {
      most[quantity] = std::max(most[quantity], static_cast<double>(value));
    };
    reach("gpus", training.parallel.gpus());
    reach("micro_batch", training.micro_batch);
    reach("sequence_length", training.sequence_length);
  }
  if (errors.empty()) return;
  for (const auto& [gpu, of_gpu] : errors)
    table["steps"][gpu] = {of_gpu.size(), std::round(quantile(of_gpu, 0.5) * 10.0) / 10.0};
  for (const auto& [quantity, value] : most) table["most"][quantity] = value;
}

void add_runs(nlohmann::ordered_json& table, std::span<const ValidatedStep> steps) {
  const RunErrors errors = errors_of_unknown_runs(steps);
  if (errors.publishers < kFewestPublishers) return;
  table["runs"] = {rounded(errors.low), rounded(errors.high), errors.publishers, errors.rows};
}

}  // namespace

bool of_unknown_machine(const ValidatedStep& step) {
  const MeasuredStep& measured = step.measured;
  return !measured.publisher.empty() && measured.seen_by.empty() && !step.scenario.host.known && measured.step_time &&
         measured.source.find("not comparable") == std::string::npos;
}

RunErrors errors_of_unknown_runs(std::span<const ValidatedStep> steps, std::string_view left_out) {
  std::map<std::string, std::vector<double>> publishers;
  RunErrors errors;
  for (const ValidatedStep& step : steps) {
    if (!of_unknown_machine(step) || step.measured.publisher == left_out) continue;
    publishers[step.measured.publisher].push_back(ratio(*step.measured.step_time, step.predicted.step.time));
    ++errors.rows;
  }
  if (publishers.empty()) return errors;
  Sample sample;
  for (const auto& [name, ratios] : publishers) add(sample, ratios, 1.0);
  const ResidualBounds bounds = bounds_of(sample);
  errors.publishers = publishers.size();
  errors.low = std::min(1.0, bounds.low);
  errors.high = std::max(1.0, bounds.high);
  return errors;
}

nlohmann::ordered_json residual_table(std::span<const ValidatedCase> cases, std::span<const ValidatedStep> steps) {
  std::map<std::string, EngineTable> engines;
  for (const ValidatedCase& c : cases) {
    for (const auto& [engine, time] : c.predicted)
      if (engine != "analytic-datasheet") engines[engine].add(c, time);
    if (c.by_bytes) engines["analytic"].add_by_bytes(c);
  }
  nlohmann::ordered_json table{
      {"what",
       "4.5 % and 95.5 % quantiles of measured / predicted kernel time (half a microsecond at least) over cases no "
       "constant was fitted on: [low, high] by size, of kinds [low, high, rows, longest in us]"},
      {"keys", "sim/study/validation/residual_table.h"},
      {"made_by", "ridgeline validate --write-residuals"},
      {"gpus", nlohmann::ordered_json::object()},
      {"elsewhere", nlohmann::ordered_json::object()}};
  for (const auto& [engine, of_engine] : engines) {
    for (const auto& [name, board] : of_engine.boards()) {
      auto& gpu = table["gpus"][name];
      gpu["software"] = board.software;
      gpu["engines"][engine] = of_engine.of_board(name);
    }
    table["elsewhere"][engine] = of_engine.elsewhere();
  }
  add_steps(table, steps);
  add_runs(table, steps);
  return table;
}

std::string residual_text(const nlohmann::ordered_json& table) {
  std::string text;
  write_json(text, table, "");
  return text + "\n";
}

}  // namespace ridgeline
