// What follows from a scenario beside its prediction: how much a step does, which keys say nothing in it, and which
// chip a driver's name means.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/scenario/driver_names.h"
#include "sim/scenario/step_amount.h"
#include "sim/scenario/unread_keys.h"

namespace ridgeline {
namespace {

std::string amount_of(const Scenario& scenario) {
  const StepAmount amount = amount_of_step(scenario);
  return fmt::format("{} samples, {} tokens on {} boards", amount.samples, amount.tokens, boards_of_step(scenario));
}

TEST(StepAmount, CountsMicroBatchesOfEveryRankAndTheirTokens) {
  Scenario scenario;
  TrainingDescription& t = scenario.training;
  t.micro_batch = 3;
  t.sequence_length = 11;
  t.gradient_accumulation = 5;
  EXPECT_EQ(amount_of(scenario), "15 samples, 165 tokens on 1 boards");
  t.parallel.data = 7;
  EXPECT_EQ(amount_of(scenario), "105 samples, 1155 tokens on 7 boards");
  t.parallel.tensor = 2;
  t.parallel.context = 3;
  EXPECT_EQ(amount_of(scenario), "105 samples, 1155 tokens on 42 boards") << "those see the same sequences";
  t.parallel = {};
  t.parallel.split = 2;
  EXPECT_EQ(amount_of(scenario), "15 samples, 165 tokens on 2 boards");
  t.parallel = {};
  t.parallel.data = 4;
  t.parallel.strategy = DataStrategy::dataparallel;
  EXPECT_EQ(amount_of(scenario), "15 samples, 165 tokens on 4 boards") << "one process shares its micro-batch";
  InferenceDescription& use = t.inference.emplace();
  t.parallel = {};
  use.sequences = 3;
  use.new_tokens = 4;
  EXPECT_EQ(amount_of(scenario), "3 samples, 12 tokens on 1 boards");
  use.new_tokens = 1;
  EXPECT_EQ(amount_of(scenario), "3 samples, 3 tokens on 1 boards");
  use.new_tokens = 0;
  EXPECT_EQ(amount_of(scenario), "3 samples, 33 tokens on 1 boards") << "a forward pass over the prompt";
  RecordedWorkload recorded;
  recorded.samples = 24;
  recorded.tokens = 99;
  t.parallel.data = 8;
  scenario.recorded = std::make_shared<const RecordedWorkload>(recorded);
  EXPECT_EQ(amount_of(scenario), "24 samples, 99 tokens on 1 boards");
}

/// Every key that may say nothing, said.
TrainingDescription all_said() {
  TrainingDescription t;
  ParallelDescription& how = t.parallel;
  how.bucket_cap = 1000;
  how.gradient_as_bucket_view = how.static_graph = how.find_unused_parameters = true;
  how.compression = GradientCompression::fp16;
  how.broadcast_buffers = false;
  how.parameters_as_bucket_view = true;
  how.wrap = 7;
  how.reshard_after_forward = {4};
  how.parameter_type = how.reduce_type = DType::bf16;
  how.sequence_parallel = how.loss_parallel = true;
  how.prepared_inputs = false;
  how.pieces = 2;
  return t;
}

TEST(UnreadKeys, AreThoseThatNothingInTheScenarioReads) {
  const std::string buckets =
                        "bucket_cap gradient_as_bucket_view static_graph find_unused_parameters compression "
                        "broadcast_buffers",
                    view = " parameters_as_bucket_view",
                    shards = " wrap reshard_after_forward parameter_type reduce_type",
                    layers = " sequence_parallel loss_parallel prepared_inputs", pieces = " pieces";
  const auto unread = [](auto change) {
    TrainingDescription t = all_said();
    change(t, t.parallel);
    return fmt::format("{}", fmt::join(unread_parallel_keys(t), " "));
  };
  using T = TrainingDescription;
  using P = ParallelDescription;
  EXPECT_EQ(unread([](T&, P&) {}), buckets + view + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.data = 2; }), view.substr(1) + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.context = 2; }), view.substr(1) + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.data = 2, p.strategy = DataStrategy::zero1; }), shards.substr(1) + layers + pieces);
  EXPECT_EQ(unread([](T& t, P& p) { p.data = 2, t.data_parallel = DataParallel::apex; }),
            buckets + view + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.data = 2, p.strategy = DataStrategy::fsdp; }), buckets + view + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.strategy = DataStrategy::fsdp; }), buckets + view + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.tensor = 2; }), buckets + view + shards + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.split = 2; }), buckets + view + shards + layers);
  EXPECT_EQ(unread([](T&, P& p) { p.data = 2, p.strategy = DataStrategy::dataparallel; }),
            buckets + view + shards + layers + pieces);
  EXPECT_EQ(unread([](T&, P& p) { p.data = 2, p.framework = Framework::megatron; }),
            buckets + view + shards + layers + pieces);
  EXPECT_TRUE(unread_parallel_keys({}).empty());
  TrainingDescription one;
  one.parallel.pieces = 2;
  EXPECT_EQ(unread_parallel_keys(one), std::vector<std::string>{"pieces"});
}

TEST(DriverNames, MeanTheChipThatHasTheirWords) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  struct Named {
    const char* driver;
    std::int64_t memory;
    const char* hardware;
  };
  for (const auto& [driver, memory, hardware] :
       {Named{"NVIDIA H200", 0, "nvidia-h200-sxm-141gb"}, Named{"(nvidia)_h200,", 0, "nvidia-h200-sxm-141gb"},
        Named{"NVIDIA GH200 480GB", 0, "nvidia-gh200-96gb"}, Named{"NVIDIA H100 80GB HBM3", 0, "nvidia-h100-sxm5-80gb"},
        Named{"NVIDIA H100 PCIe", 0, "nvidia-h100-pcie-80gb"}, Named{"NVIDIA H100 NVL", 0, ""},
        Named{"NVIDIA H800", 0, "nvidia-h100-sxm5-80gb"}, Named{"NVIDIA B200", 0, "nvidia-b200"},
        Named{"NVIDIA A100 80GB PCIe", 0, "nvidia-a100-pcie-80gb"},
        Named{"NVIDIA A100-PCIE-40GB", 0, "nvidia-a100-pcie-40gb"},
        Named{"NVIDIA A100-SXM4-40GB", 0, "nvidia-a100-sxm4-40gb"},
        Named{"NVIDIA A100-SXM4-80GB", 0, "nvidia-a100-sxm4-80gb"},
        Named{"NVIDIA A100-SXM4-80GB", 79 * kGiB, "nvidia-a100-sxm4-80gb"},
        // Said by the memory alone: the nearer one.
        Named{"NVIDIA A100", 0, "nvidia-a100-sxm4-40gb"}, Named{"NVIDIA A100", 60 * kGiB, "nvidia-a100-sxm4-40gb"},
        Named{"NVIDIA A100", 61 * kGiB, "nvidia-a100-sxm4-80gb"},
        Named{"NVIDIA A800-SXM4-80GB", 0, "nvidia-a100-sxm4-80gb"},
        Named{"Tesla V100-SXM2-16GB", 0, "nvidia-v100-sxm2-16gb"},
        Named{"Tesla V100-SXM2-32GB", 0, "nvidia-v100-sxm2-32gb"},
        Named{"Tesla V100-SXM2", 31 * kGiB, "nvidia-v100-sxm2-32gb"},
        Named{"Tesla V100-SXM2", 16 * kGiB, "nvidia-v100-sxm2-16gb"},
        Named{"Tesla V100-PCIE-32GB", 0, "nvidia-v100-pcie-32gb"}, Named{"NVIDIA A10G", 0, "nvidia-a10g"},
        Named{"NVIDIA A40", 0, "nvidia-a40"}, Named{"NVIDIA RTX A6000", 0, "nvidia-rtx-a6000"},
        Named{"NVIDIA L40S", 0, "nvidia-l40s"}, Named{"NVIDIA L4", 0, "nvidia-l4"}, Named{"Tesla T4", 0, "nvidia-t4"},
        Named{"NVIDIA GeForce RTX 4090", 0, "nvidia-rtx-4090"}, Named{"NVIDIA GeForce RTX 3090", 0, "nvidia-rtx-3090"},
        Named{"NVIDIA A1000", 0, ""}, Named{"AMD Instinct MI300X", 0, ""}, Named{"", 0, ""}})
    EXPECT_EQ(hardware_of_driver_name(driver, memory), hardware) << driver << " " << memory;
}

TEST(DriverNames, OfARecordingMeanTheChipThatHasItsUnitsToo) {
  constexpr std::int64_t kGB = 1'000'000'000;
  using Recorded = trace::RecordedGpu;
  const auto gpu = [](const char* name, std::int64_t memory, std::int64_t sms, std::int64_t capability) {
    return Recorded{name, memory, false, sms, capability};
  };
  EXPECT_EQ(hardware_of_recorded_gpu(gpu("NVIDIA GeForce RTX 4090", 25'250'000'000, 128, 89)), "nvidia-rtx-4090");
  EXPECT_EQ(hardware_of_recorded_gpu(gpu("NVIDIA H800", 85'094'760'448, 132, 90)), "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(hardware_of_recorded_gpu(gpu("NVIDIA L4", 0, 0, 0)), "nvidia-l4") << "by the name alone, where that is all";
  struct Other {
    Recorded recorded;
    const char* nearest;
  };
  for (const Other& other : {Other{gpu("NVIDIA GeForce RTX 4090 D", 25'250'000'000, 114, 89), "nvidia-rtx-4090"},
                             Other{gpu("NVIDIA GeForce RTX 3090 Ti", 25'390'000'000, 84, 86), "nvidia-rtx-3090"},
                             Other{gpu("NVIDIA H100 NVL", 99'857'989'632, 132, 90), "nvidia-gh200-96gb"},
                             Other{gpu("NVIDIA H20", 102'005'473'280, 78, 90), "nvidia-h20-3e"},
                             Other{gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * kGB, 14, 80), "nvidia-a100-pcie-40gb"},
                             Other{gpu("NVIDIA RTX 6000 Ada Generation", 50'900'000'000, 142, 89), "nvidia-l40s"}}) {
    EXPECT_EQ(hardware_of_recorded_gpu(other.recorded), "") << other.recorded.name;
    EXPECT_EQ(nearest_hardware(other.recorded), other.nearest) << other.recorded.name;
  }
  EXPECT_EQ(nearest_hardware(gpu("NVIDIA H20", 0, 0, 0)), "") << "nothing to compare by";
}

}  // namespace
}  // namespace ridgeline
