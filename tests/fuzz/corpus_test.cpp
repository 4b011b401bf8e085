// The fuzz targets over a fixed corpus and over fixed random changes of it. A fuzzer is the same two functions behind
// tests/fuzz/libfuzzer.cc (see there); what it finds goes into corpus/ and stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "sim/allocator/history.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/token_mutator.h"

namespace ridgeline {
namespace {

using Target = std::string (*)(const std::uint8_t*, std::size_t);

std::string run(Target target, const std::string& input) {
  return target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths, contents;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/tests/fuzz/corpus/" + folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

/// One to eight changes: bytes set, bits turned, pieces repeated, cut out or taken from another input.
std::string changed(std::string input, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  for (std::size_t left = 1 + below(8); left > 0 && !input.empty(); --left) {
    const std::size_t at = below(input.size()), length = 1 + below(std::min<std::size_t>(64, input.size() - at));
    switch (random() % 6) {
      case 0: input[at] = static_cast<char>(random()); break;
      case 1: input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.erase(at, length); break;
      case 4: input.insert(at, other.substr(below(other.size()), length)); break;
      default: input.resize(at); break;
    }
  }
  return input;
}

/// A number that whoever looks for more sets: RIDGELINE_FUZZ_RUNS=10000000 RIDGELINE_FUZZ_SEED=2.
std::uint64_t asked_for(const char* variable, std::uint64_t usual) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

/// RIDGELINE_FUZZ_SECONDS: no further run begins once so many have gone by; how many there were is printed.
class Runs {
 public:
  explicit Runs(std::uint64_t most) : most_(most) {}
  ~Runs() {
    if (seconds_ > 0) std::cout << done_ << " runs" << std::endl;
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  bool next() {
    if (done_ >= most_ || (seconds_ > 0 && std::chrono::steady_clock::now() > begin_ + std::chrono::seconds(seconds_)))
      return false;
    ++done_;
    return true;
  }

 private:
  std::uint64_t most_, done_ = 0, seconds_ = asked_for("RIDGELINE_FUZZ_SECONDS", 0);
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void expect_kept(Target target, const std::vector<std::string>& corpus, std::uint64_t rounds) {
  ASSERT_FALSE(corpus.empty());
  std::mt19937_64 random(asked_for("RIDGELINE_FUZZ_SEED", 20260101));
  for (const std::string& input : corpus) EXPECT_EQ(run(target, input), "");
  for (Runs runs(rounds); runs.next();) {
    const std::string& input = corpus[random() % corpus.size()];
    const std::string variant = changed(input, corpus[random() % corpus.size()], random);
    ASSERT_EQ(run(target, variant), "");
  }
}

struct TextTarget {
  const char* folder;  ///< of the corpus
  Target run;
  std::uint64_t rounds;
  const char* name = folder;  ///< where several targets share a corpus
};
void PrintTo(const TextTarget& target, std::ostream* out) { *out << target.name; }

class FuzzOfText : public ::testing::TestWithParam<TextTarget> {};

/// The corpus of a target as it is, then changed by tokens, and what was changed changed again.
TEST_P(FuzzOfText, NoInputBreaksItsReader) {
  const TextTarget& target = GetParam();
  const std::vector<std::string> corpus = files_of(target.folder);
  ASSERT_FALSE(corpus.empty());
  std::vector<std::string> seeds;
  for (const std::string& input : corpus) {
    EXPECT_EQ(run(target.run, input), "") << input;
    if (input.size() < 4000) seeds.push_back(input);
  }
  std::mt19937_64 random(asked_for("RIDGELINE_FUZZ_SEED", 20261126));
  TokenMutator mutator;
  std::vector<std::string> pool = seeds;
  for (Runs runs(asked_for("RIDGELINE_FUZZ_RUNS", target.rounds)); runs.next();) {
    const std::size_t place = random() % pool.size();
    std::string variant = mutator.changed(pool[place], random);
    ASSERT_EQ(run(target.run, variant), "") << variant;
    // What was changed is changed again, until it is twice as long as what it was.
    const bool grew = variant.size() > 2 * seeds[place].size() + 100;
    if (grew || random() % 8 == 0) pool[place] = seeds[place];
    else if (random() % 4 == 0) pool[place] = std::move(variant);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, FuzzOfText,
    ::testing::Values(TextTarget{"yaml", fuzz_yaml, 2000}, TextTarget{"hardware", fuzz_hardware, 300},
                      TextTarget{"cluster", fuzz_cluster, 200}, TextTarget{"model", fuzz_model, 1000},
                      TextTarget{"network", fuzz_network, 1000}, TextTarget{"huggingface", fuzz_huggingface, 1000},
                      TextTarget{"scenario", fuzz_scenario, 500}, TextTarget{"sweep", fuzz_sweep, 300},
                      TextTarget{"expression", fuzz_expression, 5000}, TextTarget{"op_trace", fuzz_op_trace, 2000},
                      TextTarget{"profiler_trace", fuzz_recording, 1000},
                      TextTarget{"execution_trace", fuzz_recording, 1000},
                      TextTarget{"profile_table", fuzz_profile_table, 1000},
                      TextTarget{"kernel_case", fuzz_kernel_case, 1000}, TextTarget{"probe", fuzz_probe, 300},
                      TextTarget{"history", fuzz_history, 1000}, TextTarget{"any_file", fuzz_any_file, 300},
                      TextTarget{"op_trace", fuzz_replayed_step, 300, "replayed_step"},
                      TextTarget{"scenario", fuzz_described_step, 60, "described_step"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(Fuzz, NoPointsFileGivesPointsThatNobodyWrote) {
  expect_kept(fuzz_points, files_of("points"), asked_for("RIDGELINE_FUZZ_RUNS", 1000));
}

TEST(Fuzz, ReportsOfNsightSystemsAreReadOrRefused) {
  expect_kept(fuzz_nsight, files_of("nsight"), asked_for("RIDGELINE_FUZZ_RUNS", 1000));
}

TEST(Fuzz, TokensOfATextAreTheText) {
  const std::string text = "@name\na: [1.5e-3, \"x \\\" y\", 'z']  # -7\n\"open";
  std::string again;
  for (const std::string_view token : tokens_of(text)) again += token;
  EXPECT_EQ(again, text);
  EXPECT_EQ(tokens_of("ab: \"c d\"").size(), 4u);
}

TEST(Fuzz, NoSequenceOfRequestsBreaksAPromiseOfTheAllocator) {
  std::vector<std::string> corpus = files_of("sequence");
  std::mt19937_64 random(7);
  for (int flags = 0; flags < 128; flags += 3) {  // every combination of settings, long and random
    std::string input(1, static_cast<char>(flags));
    for (int i = 0; i < 700; ++i) input += static_cast<char>(random());
    corpus.push_back(std::move(input));
  }
  expect_kept(fuzz_sequence, corpus, asked_for("RIDGELINE_FUZZ_RUNS", 1500));
}

TEST(Fuzz, NoHistoryAndNoSnapshotDoesMoreThanAnErrorThatNamesItsPlace) {
  expect_kept(fuzz_history, files_of("history"), 15000);
}

TEST(Fuzz, ARecordedHistoryOfTrainingSurvivesChanges) {
  const std::string whole =
      history_bytes(RIDGELINE_SOURCE_DIR "/measurements/h200/allocations/nanogpt-char-slow-bf16-hist.csv.gz");
  expect_kept(fuzz_history, {"\x0a" + whole.substr(0, 60'000)}, 60);
}

}  // namespace
}  // namespace ridgeline
