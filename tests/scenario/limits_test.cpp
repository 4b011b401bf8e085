// Keys of a scenario with limits: the last value that is taken and the first that is not, at both ends, told with file,
// line and column.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::string told_of(const std::string& text) {
  try {
    (void)load_scenario({.file = {}, .text = text, .text_name = "limits.yaml", .overrides = {}});
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

/// Where a key can stand: what stands before it, how far in it stands, its section.
struct Section {
  std::string before;
  std::string path;
  int indent = 2;
  std::string after{};
};

const std::string kOneGpu = "hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\n",
                  kEightGpus = "cluster: hgx-h100\nmodel: gpt2\n",
                  kTraining = "training:\n  micro_batch: 2\n  sequence_length: 64\n";
const Section kOfTraining{kOneGpu + kTraining, "training"},
    kOfMicroBatch{kOneGpu + "training:\n  sequence_length: 64\n", "training"},
    kOfLength{kOneGpu + "training:\n  micro_batch: 2\n", "training"},
    kOfAllocator{kOneGpu + kTraining + "allocator:\n", "allocator"},
    kOfLora{kOneGpu + kTraining + "  lora:\n", "training.lora", 4},
    kOfInference{kOneGpu + "inference:\n  prompt_length: 8\n", "inference"},
    kOfPrompt{kOneGpu + "inference:\n", "inference"},
    kOfBeams{kOneGpu + "inference:\n  prompt_length: 8\n  new_tokens: 3\n", "inference"},
    kOfParallel{kEightGpus + kTraining + "  parallel:\n", "training.parallel", 4},
    kOfStages{kEightGpus + kTraining + "  parallel:\n    pipeline: 2\n    schedule: interleaved\n", "training.parallel",
              4},
    kOfSplit{kEightGpus + kTraining + "  parallel:\n    split: 2\n", "training.parallel", 4},
    kOfMegatron{kEightGpus + kTraining + "  parallel:\n    framework: megatron\n", "training.parallel", 4},
    kOfExperts{kEightGpus + kTraining + "  parallel:\n    expert: 2\n", "training.parallel", 4},
    kOfHybrid{kEightGpus + kTraining + "  parallel:\n    strategy: hsdp\n", "training.parallel", 4},
    kOfZero{
        kEightGpus + kTraining + "  parallel:\n    framework: deepspeed\n    strategy: zero3\n    zero_optimization:\n",
        "training.parallel.zero_optimization", 6},
    kOfMeasured{kOneGpu + kTraining + "measured:\n  source: a page\n", "measured"};

std::string with(const Section& section, const std::string& key, const std::string& value) {
  return section.before + std::string(static_cast<std::size_t>(section.indent), ' ') + key + ": " + value + "\n" +
         section.after;
}
/// "limits.yaml:6:7: training.micro_batch: " where the value of the key stands.
std::string place_of(const Section& section, const std::string& key) {
  return fmt::format("limits.yaml:{}:{}: {}.{}: ", std::count(section.before.begin(), section.before.end(), '\n') + 1,
                     section.indent + static_cast<int>(key.size()) + 3, section.path, key);
}

struct Limited {
  Section section;
  std::string key;
  std::int64_t least, most;
};

TEST(ScenarioLimits, WholeNumbersAreTakenFromTheLeastToTheMost) {
  const std::int64_t kMillion = 1048576;  // 2^20
  const Limited keys[] = {
      {kOfMicroBatch, "micro_batch", 1, kMillion},
      {kOfLength, "sequence_length", 1, 16777216},
      {kOfTraining, "gradient_accumulation", 1, 262144},
      {kOfTraining, "packed_lengths", 1, 16777216},
      {{kOfTraining.before + "  activation_checkpointing: block\n", "training"}, "checkpointed_every", 1, 65536},
      {kOfLora, "rank", 1, 65536},
      {kOfInference, "sequences", 1, kMillion},
      {kOfInference, "new_tokens", 0, 131072},
      {kOfBeams, "beams", 1, 1024},
      {kOfPrompt, "prompt_length", 1, 16777216},
      {kOfParallel, "data", 1, kMillion},
      {kOfParallel, "tensor", 1, kMillion},
      {kOfParallel, "context", 1, kMillion},
      {kOfParallel, "expert", 1, kMillion},
      {kOfParallel, "pipeline", 1, 65536},
      {kOfParallel, "split", 1, 1024},
      {kOfHybrid, "replicate", 1, kMillion},
      {kOfStages, "virtual_stages", 1, 1024},
      {kOfSplit, "pieces", 1, kMillion},
      {kOfMegatron, "vocabulary_multiple", 1, kMillion},
      {kOfAllocator, "roundup_power2_divisions", 0, 1024}};
  for (const Limited& limited : keys) {
    const auto told = [&](std::int64_t value) {
      return told_of(with(limited.section, limited.key, std::to_string(value)));
    };
    for (const std::int64_t outside : {limited.least - 1, limited.most + 1})
      EXPECT_EQ(told(outside),
                fmt::format("{}{} is out of range, expected {} to {}", place_of(limited.section, limited.key), outside,
                            limited.least, limited.most))
          << limited.key;
    // The largest may not go with the rest; that it is out of range is not why.
    for (const std::int64_t inside : {limited.least, limited.most})
      EXPECT_EQ(told(inside).find("out of range"), std::string::npos) << limited.key << " " << told(inside);
    EXPECT_EQ(told_of(with(limited.section, limited.key, "many")),
              fmt::format("{}expected a whole number ({} to {}), got 'many'", place_of(limited.section, limited.key),
                          limited.least, limited.most));
  }
}

struct Measured {
  Section section;
  std::string key;
  std::vector<std::string> taken, refused;
  std::string expected;
};

TEST(ScenarioLimits, MeasuresAreTakenWithinTheirRange) {
  const Measured keys[] = {
      {kOfTraining, "gradient_clipping", {"0.001", "1e30", "none"}, {"0", "-1"}, "above 0"},
      {kOfLora, "dropout", {"0", "1"}, {"-0.01", "1.01"}, "at least 0 and at most 1"},
      {kOfAllocator, "garbage_collection_threshold", {"0", "1"}, {"-0.01", "1.01"}, "at least 0 and at most 1"},
      {kOfAllocator, "memory_fraction", {"0", "1"}, {"-0.01", "1.01"}, "at least 0 and at most 1"},
      {kOfAllocator,
       "large_segment_size",
       {"20 MiB", "512 MiB"},
       {"19.9 MiB", "512.1 MiB"},
       "at least 20.0 MiB and at most 512 MiB"},
      {kOfAllocator, "max_split_size", {"20 MiB", "none", "1 GiB"}, {"0 B", "-1 B"}, "above 0"},
      {kOfAllocator, "max_non_split_rounding", {"1 B", "none"}, {"0 B"}, "above 0"},
      {kOfParallel, "bucket_cap", {"1 B", "1 GiB"}, {"0 B"}, "above 0"},
      {kOfMeasured, "step_time", {"1 ns", "9 s"}, {"0 s", "-1 s"}, "above 0"},
      {kOfMeasured, "samples_per_s", {"0.1"}, {"0"}, "above 0"},
      {kOfMeasured, "device_used", {"1 B"}, {"0 B"}, "above 0"},
      {kOfMeasured, "peak_allocated", {"1 B"}, {"0 B"}, "above 0"},
      {kOfMeasured, "peak_reserved", {"1 B"}, {"0 B"}, "above 0"},
      {kOfZero, "reduce_bucket_size", {"1", "5e8", "1e15"}, {"0", "1.1e15"}, "at least 1 and at most 1e+15"},
      {kOfZero, "stage3_prefetch_bucket_size", {"0", "1e15"}, {"-1", "1.1e15"}, "at least 0 and at most 1e+15"},
      {kOfZero, "stage3_param_persistence_threshold", {"0", "1e15"}, {"-1", "1.1e15"}, "at least 0 and at most 1e+15"},
      {kOfZero, "stage3_max_live_parameters", {"0", "1e15"}, {"-1"}, "at least 0 and at most 1e+15"},
      {kOfZero, "stage3_max_reuse_distance", {"0", "1e15"}, {"-1"}, "at least 0 and at most 1e+15"},
      {kOfZero, "sub_group_size", {"1", "1e15"}, {"0"}, "at least 1 and at most 1e+15"}};
  for (const Measured& key : keys) {
    for (const std::string& value : key.taken)
      EXPECT_EQ(told_of(with(key.section, key.key, value)), "taken") << key.key << ": " << value;
    for (const std::string& value : key.refused)
      EXPECT_EQ(told_of(with(key.section, key.key, value)),
                fmt::format("{}{} is out of range, expected {}", place_of(key.section, key.key), value, key.expected));
  }
  EXPECT_EQ(told_of(with(kOfAllocator, "max_split_size", "19 MiB")),
            place_of(kOfAllocator, "max_split_size") + "must be at least 20 MiB, or none");
  EXPECT_EQ(told_of(with(kOfZero, "sub_group_size", "1.5")),
            place_of(kOfZero, "sub_group_size") + "expected a whole number of elements");
  for (const char* power : {"0", "1", "2", "16", "1024"})
    EXPECT_EQ(told_of(with(kOfAllocator, "roundup_power2_divisions", power)), "taken") << power;
  for (const char* other : {"3", "6", "1023"})
    EXPECT_EQ(told_of(with(kOfAllocator, "roundup_power2_divisions", other)),
              place_of(kOfAllocator, "roundup_power2_divisions") + "must be 0 or a power of two");
}

TEST(ScenarioLimits, NewTokensAreWrittenByWhatWrites) {
  const auto told = [](const std::string& model, int tokens) {
    return told_of(
        fmt::format("hardware: nvidia-h200-sxm-141gb\nmodel: {{{}, layers: 2, heads: 4, hidden: 64, "
                    "vocabulary: 100}}\ninference: {{prompt_length: 32, new_tokens: {}}}\n",
                    model, tokens));
  };
  EXPECT_EQ(told("family: gpt2", 3), "taken");
  EXPECT_EQ(told("family: gpt2", 0), "taken");
  EXPECT_EQ(told("family: bert", 0), "taken");
  EXPECT_EQ(told("family: bert", 1),
            "limits.yaml:3:44: inference.new_tokens: the network generates no text; leave it out for one forward pass");
}

TEST(ScenarioLimits, RowsOfPackedSequencesAreFilled) {
  const auto lengths = [](const std::string& packed) {
    const Scenario read = load_scenario(
        {.file = {},
         .text = kOneGpu + kTraining + "  precision: bf16\n  attention: flash\n  packed_lengths: " + packed + "\n",
         .text_name = "limits.yaml",
         .overrides = {}});
    return fmt::format("{}", fmt::join(read.training.packed_lengths, " "));
  };
  EXPECT_EQ(lengths("none"), "");
  EXPECT_EQ(lengths("64"), "64");
  EXPECT_EQ(lengths("30"), "30 30 4");
  EXPECT_EQ(lengths("32"), "32 32");
  EXPECT_EQ(lengths("[10, 20, 34]"), "10 20 34");
  const auto told = [](const std::string& packed) { return told_of(with(kOfTraining, "packed_lengths", packed)); };
  EXPECT_EQ(told("65"),
            place_of(kOfTraining, "packed_lengths") + "65 tokens do not fit into the 64 of training.sequence_length");
  EXPECT_EQ(told("[10, 20]"), place_of(kOfTraining, "packed_lengths") +
                                  "the lengths add up to 30 tokens: expected the 64 of training.sequence_length");
}

TEST(Names, thatAreNoDescriptionsAreToldInTheirPlace) {
  EXPECT_EQ(told_of("hardware: v100-sxm2\nmodel: gpt2\n" + kTraining),
            "limits.yaml:1:11: hardware: unknown name 'v100-sxm2'; did you mean nvidia-v100-sxm2-16gb, "
            "nvidia-v100-sxm2-32gb?");
  EXPECT_TRUE(told_of("model: gpt2\ncluster: hxg-h100\n" + kTraining)
                  .starts_with("limits.yaml:2:10: cluster: unknown name 'hxg-h100'; did you mean "));
  EXPECT_TRUE(told_of("hardware: nvidia-t4\nmodel: gtp2\n" + kTraining)
                  .starts_with("limits.yaml:2:8: model: no network 'gtp2'; did you mean gpt2?"));
  EXPECT_TRUE(
      told_of(kOneGpu + "host: quick\n" + kTraining).starts_with("limits.yaml:3:7: host: unknown name 'quick'; "));
  EXPECT_TRUE(told_of(kOneGpu + "software: pytorch-1\n" + kTraining)
                  .starts_with("limits.yaml:3:11: software: unknown name 'pytorch-1'; "));
  EXPECT_EQ(told_of("hardware: no/such.yaml\nmodel: gpt2\n" + kTraining),
            "limits.yaml:1:11: hardware: no/such.yaml: no such file");
}

}  // namespace
}  // namespace ridgeline
