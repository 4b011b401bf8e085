// Sequences of several lengths: `training.lengths` of a scenario, and the batches that are made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/value.h"
#include "sim/workload/training.h"

namespace ridgeline {

struct SequenceLengths {
  std::vector<std::int64_t> drawn;  ///< ascending; each as likely as any other
  bool grouped = false;             ///< sequences of a micro-batch are alike in length (group_by_length)
  [[nodiscard]] double mean() const;
  [[nodiscard]] std::int64_t longest() const { return drawn.back(); }
  /// The length that this share of the sequences does not exceed.
  [[nodiscard]] std::int64_t at(double share) const;
  bool operator==(const SequenceLengths&) const = default;
};

/// How a batch is made of the lengths: rows padded to the longest of a micro-batch, or sequences one after the other.
struct BatchedLengths {
  SequenceLengths lengths;
  bool packed = false;
};

/// A list, a file of numbers, or keys: mean and longest, list or file; `batches`. Nothing where the key is not there.
std::optional<BatchedLengths> read_lengths(const config::Value& value);

/// Cuts the lengths at training.sequence_length; packs them into rows, or hands them on in `lengths`. `one_length`: the
/// network has no other. `mapping` is the section that has the key.
void take_lengths(const config::Mapping& mapping, const BatchedLengths& batched, bool one_length,
                  std::optional<SequenceLengths>& lengths, TrainingDescription& training);

/// Quantiles of a logarithmic normal distribution with this mean, whose greatest of kQuantiles is the longest.
std::vector<std::int64_t> log_normal_lengths(double mean, std::int64_t longest);
inline constexpr int kQuantiles = 1000;
/// A longest that is so many times the mean belongs to no such distribution.
inline constexpr double kLongestOverMean = 200.0;

/// Sequences one after the other until they fill a row of so many tokens; the last one is cut.
std::vector<std::int64_t> packed_row(const SequenceLengths& lengths, std::int64_t row);
/// Tokens that micro-batches are padded to, a few of the same weight; of several ranks, those of the one that takes
/// longest in each step.
std::vector<std::int64_t> padded_lengths(const SequenceLengths& lengths, const TrainingDescription& training);
/// Tokens of a micro-batch's rows whose step takes about as long as the mean.
std::int64_t typical_length(const SequenceLengths& lengths, const TrainingDescription& training);
/// Mean tokens that rows are padded to, on all ranks.
double padded_mean(const SequenceLengths& lengths, const TrainingDescription& training);
/// "sequences of 212 tokens in the mean, 768 at most; 33 % of the tokens are padding"
std::string words_of_lengths(const SequenceLengths& lengths, const TrainingDescription& training);

}  // namespace ridgeline
