#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fit/fit_class.h"
#include "sim/units/user_error.h"

namespace ridgeline::fit {
namespace {

double other_value(const LawTable& table, const Values& own, const std::string& to) {
  const std::size_t slash = to.find('/');
  if (slash == std::string::npos) {
    if (const auto found = own.find(to); found != own.end()) return found->second;
  } else {
    for (const LawClass& other : table.classes)
      if (other.name == to.substr(0, slash))
        for (const LawConstant& constant : other.constants)
          if (constant.name == to.substr(slash + 1)) return constant.value;
  }
  throw UserError(fmt::format("fit/priors/{}.yaml: a tie points to {}, which is no constant", table.name, to));
}

bool is_kept(const ClassPriors& known, const std::string& name) {
  return std::any_of(known.kept.begin(), known.kept.end(),
                     [&](const std::string& prefix) { return prefix == "all" || name.starts_with(prefix); });
}

constexpr double kMachineBound = 0.08;

}  // namespace

Parameters::Parameters(const LawTable& table, const LawClass& law_class, const Priors& priors, const ClassPriors& known,
                       const std::vector<int>& machines)
    : table_(table), class_(law_class), known_(known) {
  const Values values = law_class.values();
  const auto refuse = [&](const std::string& name, const char* why) {
    throw UserError(fmt::format("fit/priors/{}.yaml: {}: {} {}", table.name, law_class.name, name, why));
  };
  for (const auto& [name, value] : values) {
    const std::size_t places = known.fitted.count(name) + known.frozen.count(name) + known.ties.count(name) +
                               static_cast<std::size_t>(is_kept(known, name));
    if (places == 0) refuse(name, "is neither fitted nor frozen, tied or kept");
    if (places > 1) refuse(name, "is listed twice");
  }
  for (const auto& [name, value] : known.frozen)
    if (values.count(name) == 0) refuse(name, "is frozen and no constant of the class");
  std::vector<double> start;
  const auto add = [&](const std::string& name, const Fitted& prior, double value) {
    const bool logarithmic = prior.logarithmic();
    const auto u = [&](double x) { return logarithmic ? std::log(std::max(x, prior.from)) : x; };
    unknowns_.push_back(
        {name, u(prior.from), u(prior.to), u(prior.centre), logarithmic ? std::log(prior.spread) : prior.spread});
    logarithmic_.push_back(logarithmic);
    start.push_back(u(std::clamp(value, prior.from, prior.to)));
  };
  std::vector<std::string> factors;
  for (const auto& [name, tie] : known.ties) {
    if (values.count(name) == 0) refuse(name, "is tied and no constant of the class");
    if (!tie.factor.empty() && std::find(factors.begin(), factors.end(), tie.factor) == factors.end())
      factors.push_back(tie.factor);
  }
  for (const auto& [name, prior] : known.fitted) {
    if (std::find(factors.begin(), factors.end(), name) != factors.end()) continue;
    if (values.count(name) == 0) refuse(name, "is fitted and no constant of the class");
    add(name, prior, values.at(name));
  }
  constants_ = unknowns_.size();
  for (const std::string& factor : factors) {
    const auto prior = known.fitted.find(factor);
    if (prior == known.fitted.end()) refuse(factor, "is the factor of a tie and not fitted");
    factors_[factor] = unknowns_.size();
    double value = prior->second.centre;
    for (const auto& [name, tie] : known.ties)
      if (tie.factor == factor) value = values.at(name) / other_value(table, values, tie.to);
    add(factor, prior->second, value);
  }
  for (const int machine : machines) {
    if (machine == 0) continue;
    machines_[machine] = unknowns_.size();
    add(fmt::format("machine {}", machine), {-kMachineBound, kMachineBound, 0.0, priors.machine_spread}, 0.0);
  }
  start_ = Eigen::Map<const Eigen::VectorXd>(start.data(), static_cast<Eigen::Index>(start.size()));
}

Values Parameters::values(const Eigen::VectorXd& u) const {
  Values result = class_.values();
  const auto value = [&](std::size_t i) {
    const double at = u[static_cast<Eigen::Index>(i)];
    return logarithmic_[i] ? std::exp(at) : at;
  };
  for (std::size_t i = 0; i < constants_; ++i) result[unknowns_[i].name] = value(i);
  for (const auto& [name, at] : known_.frozen) result[name] = at;
  for (const auto& [name, tie] : known_.ties)
    result[name] =
        (tie.factor.empty() ? tie.times : value(factors_.at(tie.factor))) * other_value(table_, result, tie.to);
  return result;
}

double Parameters::machine(const Eigen::VectorXd& u, int machine) const {
  const auto found = machines_.find(machine);
  return found == machines_.end() ? 0.0 : u[static_cast<Eigen::Index>(found->second)];
}

Eigen::VectorXd Parameters::start(const FitRecord& record, const std::vector<std::string>& machines) const {
  Eigen::VectorXd result = start_;
  for (const auto& [machine, unknown] : machines_)
    if (const auto found = record.machines.find(machines[static_cast<std::size_t>(machine)]);
        found != record.machines.end())
      result[static_cast<Eigen::Index>(unknown)] = std::log1p(found->second / 100.0);
  return result;
}

double Parameters::rounding(std::size_t unknown) const {
  constexpr double kDigits = 5e-4;
  return logarithmic_[unknown] ? kDigits : kDigits * std::abs(start_[static_cast<Eigen::Index>(unknown)]);
}

double Parameters::percent(std::size_t unknown, double deviation, double value) const {
  const double share = logarithmic_[unknown] ? deviation : deviation / std::max(1e-12, std::abs(value));
  return 100.0 * std::min(share, 100.0);
}

std::vector<std::string> Parameters::disagreements() const {
  std::vector<std::string> result;
  const Values committed = class_.values(), wanted = values(start_);
  for (const auto& [name, value] : committed) {
    if (known_.fitted.count(name) > 0) {
      const Fitted& prior = known_.fitted.at(name);
      if (value < prior.from || value > prior.to)
        result.push_back(fmt::format("{} is {:.4g}, outside {:.4g} to {:.4g}", name, value, prior.from, prior.to));
    } else if (std::abs(value - wanted.at(name)) > 2e-3 * std::abs(wanted.at(name))) {
      result.push_back(fmt::format("{} is {:.4g}; frozen or tied at {:.4g}", name, value, wanted.at(name)));
    }
  }
  return result;
}

}  // namespace ridgeline::fit
