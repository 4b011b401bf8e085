// What wrappers for several GPUs make of a training run: buckets, who owns what, and the order of streams and events.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/workload/parallel/buckets.h"
#include "sim/workload/parallel/zero.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

ModelDescription small_gpt() {
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

TrainingDescription training(std::int64_t ranks, DataStrategy strategy) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = ranks;
  t.parallel.strategy = strategy;
  return t;
}

OpTrace run(const TrainingDescription& t, std::int64_t written_out = kWrittenOut) {
  return testing_support::checked(training_run(small_gpt(), t, AttentionChoice::flash, 2, written_out));
}

std::int64_t bytes_of(const std::vector<Collective>& all, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (const Collective& c : all) sum += c.kind == kind ? c.bytes : 0;
  return sum;
}

TEST(Buckets, close_when_they_hold_their_limit) {
  using parallel::assign_buckets;
  const std::vector<parallel::BucketMember> bytes{{4}, {4}, {4}, {20}, {1}, {1}};
  using Buckets = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(assign_buckets(bytes, std::vector<std::int64_t>{8}), (Buckets{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(assign_buckets(bytes, std::vector<std::int64_t>{1, 8}), (Buckets{{0}, {1, 2}, {3}, {4, 5}}));
  EXPECT_EQ(assign_buckets({}, std::vector<std::int64_t>{8}), Buckets{});
}

TEST(Buckets, hold_one_type_each) {
  const std::vector<parallel::BucketMember> tensors{{4, DType::fp16}, {4, DType::fp32}, {4, DType::fp16},
                                                    {2, DType::fp16}, {6, DType::fp32}, {1, DType::fp32}};
  using Buckets = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(parallel::assign_buckets(tensors, std::vector<std::int64_t>{8}), (Buckets{{0, 2}, {1, 4}, {3}, {5}}));
}

// The thirteen buckets that PyTorch logged for GPT-2 (bucket_cap_mb=25): elements of a block's tensors as gradients
// come.
TEST(Buckets, of_gpt2_are_those_pytorch_logged) {
  std::vector<std::int64_t> bytes{768, 768};  // the last norm
  const std::int64_t h = 768;
  for (int block = 0; block < 12; ++block)
    for (const std::int64_t elements : {4 * h * h, h, 4 * h * h, 4 * h, h, h, h * h, h, 3 * h * h, 3 * h, h, h})
      bytes.push_back(elements);
  bytes.push_back(1024 * h);
  bytes.push_back(50304 * h);
  for (std::int64_t& b : bytes) b *= 4;
  std::vector<parallel::BucketMember> tensors;
  for (const std::int64_t b : bytes) tensors.push_back({b});
  const auto buckets = parallel::assign_buckets(tensors, std::vector<std::int64_t>{parallel::kBucket});
  std::vector<std::int64_t> sizes;
  for (const auto& bucket : buckets) {
    std::int64_t sum = 0;
    for (const std::size_t i : bucket) sum += bytes[i];
    sizes.push_back(sum);
  }
  ASSERT_EQ(sizes.size(), 13u);
  EXPECT_EQ(sizes.front(), 28342272);
  for (std::size_t i = 1; i < 12; ++i) EXPECT_EQ(sizes[i], 28351488);
  EXPECT_EQ(sizes.back(), 157694976);
}

TEST(ZeroRedundancy, gives_the_largest_tensors_first_to_whoever_has_least) {
  const std::vector<std::int64_t> elements{3, 10, 4, 4};
  EXPECT_EQ(parallel::share_out(elements, 2), (std::vector<std::size_t>{1, 0, 1, 1}));
  EXPECT_EQ(parallel::share_out(elements, 1), (std::vector<std::size_t>{0, 0, 0, 0}));
}

TEST(DataParallel, sends_every_gradient_once_a_step) {
  const OpTrace trace = run(training(4, DataStrategy::ddp));
  EXPECT_EQ(trace.steps.size(), 3u);  // one bucket, buckets made anew, steady
  const auto all = testing_support::last_step_of<Collective>(trace);
  EXPECT_EQ(bytes_of(all, CollectiveKind::all_reduce), 4 * trace.parameters);
  for (const Collective& c : all) EXPECT_EQ(c.ranks, 4);
}

TEST(DataParallel, sends_once_for_all_micro_batches_only_where_it_is_told_so) {
  TrainingDescription t = training(2, DataStrategy::ddp);
  t.gradient_accumulation = 3;
  const std::int64_t once = 4 * run(t).parameters;
  EXPECT_EQ(bytes_of(testing_support::last_step_of<Collective>(run(t)), CollectiveKind::all_reduce), 3 * once);
  t.parallel.no_sync = true;
  EXPECT_EQ(bytes_of(testing_support::last_step_of<Collective>(run(t)), CollectiveKind::all_reduce), once);
}

TEST(DataParallel, halves_the_bytes_where_gradients_are_compressed) {
  TrainingDescription t = training(2, DataStrategy::ddp);
  t.parallel.compression = GradientCompression::bf16;
  const OpTrace trace = run(t);
  EXPECT_EQ(bytes_of(testing_support::last_step_of<Collective>(trace), CollectiveKind::all_reduce),
            2 * trace.parameters);
}

TEST(DataParallel, on_one_gpu_is_the_run_of_one_gpu) {
  const OpTrace one = run(training(1, DataStrategy::ddp)), same = run(training(1, DataStrategy::fsdp));
  EXPECT_TRUE(one.streams.empty());
  EXPECT_EQ(one.records.size(), same.records.size());
  EXPECT_EQ(one.ops.size(), same.ops.size());
}

/// What a rank holds for good after a step.
std::int64_t held(const OpTrace& trace) {
  std::map<std::uint32_t, std::int64_t> alive;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::allocate) alive[record.index] = trace.storages[record.index].bytes;
    if (record.kind == Record::Kind::free) alive.erase(record.index);
  }
  std::int64_t sum = 0;
  for (const auto& [storage, bytes] : alive) sum += bytes;
  return sum;
}

TEST(ApexDataParallel, sends_buckets_of_ten_million_elements_and_keeps_none) {
  ModelDescription model = small_gpt();
  model.hidden = 512;
  model.layers = 4;
  TrainingDescription t = training(2, DataStrategy::ddp);
  t.data_parallel = DataParallel::apex;
  const OpTrace trace = testing_support::checked(training_run(model, t, AttentionChoice::flash, 2, kWrittenOut));
  const auto all = testing_support::last_step_of<Collective>(trace);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_GE(all.front().bytes, 4 * 10'000'000);
  EXPECT_EQ(bytes_of(all, CollectiveKind::all_reduce), 4 * trace.parameters);
  EXPECT_EQ(trace.streams.size(), run(training(2, DataStrategy::ddp)).streams.size());
  EXPECT_NEAR(static_cast<double>(held(trace)) / static_cast<double>(trace.parameters), 4.0 + 8.0, 0.2);  // no buckets
}

// Nothing runs beside what apex sends: after each bucket the default stream waits for it.
TEST(ApexDataParallel, has_the_default_stream_wait_for_each_bucket) {
  ModelDescription model = small_gpt();
  model.hidden = 512;
  model.layers = 4;
  TrainingDescription t = training(2, DataStrategy::ddp);
  t.data_parallel = DataParallel::apex;
  const OpTrace trace = training_run(model, t, AttentionChoice::flash, 2, kWrittenOut);
  bool sent = false;
  int buckets = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::wait_event && record.stream == 0) sent = false;
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    if (call.stream == 0) {
      EXPECT_FALSE(sent) << "a kernel beside bucket " << buckets;
    } else if (std::holds_alternative<Collective>(trace.ops[call.op])) {
      sent = true;
      ++buckets;
    }
  }
  EXPECT_EQ(buckets, 2);
}

// The ladder of the ZeRO paper: weights, gradients and Adam's states in fp32, 16 bytes a parameter on one GPU.
TEST(FullyShard, divides_what_a_rank_holds_by_the_ranks) {
  TrainingDescription t = training(4, DataStrategy::ddp);
  const double parameters = static_cast<double>(run(t).parameters);
  EXPECT_NEAR(static_cast<double>(held(run(t))) / parameters, 4.0 + 4.0 + 8.0, 0.2);  // weights, buckets, states
  t.parallel.strategy = DataStrategy::zero1;
  EXPECT_NEAR(static_cast<double>(held(run(t))) / parameters, 4.0 + 4.0 + 8.0 / 4, 0.5);
  t.parallel.strategy = DataStrategy::fsdp;
  // Gradients are gone after a step; the root stays whole until the next one ends.
  const OpTrace sharded = run(t);
  EXPECT_LT(static_cast<double>(held(sharded)) / parameters, (4.0 + 8.0) / 4 + 4.0);
  std::int64_t states = 0;
  for (const Storage& storage : sharded.storages)
    if (storage.category == Category::optimizer_state) states += storage.bytes;
  EXPECT_NEAR(static_cast<double>(states) / parameters, 8.0 / 4, 0.1);
}

TEST(FullyShard, gathers_twice_and_reduces_once) {
  TrainingDescription t = training(4, DataStrategy::fsdp);
  const OpTrace trace = run(t);
  const auto all = testing_support::last_step_of<Collective>(trace);
  const double bytes = 4.0 * static_cast<double>(trace.parameters);
  const auto of = [&](CollectiveKind kind) { return static_cast<double>(bytes_of(all, kind)) / bytes; };
  EXPECT_NEAR(of(CollectiveKind::reduce_scatter), 1.0, 0.02);  // padded
  const double blocks = 3.0 * (12.0 * 64 * 64 + 13.0 * 64) * 4.0 / bytes;
  EXPECT_NEAR(of(CollectiveKind::all_gather), 1.0 + blocks, 0.02);  // the root once
  t.parallel.reshard_after_forward = {1};
  const auto kept = testing_support::last_step_of<Collective>(run(t));
  EXPECT_NEAR(static_cast<double>(bytes_of(kept, CollectiveKind::all_gather)) / bytes, 1.0, 0.02);
}

TEST(FullyShard, takes_half_the_bytes_in_bf16) {
  TrainingDescription t = training(2, DataStrategy::fsdp);
  const std::int64_t wide = bytes_of(testing_support::last_step_of<Collective>(run(t)), CollectiveKind::all_gather);
  t.parallel.parameter_type = DType::bf16;
  EXPECT_EQ(2 * bytes_of(testing_support::last_step_of<Collective>(run(t)), CollectiveKind::all_gather), wide);
}

// Each parameter's half is copied out behind the forward pass, and the backward pass gathers from two ranks without a
// cast.
TEST(FullyShard, gathers_from_a_smaller_group_what_stays_between_the_passes) {
  TrainingDescription t = training(4, DataStrategy::fsdp);
  t.parallel.parameter_type = DType::bf16;
  const OpTrace all = run(t);
  t.parallel.reshard_after_forward = {2};
  const OpTrace between = run(t);
  std::map<std::int64_t, std::int64_t> gathers;
  for (const Collective& one : testing_support::last_step_of<Collective>(between))
    if (one.kind == CollectiveKind::all_gather) ++gathers[one.ranks];
  EXPECT_EQ(gathers, (std::map<std::int64_t, std::int64_t>{{4, 1 + 3}, {2, 3}}));
  const auto calls = [](const OpTrace& trace, auto op) {
    return testing_support::last_step_of<decltype(op)>(trace).size();
  };
  EXPECT_EQ(calls(between, Copy{}) - calls(all, Copy{}), 3U * 12);
  EXPECT_EQ(calls(all, MultiTensor{}) - calls(between, MultiTensor{}), 3U);
  EXPECT_EQ(bytes_of(testing_support::last_step_of<Collective>(between), CollectiveKind::all_gather),
            bytes_of(testing_support::last_step_of<Collective>(all), CollectiveKind::all_gather));
}

TEST(FullyShard, keeps_gathered_buffers_in_the_pool_of_their_own_stream) {
  const OpTrace trace = run(training(2, DataStrategy::fsdp));
  std::set<std::uint8_t> streams;
  for (const Storage& storage : trace.storages) streams.insert(storage.stream);
  EXPECT_EQ(streams.size(), 3u);  // default, copies into the buffer, reduction
  ASSERT_GE(trace.streams.size(), 4u);
}

/// Every operand of every call is alive, and every event was recorded before it is waited for.
void expect_consistent(const OpTrace& trace, const std::string& what) {
  std::vector<bool> alive(trace.storages.size(), false), recorded(trace.events, false);
  for (const Record& record : trace.records) {
    switch (record.kind) {
      case Record::Kind::allocate: alive[record.index] = true; break;
      case Record::Kind::free:
        EXPECT_TRUE(alive[record.index]) << what;
        alive[record.index] = false;
        break;
      case Record::Kind::op: {
        const Call& call = trace.calls[record.index];
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(call.inputs) + call.outputs; ++i) {
          const Operand& operand = trace.operands[call.operands_begin + i];
          EXPECT_TRUE(alive[operand.storage] || trace.storages[operand.storage].bytes == 0)
              << what << ": " << name_of(trace.ops[call.op]);
        }
        break;
      }
      case Record::Kind::record_event: recorded[record.index] = true; break;
      case Record::Kind::wait_event:
      case Record::Kind::host_waits_for_event: EXPECT_TRUE(recorded[record.index]) << what; break;
      default: break;
    }
  }
}

TEST(Parallel, works_on_what_is_alive_and_waits_for_what_was_recorded) {
  for (const DataStrategy strategy : {DataStrategy::ddp, DataStrategy::zero1, DataStrategy::zero2, DataStrategy::fsdp,
                                      DataStrategy::fsdp1, DataStrategy::hsdp})
    for (const bool checkpointed : {false, true})
      for (const bool no_sync : {false, true})
        for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::bf16}) {
          TrainingDescription t = training(4, strategy);
          t.precision = precision;
          t.gradient_accumulation = 2;
          t.gradient_clipping = 1.0;
          t.parallel.no_sync = no_sync;
          t.parallel.wrap = checkpointed ? 2 : 1;
          if (strategy == DataStrategy::hsdp) t.parallel.replicate = 2;
          if (strategy == DataStrategy::fsdp && precision == Precision::fp32) {
            t.parallel.parameter_type = DType::bf16;
            t.parallel.reduce_type = DType::fp32;
          }
          t.parallel.gradient_as_bucket_view = t.parallel.parameters_as_bucket_view = checkpointed;
          if (checkpointed) t.activation_checkpointing = ActivationCheckpointing::block;
          expect_consistent(run(t), "strategy " + std::to_string(static_cast<int>(strategy)) +
                                        (checkpointed ? ", checkpointed" : "") + (no_sync ? ", no_sync" : ""));
        }
}

}  // namespace
}  // namespace ridgeline
