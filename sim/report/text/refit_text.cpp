#include "sim/report/text/refit_text.h"

#include <fmt/format.h>

namespace ridgeline {

std::string refit_text(const RefitResult& result) {
  std::string out = fmt::format("{:<14} {:>7} {:>6}  {}\n", "number", "factor", "sd", "what");
  for (const FittedNumber& number : result.numbers) {
    if (number.settled)
      out += fmt::format("{:<14} {:>7.3f} {:>4.1f} %  {}\n", number.tied->name, number.factor, number.deviation,
                         number.tied->what);
    else
      out += fmt::format("{:<14} {:>7} {:>6}  {}: not settled by these rows, as it was\n", number.tied->name, "1", "",
                         number.tied->what);
  }
  out += fmt::format("\n{:<14} {:>5} {:>17} {:>17} {:>17}\n{:<14} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "",
                     "before", "fitted", "not fitted on", "error in %", "n", "median", "mean", "median", "mean",
                     "median", "mean");
  for (const RefitErrors& e : result.errors)
    out += fmt::format("{:<14} {:>5} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", e.family, e.before.n,
                       e.before.median, e.before.mean, e.fitted.median, e.fitted.mean, e.unseen.median, e.unseen.mean);
  return out;
}

}  // namespace ridgeline
