// The fit of one class of a table, and its test.
#pragma once

#include <string>
#include <vector>

#include "fit/law_table.h"
#include "fit/minimize.h"
#include "fit/priors.h"
#include "fit/problem.h"

namespace ridgeline::fit {

/// The constants of a class as unknowns: those to fit, then the factors of ties, then one factor a machine.
class Parameters {
 public:
  /// `table` holds the values to begin with, and the classes that ties point to. Throws UserError where a constant is
  /// in none of fit, frozen, ties and kept, or in two.
  Parameters(const LawTable& table, const LawClass& law_class, const Priors& priors, const ClassPriors& known,
             const std::vector<int>& machines);

  [[nodiscard]] const std::vector<Unknown>& unknowns() const { return unknowns_; }
  /// The committed values, and no difference between machines.
  [[nodiscard]] const Eigen::VectorXd& start() const { return start_; }
  /// With machines as much slower than the first as a record says.
  [[nodiscard]] Eigen::VectorXd start(const FitRecord& record, const std::vector<std::string>& machines) const;
  /// What rounding to the digits of a table moves an unknown by at most.
  [[nodiscard]] double rounding(std::size_t unknown) const;
  [[nodiscard]] Values values(const Eigen::VectorXd& u) const;
  /// Logarithm of how much slower a machine is than the first.
  [[nodiscard]] double machine(const Eigen::VectorXd& u, int machine) const;
  /// Standard deviation of a constant in percent of its value, from that of its unknown.
  [[nodiscard]] double percent(std::size_t unknown, double deviation, double value) const;
  [[nodiscard]] std::size_t constants() const { return constants_; }
  /// What the frozen and tied constants of the class should be and are not; empty when all is well.
  [[nodiscard]] std::vector<std::string> disagreements() const;

 private:
  const LawTable& table_;
  const LawClass& class_;
  const ClassPriors& known_;
  std::vector<Unknown> unknowns_;
  std::vector<bool> logarithmic_;
  Eigen::VectorXd start_;
  std::size_t constants_ = 0;                   ///< unknowns that are constants
  std::map<std::string, std::size_t> factors_;  ///< of ties
  std::map<int, std::size_t> machines_;
};

struct FitOptions {
  int starts = 4;  ///< the committed values, and others around them
  bool cross_validate = true;
};

struct ConstantReport {
  std::string name{};
  double before = 0, after = 0;
  double sd = 0, data_sd = 0;  ///< percent, with and without priors
  bool bound = false;
};

struct ClassReport {
  std::string name{};
  FitRecord before{}, after{};
  std::vector<ConstantReport> constants{};
  int starts_that_agree = 0, iterations = 0;
  double seconds = 0;
  bool written = false;
};

/// Fits a class and writes its constants into `table`.
ClassReport fit_class(LawTable& table, LawClass& law_class, const Priors& priors, const ClassPriors& known,
                      const Problem& problem, const std::vector<std::string>& machines, const FitOptions& options);

/// Sets what is frozen or tied of a class that has nothing to fit.
void set_known(const LawTable& table, LawClass& law_class, const Priors& priors, const ClassPriors& known);

/// What is wrong with the committed constants of a class: another hash of data or numbers, frozen ones that moved, and
/// fitted ones that a fit from there moves by more than a tenth of their standard deviation. Empty when all is well.
std::vector<std::string> check_class(const LawTable& table, const LawClass& law_class, const Priors& priors,
                                     const ClassPriors& known, const Problem& problem,
                                     const std::vector<std::string>& machines);

/// Hash of the rows that a class is fitted on.
std::string data_hash(const Problem& problem);

}  // namespace ridgeline::fit
