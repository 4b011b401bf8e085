#include "sim/answer/ranges/beyond_measured.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace ridgeline {
namespace {

/// "8,000,000"
std::string with_commas(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace

std::vector<std::string> beyond_measured(const Scenario& scenario, const ResidualRanges& ranges) {
  std::vector<std::string> sentences;
  if (scenario.recorded) return sentences;
  const auto check = [&](const char* quantity, const char* words, std::int64_t value) {
    const double most = ranges.most(quantity);
    if (most > 0.0 && static_cast<double>(value) > kBeyondMeasured * most)
      sentences.push_back(fmt::format("{} of {} is beyond measured steps, which reach {}: the time is extrapolated.",
                                      words, with_commas(value), with_commas(static_cast<std::int64_t>(most))));
  };
  const TrainingDescription& training = scenario.training;
  check("gpus", "A number of GPUs", training.parallel.gpus());
  check("sequence_length", "A sequence length", training.sequence_length);
  check("micro_batch", "A micro-batch", training.micro_batch);
  return sentences;
}

}  // namespace ridgeline
