#include "fit/fit_class.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "sim/study/validation/error_statistics.h"

namespace ridgeline::fit {
namespace {

using Eigen::VectorXd;
using Cases = std::vector<std::size_t>;

constexpr std::size_t kFolds = 5;

template <class Wanted>
Cases cases_where(const Problem& problem, Wanted wanted) {
  Cases result;
  for (std::size_t i = 0; i < problem.cases.size(); ++i)
    if (wanted(problem.cases[i])) result.push_back(i);
  return result;
}
Cases fitted_cases(const Problem& problem) {
  return cases_where(problem, [](const Observation& one) { return !one.held_out; });
}

std::vector<int> machines_of(const Problem& problem, const Cases& cases) {
  std::vector<int> result;
  for (const std::size_t i : cases) result.push_back(problem.cases[i].machine);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Residuals of `cases`: the logarithm of predicted over measured, in scales of the loss. The law is asked only where
/// its constants changed: derivatives by machines' factors need it not.
Residuals residuals_of(const Problem& problem, const Cases& cases, const Parameters& parameters, double scale) {
  struct Last {
    Values values;
    std::vector<double> seconds;
  };
  auto last = std::make_shared<Last>();
  last->seconds.resize(cases.size());
  return [&problem, &cases, &parameters, scale, last](const VectorXd& u, VectorXd& out) {
    Values values = parameters.values(u);
    if (values != last->values) {
      problem.predict(values, cases, last->seconds);
      last->values = std::move(values);
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Observation& one = problem.cases[cases[i]];
      out[static_cast<Eigen::Index>(i)] =
          (std::log(last->seconds[i] / one.seconds) + parameters.machine(u, one.machine)) / scale;
    }
  };
}

/// `ratios`: of cases before these, which count too.
Errors errors_with(const Problem& problem, const Cases& cases, const Values& values,
                   std::vector<double>* ratios = nullptr) {
  std::vector<double> seconds(cases.size()), own;
  problem.predict(values, cases, seconds);
  std::vector<double>& all = ratios != nullptr ? *ratios : own;
  for (std::size_t i = 0; i < cases.size(); ++i) all.push_back(seconds[i] / problem.cases[cases[i]].seconds);
  const ErrorStatistics statistics = error_statistics(all);
  return {statistics.n, statistics.median, statistics.mean};
}

/// A start around the committed one: factors of e^(-0.4) to e^0.4, or half a prior's spread for those that are amounts.
VectorXd start_near(const Parameters& parameters, std::mt19937_64& random) {
  std::uniform_real_distribution<double> off(-1.0, 1.0);
  VectorXd start = parameters.start();
  for (std::size_t i = 0; i < parameters.constants(); ++i)
    start[static_cast<Eigen::Index>(i)] += off(random) * std::min(0.4, 0.5 * parameters.unknowns()[i].spread);
  return start;
}

/// From several starts, beside each other; the least objective counts. `residuals` makes what one of them asks.
Minimum best_minimum(const std::function<Residuals()>& residuals, std::size_t count, const Parameters& parameters,
                     int starts, ClassReport& report) {
  std::mt19937_64 random(20'261'122);
  std::vector<VectorXd> from;
  for (int i = 0; i < starts; ++i) from.push_back(i == 0 ? parameters.start() : start_near(parameters, random));
  std::vector<Minimum> minima(from.size());
  tbb::parallel_for(std::size_t{0}, from.size(),
                    [&](std::size_t i) { minima[i] = minimize(residuals(), count, parameters.unknowns(), from[i]); });
  const auto best = std::min_element(minima.begin(), minima.end(),
                                     [](const Minimum& a, const Minimum& b) { return a.objective < b.objective; });
  report.iterations = best->iterations;
  report.starts_that_agree = static_cast<int>(std::count_if(
      minima.begin(), minima.end(), [&](const Minimum& one) { return one.objective < best->objective * 1.001 + 0.1; }));
  return *best;
}

/// How far a minimum moved an unknown, over what is nothing: a tenth of its standard deviation, what lies at a bound a
/// thousandth of its range, and the digits of a table.
double moved_over_allowed(const Parameters& parameters, const Minimum& minimum, const Deviations& spread,
                          const VectorXd& from, std::size_t unknown) {
  constexpr double kClose = 0.1, kCloseToBound = 1e-3;
  const auto at = static_cast<Eigen::Index>(unknown);
  const Unknown& one = parameters.unknowns()[unknown];
  const double allowed = minimum.bound[unknown] ? kCloseToBound * (one.to - one.from) : kClose * spread.posterior[at];
  return std::abs(minimum.u[at] - from[at]) / std::max(allowed, parameters.rounding(unknown));
}

/// Fits again from the minimum until that moves nothing: laws with rounds and schedules have small steps, on which a
/// fit may rest that another start passes.
void settle(const Residuals& residuals, std::size_t count, const Parameters& parameters, Minimum& minimum) {
  constexpr int kMostTimes = 8;
  constexpr double kCalm = 0.2;  // of what is nothing
  for (int i = 0; i < kMostTimes; ++i) {
    const VectorXd from = minimum.u;
    minimum = minimize(residuals, count, parameters.unknowns(), from);
    const Deviations spread = deviations(minimum, count, parameters.unknowns());
    double most = 0.0;
    for (std::size_t k = 0; k < parameters.constants(); ++k)
      most = std::max(most, moved_over_allowed(parameters, minimum, spread, from, k));
    if (most < kCalm) return;
  }
}

Errors cross_validated(const Problem& problem, const Cases& cases, const Parameters& parameters, double scale,
                       const VectorXd& from) {
  std::array<Cases, kFolds> unseen;
  for (const std::size_t i : cases) unseen[problem.cases[i].shape % kFolds].push_back(i);
  std::array<Values, kFolds> fitted;
  tbb::parallel_for(std::size_t{0}, unseen.size(), [&](std::size_t fold) {
    Cases seen;
    for (const std::size_t i : cases)
      if (problem.cases[i].shape % kFolds != fold) seen.push_back(i);
    if (seen.empty() || unseen[fold].empty()) return;
    fitted[fold] = parameters.values(
        minimize(residuals_of(problem, seen, parameters, scale), seen.size(), parameters.unknowns(), from).u);
  });
  std::vector<double> ratios;
  Errors errors;
  for (std::size_t fold = 0; fold < unseen.size(); ++fold)
    if (!fitted[fold].empty()) errors = errors_with(problem, unseen[fold], fitted[fold], &ratios);
  return errors;
}

std::string note_of(const ClassPriors& known, const std::string& name, bool bound) {
  if (bound) return "at its bound";
  if (known.frozen.count(name) > 0) return "frozen";
  if (known.ties.count(name) > 0) return "tied";
  return known.fitted.count(name) > 0 ? "" : "kept";
}

/// The values that the table will hold: fitted ones to four digits, then what is tied to them.
void write_constants(LawClass& law_class, const ClassPriors& known, const Parameters& parameters,
                     const Minimum& minimum, const Deviations& spread, ClassReport& report) {
  const Values values = parameters.values(minimum.u);
  std::map<std::string, std::size_t> unknown;
  for (std::size_t i = 0; i < parameters.constants(); ++i) unknown[parameters.unknowns()[i].name] = i;
  for (LawConstant& constant : law_class.constants) {
    const auto fitted = unknown.find(constant.name);
    const bool kept =
        known.fitted.count(constant.name) + known.frozen.count(constant.name) + known.ties.count(constant.name) == 0;
    const bool bound = fitted != unknown.end() && minimum.bound[fitted->second];
    ConstantReport line{
        .name = constant.name, .before = constant.value, .after = values.at(constant.name), .bound = bound};
    if (!kept) {
      constant.text = constant_text(values.at(constant.name));
      constant.value = std::stod(constant.text);
    }
    constant.sd.reset();
    if (fitted != unknown.end()) {
      const auto at = static_cast<Eigen::Index>(fitted->second);
      line.sd = parameters.percent(fitted->second, spread.posterior[at], constant.value);
      line.data_sd = parameters.percent(fitted->second, spread.data[at], constant.value);
      if (!bound) constant.sd = line.sd;
    }
    constant.note = note_of(known, constant.name, bound);
    report.constants.push_back(line);
  }
}

}  // namespace

std::string data_hash(const Problem& problem) {
  std::uint64_t hash = hash_of(problem.name);
  for (const Observation& one : problem.cases)
    if (!one.held_out) hash = hash_of(fmt::format("{:x} {};", one.row, one.machine), hash);
  return fmt::format("x{:016x}", hash);
}

ClassReport fit_class(LawTable& table, LawClass& law_class, const Priors& priors, const ClassPriors& known,
                      const Problem& problem, const std::vector<std::string>& machines, const FitOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  ClassReport report{.name = law_class.name};
  const Cases seen = fitted_cases(problem),
              unseen = cases_where(problem, [](const Observation&one) { return one.held_out; });
  const std::vector<int> of_machines = machines_of(problem, seen);
  const Values before = law_class.values();
  report.before.in_sample = errors_with(problem, seen, before);
  report.before.held_out = errors_with(problem, unseen, before);
  const Parameters parameters(table, law_class, priors, known, of_machines);
  const auto residuals = [&] { return residuals_of(problem, seen, parameters, priors.scale); };
  Minimum minimum = best_minimum(residuals, seen.size(), parameters, options.starts, report);
  settle(residuals(), seen.size(), parameters, minimum);
  const Deviations spread = deviations(minimum, seen.size(), parameters.unknowns());
  FitRecord record{.loss = minimum.loss, .data = data_hash(problem)};
  for (const int machine : of_machines)
    if (machine != 0)
      record.machines[machines[static_cast<std::size_t>(machine)]] =
          100.0 * std::expm1(parameters.machine(minimum.u, machine));
  if (options.cross_validate)
    record.cross_validated = cross_validated(problem, seen, parameters, priors.scale, minimum.u);
  write_constants(law_class, known, parameters, minimum, spread, report);
  record.in_sample = errors_with(problem, seen, law_class.values());
  record.held_out = errors_with(problem, unseen, law_class.values());
  report.after = record;
  law_class.fit = record;
  law_class.numbers = law_class.hash();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

void set_known(const LawTable& table, LawClass& law_class, const Priors& priors, const ClassPriors& known) {
  const Parameters parameters(table, law_class, priors, known, {});
  const Values values = parameters.values(parameters.start());
  for (LawConstant& constant : law_class.constants) {
    if (known.frozen.count(constant.name) + known.ties.count(constant.name) > 0) {
      constant.text = constant_text(values.at(constant.name));
      constant.value = std::stod(constant.text);
    }
    constant.sd.reset();
    constant.note = note_of(known, constant.name, false);
  }
}

std::vector<std::string> check_class(const LawTable& table, const LawClass& law_class, const Priors& priors,
                                     const ClassPriors& known, const Problem& problem,
                                     const std::vector<std::string>& machines) {
  std::vector<std::string> wrong;
  if (!law_class.fit) return {"was never fitted by this program"};
  if (law_class.numbers != law_class.hash()) wrong.push_back("a number was changed by hand");
  if (law_class.fit->data != data_hash(problem)) wrong.push_back("the measurements or what is read of them changed");
  const Cases seen = fitted_cases(problem);
  const Parameters parameters(table, law_class, priors, known, machines_of(problem, seen));
  for (const std::string& one : parameters.disagreements()) wrong.push_back(one);
  const VectorXd start = parameters.start(*law_class.fit, machines);
  const Minimum minimum =
      minimize(residuals_of(problem, seen, parameters, priors.scale), seen.size(), parameters.unknowns(), start);
  const Deviations spread = deviations(minimum, seen.size(), parameters.unknowns());
  for (std::size_t i = 0; i < parameters.constants(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    if (moved_over_allowed(parameters, minimum, spread, start, i) > 1.0)
      wrong.push_back(fmt::format("{} is {:.4g}; the optimum is {:.4g}, {:.2g} standard deviations away",
                                  parameters.unknowns()[i].name, law_class.values().at(parameters.unknowns()[i].name),
                                  parameters.values(minimum.u).at(parameters.unknowns()[i].name),
                                  std::abs(minimum.u[at] - start[at]) / std::max(1e-12, spread.posterior[at])));
  }
  return wrong;
}

}  // namespace ridgeline::fit
