#include "sim/training_files/counts.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace ridgeline::training_files {

std::int64_t degree_of(const Facts& facts, std::string_view name) {
  return std::max<std::int64_t>(1, facts.count(name).value_or(1));
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
    if (next == std::string_view::npos) return static_cast<std::int64_t>(value);
    operation = text[next];
    text.remove_prefix(next + 1);
  }
}

std::int64_t gpus_of(const Facts& facts, const Asked& asked) {
  const std::int64_t cut = degree_of(facts, "tensor") * degree_of(facts, "pipeline") * degree_of(facts, "context");
  if (asked.gpus) return *asked.gpus;
  if (const auto all = facts.count("gpus"); all && *all > 0) return *all;
  if (const auto local = facts.count("gpus_per_node"); local && *local > 0) return degree_of(facts, "nodes") * *local;
  if (const auto ranks = facts.count("data_ranks"); ranks && *ranks > 0) return cut * *ranks;
  return cut * degree_of(facts, "shard") * degree_of(facts, "replicate");
}

}  // namespace ridgeline::training_files
