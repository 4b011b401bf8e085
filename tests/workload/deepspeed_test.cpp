// DeepSpeed's ZeRO: what each rank holds, to the byte; what it sends, and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/config/parse_yaml.h"
#include "sim/workload/deepspeed/partition.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/live_storages.h"
#include "tests/support/operand_sizes.h"
#include "tests/support/trace_mistakes.h"

namespace ridgeline {
namespace {

using testing_support::last_step_of;

constexpr std::int64_t kRanks = 4;

ModelDescription network() {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = 3;
  model.heads = 4;
  model.hidden = 64;
  model.vocabulary = 1000;
  model.max_positions = 32;
  model.activation = Activation::gelu_tanh;
  return model;
}

TrainingDescription zero(DataStrategy stage) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.precision = Precision::amp_bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = kRanks;
  t.parallel.framework = Framework::deepspeed;
  t.parallel.strategy = stage;
  t.parallel.zero.reduce_bucket_size = 1 << 20;
  return t;
}

/// Stage 3 that gathers every layer just before it runs, and gives it back.
TrainingDescription sparing() {
  TrainingDescription t = zero(DataStrategy::zero3);
  t.parallel.zero.prefetch_bucket_size = 0;
  t.parallel.zero.param_persistence_threshold = 0;
  t.parallel.zero.max_reuse_distance = 0;
  return t;
}

OpTrace run(const TrainingDescription& t) {
  return testing_support::checked(training_run(network(), t, AttentionChoice::flash));
}

std::vector<std::int64_t> sent(const OpTrace& trace, CollectiveKind kind) {
  std::vector<std::int64_t> bytes;
  for (const Collective& c : last_step_of<Collective>(trace))
    if (c.kind == kind) bytes.push_back(c.bytes);
  return bytes;
}

std::int64_t sum(const std::vector<std::int64_t>& all) {
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

std::int64_t parameters() {
  constexpr std::int64_t h = 64;
  return 3 * (12 * h * h + 13 * h) + 2 * h + (1000 + 32) * h;
}

/// Bytes of one kind that live after the last step.
std::int64_t held(const OpTrace& trace, Category category) {
  std::int64_t bytes = 0;
  for (const StorageId storage : testing_support::live_storages(trace))
    if (trace.storages[storage].category == category) bytes += trace.storages[storage].bytes;
  return bytes;
}

/// The most bytes that live at once in the last step.
std::int64_t peak(const OpTrace& trace) {
  std::int64_t now = 0, most = 0;
  for (std::uint32_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) now += trace.storages[record.index].bytes;
    if (record.kind == Record::Kind::free) now -= trace.storages[record.index].bytes;
    if (i >= trace.steps.back().begin) most = std::max(most, now);
  }
  return most;
}

TEST(ZeroPartition, cuts_tensors_over_shares_of_one_size) {
  const deepspeed::Partition cut({10, 7, 4}, 2);  // 21, padded to a multiple of 4
  EXPECT_EQ(cut.elements(), 24);
  EXPECT_EQ(cut.share(), 12);
  using Slices = std::vector<deepspeed::Slice>;
  EXPECT_EQ(cut.slices(0), (Slices{{0, 10}}));
  EXPECT_EQ(cut.slices(1), (Slices{{0, 2}, {1, 5}}));
  EXPECT_EQ(cut.slices(2), (Slices{{1, 4}}));
  EXPECT_EQ(cut.kept(0), 17);  // all of the tensor that it has two numbers of
  EXPECT_EQ(cut.kept(1), 11);
  EXPECT_EQ(cut.fullest_rank(), 0);
  EXPECT_EQ(deepspeed::Partition({8}, 1).elements(), 8);
}

// 2 bytes a parameter on each rank; 4 for the fp32 copy and 8 for Adam's states of a share.
TEST(Zero, holds_what_the_paper_says_to_the_byte) {
  const std::int64_t padded = (parameters() + 2 * kRanks - 1) / (2 * kRanks) * (2 * kRanks);
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2}) {
    const OpTrace trace = run(zero(stage));
    ASSERT_EQ(trace.parameters, parameters());
    EXPECT_EQ(held(trace, Category::weights), 2 * padded);
    constexpr std::int64_t kStepCount = 4;
    EXPECT_EQ(held(trace, Category::optimizer_state), 12 * padded / kRanks + kStepCount);
    EXPECT_EQ(held(trace, Category::gradients), 0);
  }
  // Stage 3: each parameter by itself. No vector of the network is divided with a rest.
  const OpTrace sharded = run(sparing());
  const std::int64_t share = parameters() / kRanks;
  EXPECT_EQ(held(sharded, Category::weights), 2 * share);
  EXPECT_EQ(held(sharded, Category::optimizer_state), 12 * share + 4);
  EXPECT_EQ(held(sharded, Category::gradients), 2 * share + 2 * (1 << 20));  // a bucket, and a place for gradients
}

TEST(Zero, sums_every_gradient_and_gathers_every_parameter_once) {
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2}) {
    const OpTrace trace = run(zero(stage));
    constexpr std::int64_t kOverflow = 1, kNorm = 4;
    EXPECT_EQ(sum(sent(trace, CollectiveKind::all_reduce)), 2 * parameters() + kOverflow + kNorm);
    EXPECT_EQ(sent(trace, CollectiveKind::all_gather), std::vector<std::int64_t>{(parameters() + 7) / 8 * 8 * 2});
  }
  const OpTrace sharded = run(sparing());
  EXPECT_EQ(sum(sent(sharded, CollectiveKind::reduce_scatter)), 2 * parameters());
}

TEST(Zero, fills_buckets_of_the_size_it_is_told) {
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3}) {
    const CollectiveKind kind =
        stage == DataStrategy::zero3 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    std::size_t before = 0;
    for (const std::int64_t elements : {1 << 20, 1 << 16, 1 << 14}) {
      TrainingDescription t = zero(stage);
      t.parallel.zero.reduce_bucket_size = elements;
      const std::size_t buckets = sent(run(t), kind).size();
      EXPECT_GT(buckets, before);
      before = buckets;
    }
  }
}

// As `reduce` to whoever owns a slice: each rank's slices of a bucket together.
TEST(Zero, reduces_to_owners_where_it_is_told_so) {
  TrainingDescription t = zero(DataStrategy::zero2);
  t.parallel.zero.use_multi_rank_bucket_allreduce = false;
  const OpTrace trace = run(t);
  EXPECT_EQ(sum(sent(trace, CollectiveKind::reduce)), 2 * parameters());
  EXPECT_EQ(sent(trace, CollectiveKind::reduce).size(), 4u);  // one bucket, four owners
}

TEST(Zero, stage_1_waits_for_the_last_micro_batch) {
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3}) {
    TrainingDescription t = zero(stage);
    const CollectiveKind kind =
        stage == DataStrategy::zero3 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const std::int64_t numbers = stage == DataStrategy::zero3 ? 0 : 5;  // overflow and norm, once a step
    EXPECT_EQ(sum(sent(run(t), kind)) - numbers, 2 * parameters());
    t.gradient_accumulation = 3;
    EXPECT_EQ(sum(sent(run(t), kind)) - numbers, (stage == DataStrategy::zero1 ? 1 : 3) * 2 * parameters());
  }
}

TEST(Zero, overlaps_on_a_stream_of_its_own_with_a_second_buffer) {
  TrainingDescription t = zero(DataStrategy::zero2);
  const OpTrace alone = run(t);
  t.parallel.zero.overlap_comm = true;
  const OpTrace beside = run(t);
  EXPECT_EQ(beside.streams.size(), alone.streams.size() + 1);
  const auto buffers = [](const OpTrace& trace) {
    std::set<std::uint32_t> found;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
      if (trace.records[i].kind == Record::Kind::allocate &&
          trace.storages[trace.records[i].index].bytes == 2 * (1 << 20))
        found.insert(trace.records[i].index);
    return found.size();
  };
  EXPECT_EQ(buffers(alone), 1u);
  EXPECT_EQ(buffers(beside), 2u);
}

TEST(ZeroThree, gathers_once_what_is_used_again_soon) {
  TrainingDescription t = sparing();
  // The token table four times: for tokens and for scores, forward and backward.
  constexpr std::int64_t kTable = 1000 * 64;
  EXPECT_EQ(sum(sent(run(t), CollectiveKind::all_gather)), 2 * (2 * parameters() + 2 * kTable));
  t.parallel.zero.max_reuse_distance = 1'000'000'000;
  EXPECT_EQ(sum(sent(run(t), CollectiveKind::all_gather)), 2 * parameters());
}

TEST(ZeroThree, holds_less_the_less_it_keeps_and_gathers_ahead) {
  TrainingDescription t = sparing();
  t.parallel.zero.reduce_bucket_size = 1 << 14;
  const auto peak_with = [&](std::int64_t reused_within, std::int64_t ahead) {
    t.parallel.zero.max_reuse_distance = reused_within;
    t.parallel.zero.prefetch_bucket_size = ahead;
    return peak(run(t));
  };
  const std::int64_t all = 1'000'000'000, least = peak_with(0, 0);
  EXPECT_LT(least, peak_with(0, all));
  EXPECT_LT(least, peak_with(all, 0));
  EXPECT_LE(peak_with(0, 1 << 14), peak_with(0, all));
}

TEST(ZeroThree, gathers_ahead_in_fewer_and_larger_pieces) {
  TrainingDescription t = sparing();
  const std::size_t one_by_one = sent(run(t), CollectiveKind::all_gather).size();
  t.parallel.zero.prefetch_bucket_size = 1 << 17;
  EXPECT_LT(sent(run(t), CollectiveKind::all_gather).size(), one_by_one);
}

// Parameters that stay whole are gathered after the update, one by one.
TEST(ZeroThree, keeps_small_parameters_whole) {
  TrainingDescription t = sparing();
  t.parallel.zero.param_persistence_threshold = 4 * 64;  // norms and biases
  const OpTrace trace = run(t);
  constexpr std::int64_t kVectors = 3 * 13 * 64 + 2 * 64;
  EXPECT_EQ(held(trace, Category::weights), 2 * (parameters() / kRanks + kVectors));
  const std::vector<std::int64_t> gathered = sent(trace, CollectiveKind::all_gather);
  EXPECT_GE(std::count(gathered.begin(), gathered.end(), 2 * 64), 3 * 6 + 2);
}

TEST(Zero, updates_a_part_of_the_share_at_a_time) {
  TrainingDescription t = sparing();
  EXPECT_EQ(last_step_of<MultiTensor>(run(t)).size(), 2u);  // counts of steps, and Adam
  t.parallel.zero.sub_group_size = 20'000;
  EXPECT_EQ(last_step_of<MultiTensor>(run(t)).size() / 2, 3u);  // 54,032 numbers, after whole parameters
}

TEST(Zero, sends_nothing_on_one_gpu) {
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3}) {
    TrainingDescription t = zero(stage);
    t.parallel.data = 1;
    EXPECT_TRUE(last_step_of<Collective>(run(t)).empty());
  }
}

TEST(Zero, works_on_what_is_alive_and_waits_for_what_was_recorded) {
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3})
    for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16})
      for (const bool checkpointed : {false, true})
        for (int options = 0; options < 16; ++options) {
          TrainingDescription t = zero(stage);
          t.precision = precision;
          t.gradient_accumulation = 2;
          t.gradient_clipping = 1.0;
          if (checkpointed) t.activation_checkpointing = ActivationCheckpointing::block;
          t.parallel.zero.overlap_comm = (options & 1) != 0;
          t.parallel.zero.contiguous_gradients = (options & 2) != 0;
          t.parallel.zero.reduce_scatter = (options & 4) != 0;
          t.parallel.zero.reduce_bucket_size = (options & 8) != 0 ? 10'000 : 200'000;
          t.parallel.zero.param_persistence_threshold = 64;
          t.parallel.zero.prefetch_bucket_size = 20'000;
          t.parallel.zero.max_reuse_distance = (options & 8) != 0 ? 0 : 100'000;
          const OpTrace trace = run(t);
          ASSERT_EQ(testing_support::first_inconsistency(trace), "")
              << static_cast<int>(stage) << ' ' << static_cast<int>(precision) << ' ' << checkpointed << ' ' << options;
        }
}

// Small parameters stay gathered (param_persistence_threshold): a forward pass sends none of them again.
TEST(ZeroThree, parameters_that_stay_gathered_are_sent_once_a_step_and_not_again_where_they_are_used) {
  TrainingDescription t = sparing();
  const std::size_t all = sent(run(t), CollectiveKind::all_gather).size();
  t.parallel.zero.param_persistence_threshold = 1 << 30;
  const OpTrace persistent = run(t);
  std::int64_t forward = 0;
  for (std::uint32_t i = persistent.steps.back().begin; i < persistent.steps.back().end; ++i) {
    const Record& record = persistent.records[i];
    if (record.kind != Record::Kind::op) continue;
    const Call& call = persistent.calls[record.index];
    const auto* c = std::get_if<Collective>(&persistent.ops[call.op]);
    if (c && c->kind == CollectiveKind::all_gather && call.phase != Phase::optimizer) ++forward;
  }
  EXPECT_GT(all, 10u);
  EXPECT_EQ(forward, 0);
}

// The norm of a share comes out in single numbers, each in an operation of its own; the factor of clipping in more.
TEST(ZeroThree, clipping_works_on_single_numbers_too) {
  const auto on_numbers = [](std::optional<double> clipping) {
    TrainingDescription t = zero(DataStrategy::zero2);
    t.gradient_clipping = clipping;
    std::int64_t count = 0;
    for (const Pointwise& op : last_step_of<Pointwise>(run(t)))
      count += op.function == PointwiseFunction::other && op.elements() == 1 ? 1 : 0;
    return count;
  };
  EXPECT_GE(on_numbers(std::nullopt), 3 + 8);
  EXPECT_EQ(on_numbers(1.0), on_numbers(std::nullopt) + 6);
}

// Whoever sets sub-groups up tries whether a gradient of the largest of them fits: numbers in fp32.
TEST(ZeroThree, tries_the_gradient_of_the_largest_part) {
  TrainingDescription t = sparing();
  t.parallel.zero.sub_group_size = 20'000;
  const OpTrace trace = run(t);
  std::vector<std::int64_t> parts;  // copies in fp32 of what each part updates, which stay
  const std::set<StorageId> live = testing_support::live_storages(trace);
  std::set<std::int64_t> tried;
  for (const Record& record : trace.records) {
    if (record.kind != Record::Kind::allocate) continue;
    const Storage& storage = trace.storages[record.index];
    if (storage.category == Category::optimizer_state && live.contains(record.index)) parts.push_back(storage.bytes);
    if (!live.contains(record.index)) tried.insert(storage.bytes);
  }
  ASSERT_FALSE(parts.empty());
  const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  ASSERT_LT(*least, *most);
  EXPECT_TRUE(tried.contains(*most));
}

// Of relative positions a network without attention beyond its window learns none: zeros stand for their gradient.
TEST(DeepSpeed, AParameterWithoutAGradientIsTakenForZeros) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 1, heads: 1, hidden: 64, key_value_heads: 1, vocabulary: 1000, positions: relative, "
      "norm_place: pre, always_masked: true, window: 93}",
      "m.yaml");
  const ModelDescription model = load_model(config::Value(tree));
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3})
    for (const std::int64_t ranks : {std::int64_t{1}, kRanks})
      for (const std::int64_t micro_batches : {1, 3}) {
        TrainingDescription t = zero(stage);
        t.parallel.data = ranks;
        t.gradient_accumulation = micro_batches;
        const OpTrace trace = training_run(model, t, AttentionChoice::math);
        EXPECT_EQ(testing_support::first_mistake(trace, model.layers), "") << ranks << ' ' << micro_batches;
      }
}

}  // namespace
}  // namespace ridgeline
