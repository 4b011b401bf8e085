#include "sim/training_files/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace ridgeline::training_files {

namespace {

constexpr std::int64_t kMostGpus = 1 << 20;

std::int64_t gpus_from(const Facts& facts, std::string_view name, std::int64_t count) {
  if (count > kMostGpus) facts.fail(name, fmt::format("{} GPUs are too many; {} at most", count, kMostGpus));
  return count;
}

}  // namespace

std::int64_t degree_of(const Facts& facts, std::string_view name) {
  return gpus_from(facts, name, std::max<std::int64_t>(1, facts.count(name).value_or(1)));
}

std::int64_t times(const Facts& facts, std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) facts.fail(name, fmt::format("{} x {} is too large", a, b));
  return product;
}

std::optional<std::int64_t> product_of(std::string_view text, std::int64_t hidden) {
  double value = 1.0;
  char operation = '*';
  while (true) {
    const std::size_t next = text.find_first_of("*/");
    const std::string word(text.substr(0, next));
    double factor = static_cast<double>(hidden);
    if (word != "hidden") {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), factor);
      if (word.empty() || error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    }
    value = operation == '*' ? value * factor : value / factor;
    constexpr double kMost = 1e18;
    if (!(std::abs(value) < kMost)) return std::nullopt;
    if (next == std::string_view::npos) return static_cast<std::int64_t>(value);
    operation = text[next];
    text.remove_prefix(next + 1);
  }
}

std::int64_t gpus_of(const Facts& facts, const Asked& asked) {
  if (asked.gpus) return *asked.gpus;
  const auto more = [&](std::int64_t gpus, std::string_view name) {
    return gpus_from(facts, name, gpus * degree_of(facts, name));  // each factor is bounded
  };
  const std::int64_t cut = more(more(degree_of(facts, "tensor"), "pipeline"), "context");
  const auto said = [&](std::string_view name) { return facts.count(name).value_or(0) > 0; };
  if (said("gpus")) return degree_of(facts, "gpus");
  if (said("gpus_per_node")) return more(degree_of(facts, "nodes"), "gpus_per_node");
  if (said("data_ranks")) return more(cut, "data_ranks");
  return more(more(cut, "shard"), "replicate");
}

}  // namespace ridgeline::training_files
