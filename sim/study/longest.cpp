#include "sim/study/longest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/units/user_error.h"
#include "sim/workload/composition.h"

namespace ridgeline {
namespace {

/// No prediction holds more tokens of one sequence.
constexpr std::int64_t kMostTokens = 1 << 24;

Scenario with_length(const Scenario& scenario, std::int64_t tokens) {
  Scenario result = scenario;
  result.training.sequence_length = tokens;
  return result;
}

}  // namespace

LongestFit fit_length(Session& session, const Scenario& scenario) {
  if (scenario.recorded) throw UserError("--length: a recorded step has the lengths it was recorded with");
  if (!scenario.training.packed_lengths.empty())
    throw UserError(
        "--length: packed sequences have the lengths that the scenario says; expected packed_lengths: none");
  if (only_length(scenario.model) > 0) throw UserError("--length: the network reads images of one size");
  LongestFit result;
  result.capacity = static_cast<std::int64_t>(scenario.gpu.dram.capacity.value());
  const auto& inference = scenario.training.inference;
  result.of_prompt = inference && inference->new_tokens > 0;
  std::int64_t most = kMostTokens / kLengthStep;
  if (scenario.model.has_position_table())
    most = std::min(most, (scenario.model.max_positions - (inference ? inference->new_tokens : 0)) / kLengthStep);
  const auto needs = [&](std::int64_t steps) {
    ++result.predictions;
    return StepRun(session, with_length(scenario, steps * kLengthStep), "analytic").memory().needed;
  };
  std::int64_t low = 0, high = 1;
  while (high <= most) {
    const std::int64_t needed = needs(high);
    if (needed > result.capacity) {
      result.needed_failing = needed;
      break;
    }
    low = high;
    result.needed = needed;
    high *= 2;
  }
  if (high > most) {
    if (low == most) high = most + 1;
    else if (const std::int64_t needed = needs(most); needed <= result.capacity)
      low = most, high = most + 1, result.needed = needed;
    else high = most, result.needed_failing = needed;
  }
  while (high - low > 1 && high <= most) {
    const std::int64_t middle = low + (high - low) / 2, needed = needs(middle);
    if (needed <= result.capacity) low = middle, result.needed = needed;
    else high = middle, result.needed_failing = needed;
  }
  result.tokens = low * kLengthStep;
  result.failing = high <= most ? high * kLengthStep : 0;
  return result;
}

std::int64_t bytes_of_cached_token(const Scenario& scenario) {
  const Precision precision = scenario.training.precision;
  const std::int64_t element = precision == Precision::fp32 || precision == Precision::tf32 ? 4 : 2;
  const std::int64_t heads =
      std::max<std::int64_t>(1, scenario.model.key_value_count() / scenario.training.parallel.tensor);
  return 2 * scenario.model.layers * heads * scenario.model.head_dim() * element;
}

ServerCache server_cache(Session& session, const Scenario& scenario, const ServerMemory& server) {
  if (scenario.recorded || !scenario.training.inference)
    throw UserError(
        "--server: keys and values are kept by a network in use; expected an inference section or --prompt");
  Scenario pass = scenario;
  pass.training.inference->sequences = pass.training.micro_batch = 1;
  pass.training.inference->beams = 1;
  pass.training.inference->new_tokens = 1;
  pass.training.sequence_length = server.batched_tokens;
  const MemoryPrediction memory = StepRun(session, pass, "analytic").memory();
  ServerCache result;
  result.asked = server;
  result.capacity = memory.capacity;
  result.given = static_cast<std::int64_t>(server.utilization * static_cast<double>(memory.capacity));
  result.context = memory.context;
  result.weights = memory.needed_at_peak[static_cast<std::size_t>(Category::weights)];
  result.bytes_of_token = bytes_of_cached_token(scenario);
  // The pass keeps keys and values of its own tokens; the server's lie in its blocks.
  const std::int64_t own = result.bytes_of_token * server.batched_tokens;
  result.rest_of_peak = std::max<std::int64_t>(0, memory.needed - memory.context - result.weights - own);
  result.cache = result.given - result.context - result.weights - result.rest_of_peak;
  if (result.cache <= 0) {
    result.cache = 0;
    return result;
  }
  result.blocks = result.cache / (result.bytes_of_token * server.block);
  result.tokens = result.blocks * server.block;
  result.sequences = static_cast<double>(result.tokens) / static_cast<double>(server.context);
  return result;
}

}  // namespace ridgeline
