#include "sim/scenario/sequence_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "sim/config/named_file.h"
#include "sim/units/readable_files.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::int64_t kMostTokens = 1 << 24;
constexpr std::size_t kMostLengths = 1'000'000;
constexpr int kStrata = 5, kSteps = 64;  // padded lengths told apart; steps drawn for several ranks
constexpr std::int64_t kMostRanks = 64, kMostMicroBatches = 16;  // drawn of a step

enum class Batches : std::uint8_t { padded, grouped, packed };
constexpr std::array<std::pair<std::string_view, Batches>, 3> kBatches{
    {{"padded", Batches::padded}, {"grouped", Batches::grouped}, {"packed", Batches::packed}}};

/// The standard normal distribution's quantile, by bisection.
double normal_quantile(double share) {
  double low = -9.0, high = 9.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

std::vector<std::int64_t> numbers_of(const Value& key, const std::string& text) {
  std::vector<std::int64_t> numbers;
  std::string spaced = text;
  std::replace_if(
      spaced.begin(), spaced.end(), [](char c) { return c == ',' || c == '[' || c == ']'; }, ' ');
  std::istringstream in(spaced);
  for (std::string word; in >> word;) {
    std::int64_t number = 0;
    for (const char digit : word) number = digit >= '0' && digit <= '9' && number >= 0 ? 10 * number + digit - '0' : -1;
    if (number < 1 || word.size() > 8 || number > kMostTokens)
      key.fail(fmt::format("the file has \"{}\" where a length of 1 to {} tokens is expected", word.substr(0, 20),
                           kMostTokens));
    numbers.push_back(number);
    if (numbers.size() > kMostLengths) key.fail(fmt::format("the file has more than {} lengths", kMostLengths));
  }
  if (numbers.empty()) key.fail("the file has no lengths: expected numbers of tokens");
  return numbers;
}

std::vector<std::int64_t> read_list(const Value& value) {
  std::vector<std::int64_t> numbers;
  for (const Value& item : value.list()) numbers.push_back(item.integer({1, kMostTokens}));
  if (numbers.empty()) value.fail("has no length: expected numbers of tokens");
  return numbers;
}

std::vector<std::int64_t> read_file(const Value& value) {
  constexpr std::size_t kMostBytes = 16U << 20U;
  const std::string name = config::named_file(value);
  check_readable(name);
  std::ifstream file(name, std::ios::binary);
  std::string text(kMostBytes, '\0');
  if (!file) value.fail("there is no such file: expected a list, keys (mean, longest), or a file of numbers");
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() == kMostBytes) value.fail("the file has more than 16 MiB: expected numbers of tokens");
  return numbers_of(value, text);
}

std::vector<std::int64_t> read_distribution(const Mapping& mapping) {
  if (mapping.has("list")) return read_list(mapping["list"]);
  if (mapping.has("file")) return read_file(mapping["file"]);
  const double mean = mapping["mean"].number({1.0, static_cast<double>(kMostTokens)});
  const std::int64_t longest = mapping["longest"].integer({1, kMostTokens});
  if (mean > static_cast<double>(longest)) mapping["mean"].fail("exceeds the longest");
  if (static_cast<double>(longest) > kLongestOverMean * mean)
    mapping["longest"].fail(
        fmt::format("exceeds {} times the mean: expected the lengths themselves (list or file)", kLongestOverMean));
  return log_normal_lengths(mean, longest);
}

/// Numbers from 0 to 1 that are the same on every machine.
class Draws {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (static_cast<double>(state_ >> 11U) + 0.5) / 9007199254740992.0;
  }

 private:
  std::uint64_t state_ = 88172645463325252ULL;
};

/// Rows of a micro-batch whose longest counts.
double rows_of(const SequenceLengths& lengths, const TrainingDescription& training) {
  return lengths.grouped ? 1.0 : static_cast<double>(training.micro_batch);
}

}  // namespace

double SequenceLengths::mean() const {
  return std::accumulate(drawn.begin(), drawn.end(), 0.0) / static_cast<double>(drawn.size());
}

std::int64_t SequenceLengths::at(double share) const {
  const auto place = static_cast<std::size_t>(std::max(0.0, share) * static_cast<double>(drawn.size()));
  return drawn[std::min(place, drawn.size() - 1)];
}

std::vector<std::int64_t> log_normal_lengths(double mean, std::int64_t longest) {
  // mean = exp(m + s²/2), longest = exp(m + z s): of both roots the smaller s.
  const double z = normal_quantile(1.0 - 0.5 / kQuantiles), spread = std::log(static_cast<double>(longest) / mean);
  const double s = z - std::sqrt(std::max(0.0, z * z - 2.0 * spread)), m = std::log(mean) - 0.5 * s * s;
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < kQuantiles; ++i) {
    const double length = std::exp(m + s * normal_quantile((i + 0.5) / kQuantiles));
    lengths.push_back(std::clamp<std::int64_t>(std::llround(length), 1, longest));
  }
  lengths.back() = longest;
  return lengths;
}

std::optional<BatchedLengths> read_lengths(const Value& value) {
  if (!value.exists() || value.is("none")) return std::nullopt;
  BatchedLengths result;
  Batches batches = Batches::padded;
  if (value.is_list()) {
    result.lengths.drawn = read_list(value);
  } else if (!value.is_mapping()) {
    result.lengths.drawn = read_file(value);
  } else {
    const Mapping mapping(value, {"mean", "longest", "list", "file", "batches"});
    result.lengths.drawn = read_distribution(mapping);
    batches = mapping["batches"].choice<Batches>(kBatches, Batches::padded);
  }
  std::sort(result.lengths.drawn.begin(), result.lengths.drawn.end());
  result.lengths.grouped = batches == Batches::grouped;
  result.packed = batches == Batches::packed;
  return result;
}

void take_lengths(const Mapping& mapping, const BatchedLengths& batched, bool one_length,
                  std::optional<SequenceLengths>& lengths, TrainingDescription& t) {
  const Value key = mapping["lengths"];
  if (one_length) key.fail("the network has one length alone: expected no key");
  if (mapping.has("packed_lengths")) key.fail("goes without packed_lengths: expected one of both");
  if (t.parallel.megatron() || t.parallel.pipelined() || t.parallel.one_process() || t.parallel.context > 1)
    key.fail("with Megatron-LM, a pipeline, several devices of a process or shared sequences is not modelled");
  SequenceLengths cut = batched.lengths;
  for (std::int64_t& length : cut.drawn) length = std::min(length, t.sequence_length);
  if (batched.packed) t.packed_lengths = packed_row(cut, t.sequence_length);
  else lengths = std::move(cut);
}

std::int64_t typical_length(const SequenceLengths& lengths, const TrainingDescription& training) {
  const std::vector<std::int64_t> padded = padded_lengths(lengths, training);
  return std::max<std::int64_t>(
      1, std::llround(std::accumulate(padded.begin(), padded.end(), 0.0) / static_cast<double>(padded.size())));
}

std::vector<std::int64_t> packed_row(const SequenceLengths& lengths, std::int64_t row) {
  constexpr double kGolden = 0.6180339887498949;  // shares that fill the distribution evenly, however few are taken
  std::vector<std::int64_t> result;
  double share = 0.5;
  for (std::int64_t left = row; left > 0; left -= result.back()) {
    result.push_back(std::min(lengths.at(share), left));
    share = std::fmod(share + kGolden, 1.0);
  }
  return result;
}

std::vector<std::int64_t> padded_lengths(const SequenceLengths& lengths, const TrainingDescription& training) {
  const double power = 1.0 / rows_of(lengths, training);
  const std::int64_t ranks = std::min(training.parallel.gradient_ranks(), kMostRanks),
                     micro_batches = std::min(training.gradient_accumulation, kMostMicroBatches);
  std::vector<std::int64_t> all;
  if (ranks == 1) {
    for (int i = 0; i < kStrata; ++i) all.push_back(lengths.at(std::pow((i + 0.5) / kStrata, power)));
    return all;
  }
  Draws draws;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::int64_t> slowest;
    std::int64_t most = -1;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> one;
      for (std::int64_t i = 0; i < micro_batches; ++i) one.push_back(lengths.at(std::pow(draws.next(), power)));
      const std::int64_t tokens = std::accumulate(one.begin(), one.end(), std::int64_t{0});
      if (tokens > most) slowest = std::move(one), most = tokens;
    }
    all.insert(all.end(), slowest.begin(), slowest.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> strata;
  for (int i = 0; i < kStrata; ++i) strata.push_back(all[(2 * i + 1) * all.size() / (2 * kStrata)]);
  return strata;
}

double padded_mean(const SequenceLengths& lengths, const TrainingDescription& training) {
  const double power = 1.0 / rows_of(lengths, training);
  double sum = 0.0;
  for (int i = 0; i < kQuantiles; ++i) sum += static_cast<double>(lengths.at(std::pow((i + 0.5) / kQuantiles, power)));
  return sum / kQuantiles;
}

std::string words_of_lengths(const SequenceLengths& lengths, const TrainingDescription& training) {
  const double padding = std::max(0.0, 1.0 - lengths.mean() / padded_mean(lengths, training));
  return fmt::format("sequences of {:.0f} tokens in the mean, {} at most; {:.0f} % of the tokens are padding",
                     lengths.mean(), lengths.longest(), 100.0 * padding);
}

}  // namespace ridgeline
