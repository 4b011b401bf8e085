// What is known of the constants of a table before its fit: fit/priors/TABLE.yaml.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ridgeline::fit {

/// A constant that the data settle, within bounds.
struct Fitted {
  double from = 0, to = 0;
  double centre = 0;
  /// One standard deviation of what is expected: a factor where from > 0 (the fit then works on logarithms), else an
  /// amount.
  double spread = 0;
  [[nodiscard]] bool logarithmic() const { return from > 0.0; }
};

/// A constant that is another one, of the same or of another class, times a number or a fitted factor.
struct Tie {
  std::string to{};      ///< NAME, or CLASS/NAME of a class that is fitted before
  double times = 1;      ///< where `factor` is empty
  std::string factor{};  ///< a fitted unknown that is no constant of the table
};

struct ClassPriors {
  std::map<std::string, Fitted> fitted;
  std::map<std::string, double> frozen;
  std::map<std::string, Tie> ties;
  /// Names that begin so ("all": all) keep what the table says: another fit makes them, or none yet.
  std::vector<std::string> kept{};
};

struct Priors {
  double scale = 0.05;        ///< of the logarithm of a time: errors beyond it count linearly
  double machine_spread = 0;  ///< standard deviation of a machine's factor
  std::vector<std::pair<std::string, ClassPriors>> classes{};  ///< in the order of their fits
  [[nodiscard]] const ClassPriors* find(const std::string& name) const;
};

/// Throws UserError: every entry needs a reason.
Priors read_priors(const std::filesystem::path& path);

}  // namespace ridgeline::fit
