// Networks of one block whose sizes are all different, so that no size can stand for another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/recorded_text.h"

namespace ridgeline::testing_support {

/// Hidden 12 in 2 heads of 6, feed-forward 20, 17 words, 7 positions; no dropout.
inline ModelDescription odd_network(ModelFamily family) {
  ModelDescription model;
  model.family = family;
  model.layers = 1;
  model.heads = 2;
  model.hidden = 12;
  model.feed_forward = 20;
  model.vocabulary = 17;
  model.max_positions = 7;
  model.type_vocabulary = 3;
  model.labels = 4;
  if (family != ModelFamily::llama) return model;
  model.heads = 6;
  model.hidden = 36;
  model.key_value_heads = 2;
  model.bias = false;
  model.activation = Activation::swiglu;
  model.tie_embeddings = false;
  return model;
}

/// A composition of the same sizes with a layer norm before each part and no positions; `keys` say more.
inline ModelDescription odd_composition(const std::string& keys = "") {
  std::string yaml = "{family: composed, heads: 2, hidden: 12, feed_forward: 20, vocabulary: 17, max_positions: 7";
  if (!keys.starts_with("layers: ") && keys.find(", layers: ") == keys.npos) yaml += ", layers: 1";
  const config::Node tree = config::parse_yaml(yaml + (keys.empty() ? "" : ", ") + keys + "}", "model.yaml");
  return load_model(config::Value(tree));
}

/// 3 sequences of 5 tokens, 15 rows, in bf16; gradients are dropped.
inline TrainingDescription odd_training() {
  TrainingDescription training;
  training.micro_batch = 3;
  training.sequence_length = 5;
  training.precision = Precision::bf16;
  training.optimizer.kind = OptimizerKind::none;
  return training;
}

/// A step, and what else it does after a change.
struct OddStep {
  using Change = std::function<void(OddStep&)>;

  ModelDescription model;
  TrainingDescription training = odd_training();
  AttentionChoice attention = AttentionChoice::flash;

  explicit OddStep(ModelFamily family) : model(odd_network(family)) {}
  explicit OddStep(ModelDescription given) : model(std::move(given)) {}
  [[nodiscard]] OpTrace trace() const { return training_run(model, training, attention); }
  /// The whole step, after a new line.
  [[nodiscard]] std::string text() const { return "\n" + last_step_in_words(trace()); }
  /// Of what the host does under names that have one of these words in them, after a new line.
  [[nodiscard]] std::string about(const std::vector<std::string>& words) const {
    return "\n" + last_step_about(trace(), words);
  }
  [[nodiscard]] OddStep but(const Change& change) const {
    OddStep other = *this;
    change(other);
    return other;
  }
  /// After a new line.
  [[nodiscard]] std::string changed(const Change& change) const {
    return "\n" + changes_of_last_step(trace(), but(change).trace());
  }
};

/// The lines of a listing that stand under one of these heads ("forward head"), after a new line.
inline std::string under(const std::string& listing, const std::vector<std::string>& heads) {
  std::string kept = "\n";
  bool keeps = false;
  for (std::size_t begin = 0; begin < listing.size();) {
    const std::size_t end = std::min(listing.find('\n', begin), listing.size());
    const std::string line = listing.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("[") && line.ends_with("]"))
      keeps = std::ranges::find(heads, line.substr(1, line.size() - 2)) != heads.end();
    if (keeps && !line.empty()) kept += line + "\n";
  }
  return kept;
}

/// What a composition of `base` does otherwise when it has further keys.
inline std::string changes_by_keys(const std::string& keys, const std::string& base = "",
                                   const OddStep::Change& of_both = {}) {
  const auto step = [&](const std::string& all) {
    OddStep result(odd_composition(all));
    if (of_both) of_both(result);
    return result.trace();
  };
  return "\n" + changes_of_last_step(step(base), step(base.empty() ? keys : base + ", " + keys));
}

}  // namespace ridgeline::testing_support
