// What fine-tuning scripts do besides: types of weights and adapters, losses in chunks, optimizers inside the backward
// pass, blocks that are compiled by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/load_model.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::odd_network;

constexpr std::uint8_t kAll = 0xff;

TrainingDescription autocast_over(std::optional<DType> weights) {
  TrainingDescription training;
  training.micro_batch = 1;
  training.sequence_length = 64;
  training.precision = Precision::amp_bf16;
  training.weight_dtype = weights;
  return training;
}
OpTrace run(const ModelDescription& model, const TrainingDescription& training) {
  return training_run(model, training, AttentionChoice::flash);
}
std::int64_t bytes_of(const OpTrace& trace, Category category) {
  std::int64_t sum = 0;
  for (const Storage& storage : trace.storages) sum += storage.category == category ? storage.bytes : 0;
  return sum;
}
/// Operations of the last step.
template <typename Kind, typename Visit>
void for_each(const OpTrace& trace, const Visit& visit) {
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    if (const auto* op = std::get_if<Kind>(&trace.ops[call.op])) visit(*op, call);
  }
}
/// Casts of so many elements, or of a multiple of them.
int casts_of_weights(const OpTrace& trace, std::int64_t elements) {
  int count = 0;
  for_each<Pointwise>(trace, [&](const Pointwise& op, const Call&) {
    count += op.function == PointwiseFunction::cast && op.rows * op.cols % elements == 0;
  });
  return count;
}
double products_of(const OpTrace& trace) {
  double sum = 0.0;
  for_each<Matmul>(trace, [&](const Matmul& op, const Call&) {
    sum += static_cast<double>(op.batch) * static_cast<double>(op.m) * static_cast<double>(op.n) *
           static_cast<double>(op.k);
  });
  return sum;
}

TEST(WeightTypes, SixteenBitsUnderAutocastAreHalfTheBytesAndNeverCast) {
  const ModelDescription model = load_model("gpt2");
  const OpTrace wide = run(model, autocast_over({})), narrow = run(model, autocast_over(DType::bf16));
  for (const Category category : {Category::weights, Category::gradients})
    EXPECT_NEAR(static_cast<double>(bytes_of(narrow, category)), 0.5 * static_cast<double>(bytes_of(wide, category)),
                0.001 * static_cast<double>(bytes_of(wide, category)));
  const std::int64_t of_one_weight = model.hidden * model.hidden;
  EXPECT_GT(casts_of_weights(wide, of_one_weight), 4 * model.layers);
  EXPECT_EQ(casts_of_weights(narrow, of_one_weight), 0);
}

TEST(WeightTypes, AdaptersStayInTheirOwn) {
  const ModelDescription model = load_model("gpt2");
  TrainingDescription training = autocast_over(DType::bf16);
  training.lora = LoraDescription{.rank = 4};
  const OpTrace peft = run(model, training);
  training.lora->dtype = DType::bf16;
  const OpTrace plain = run(model, training);
  EXPECT_EQ(bytes_of(peft, Category::gradients), 2 * bytes_of(plain, Category::gradients));
  EXPECT_GT(bytes_of(plain, Category::gradients), 0);
}

TEST(WeightTypes, AdaptersInTheTypeOfTheLayerCastNothing) {
  ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  training.lora = LoraDescription{.rank = 3, .targets = kAll};
  const auto casts_of_adapters = [&] {
    int count = 0;
    const OpTrace trace = run(model, training);
    for_each<Pointwise>(trace, [&](const Pointwise& op, const Call& call) {
      const bool in_adapter = call.module > 0 && trace.modules[call.module - 1].name == "lora";
      count += op.function == PointwiseFunction::cast && in_adapter;
    });
    return count;
  };
  EXPECT_GT(casts_of_adapters(), 0);
  training.lora->dtype = DType::bf16;
  EXPECT_EQ(casts_of_adapters(), 0);
}

// num_output_chunks of CEWithChunkedOutputLoss is eight; 5 tokens of a sequence are five chunks of one.
TEST(LossInChunks, HoldsOneChunkInFp32AndMultipliesAsOften) {
  const ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  for (const std::int64_t length : {5, 32, 37}) {
    training.sequence_length = length;
    training.loss_code = LossCode::whole;
    const double whole = products_of(run(model, training));
    training.loss_code = LossCode::chunked_output;
    const OpTrace chunks = run(model, training);
    EXPECT_DOUBLE_EQ(products_of(chunks), whole) << length;
    const std::int64_t of_chunk = (length + std::min<std::int64_t>(8, length) - 1) / std::min<std::int64_t>(8, length);
    std::int64_t largest = 0;
    for_each<Softmax>(chunks, [&](const Softmax& op, const Call&) { largest = std::max(largest, op.rows); });
    EXPECT_EQ(largest, training.micro_batch * of_chunk) << length;
  }
}

TEST(LossInChunks, MakesNoGradientOfAFrozenHead) {
  const ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  training.loss_code = LossCode::chunked;
  const auto products_of_loss = [&] {
    int count = 0;
    const OpTrace trace = run(model, training);
    for_each<Matmul>(trace, [&](const Matmul& op, const Call&) { count += op.n == 17 || op.k == 17 || op.m == 17; });
    return count;
  };
  const int trained = products_of_loss();
  training.lora = LoraDescription{.rank = 3};
  EXPECT_EQ(3 * products_of_loss(), 2 * trained);  // scores and the gradient of their input are left
}

std::int64_t most_alive(const OpTrace& trace, Category category) {
  std::int64_t alive = 0, most = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::allocate && record.kind != Record::Kind::free) continue;
    const Storage& storage = trace.storages[record.index];
    if (storage.category != category) continue;
    alive += record.kind == Record::Kind::allocate ? storage.bytes : -storage.bytes;
    most = std::max(most, alive);
  }
  return most;
}

TEST(StepInBackward, HoldsFewGradientsAndAllStates) {
  ModelDescription model = odd_network(ModelFamily::llama);
  model.layers = 4;
  TrainingDescription training = testing_support::odd_training();
  for (const OptimizerImplementation implementation :
       {OptimizerImplementation::fused, OptimizerImplementation::foreach, OptimizerImplementation::for_loop}) {
    training.optimizer = {OptimizerKind::adamw, implementation};
    const OpTrace behind = run(model, training);
    training.optimizer.in_backward = true;
    const OpTrace inside = run(model, training);
    EXPECT_EQ(bytes_of(inside, Category::optimizer_state), bytes_of(behind, Category::optimizer_state));
    EXPECT_EQ(bytes_of(inside, Category::gradients), bytes_of(behind, Category::gradients));
    constexpr std::int64_t kFrequencies = 3 * 4;  // a buffer
    EXPECT_EQ(most_alive(behind, Category::gradients), bytes_of(behind, Category::weights) - kFrequencies);
    EXPECT_LT(4 * most_alive(inside, Category::gradients), most_alive(behind, Category::gradients));
  }
}

// F.get_paged of bitsandbytes takes states of 100,000 numbers and more; their scales stay.
TEST(PagedStates, LeaveTheAllocator) {
  ModelDescription model = load_model("gpt2");
  model.layers = 1;
  TrainingDescription training = autocast_over(DType::bf16);
  training.optimizer.kind = OptimizerKind::adamw_8bit;
  const OpTrace resident = run(model, training);
  training.optimizer.paged = true;
  const OpTrace paged = run(model, training);
  // Tables, and four matrices of a block.
  const std::int64_t of_large = 50257 * 768 + 1024 * 768 + 12 * 768 * 768;
  EXPECT_EQ(bytes_of(resident, Category::optimizer_state) - bytes_of(paged, Category::optimizer_state), 2 * of_large);
}

// DoRA: 36 query and 12 value outputs of a block have a magnitude each; the frozen weight's rows are measured anew.
TEST(AdaptersByMagnitude, TrainANumberForEachOutputAndSweepTheWeight) {
  const ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  training.lora = LoraDescription{.rank = 3};
  const OpTrace plain = run(model, training);
  training.lora->dora = true;
  const OpTrace scaled = run(model, training);
  EXPECT_EQ(bytes_of(scaled, Category::gradients), bytes_of(plain, Category::gradients) + 2 * 4 * (36 + 12));
  int swept = 0;
  for_each<Reduction>(scaled, [&](const Reduction& op, const Call&) {
    swept += op.kind == ReductionKind::sum_cols && op.cols == 36 && (op.rows == 36 || op.rows == 12);
  });
  EXPECT_EQ(swept, 2);
}

TEST(AdaptersOfTheHead, AreTwoMatricesMore) {
  const ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  training.lora = LoraDescription{.rank = 3, .targets = kRolesOfBlocks};
  const std::int64_t of_blocks = bytes_of(run(model, training), Category::gradients);
  training.lora->targets |= 1U << static_cast<unsigned>(LinearRole::head);
  EXPECT_EQ(bytes_of(run(model, training), Category::gradients), of_blocks + 2 * 4 * 3 * (36 + 17));  // of two steps
}

// All inputs go to the host; those of the last five blocks are still there when the backward pass asks for them.
TEST(OffloadedBlocks, ComeBackButForTheLastFive) {
  ModelDescription model = odd_network(ModelFamily::llama);
  model.layers = 8;
  TrainingDescription training = testing_support::odd_training();
  training.activation_checkpointing = ActivationCheckpointing::block;
  training.activation_offload = ActivationOffload::streams;
  training.parallel.compiled = training.parallel.block_by_block = true;
  int out = 0, in = 0;
  for_each<Copy>(run(model, training), [&](const Copy& op, const Call&) {
    out += op.kind == CopyKind::device_to_host && op.type != DType::boolean;  // but the look for packed sequences
    in += op.kind == CopyKind::host_to_device;
  });
  EXPECT_EQ(out, 8);
  EXPECT_EQ(in, 3);
}

// A copy of the table and of the head, 17 rows of 36 each, in the type of the weights, beside fp32 adapters.
TEST(ModulesToSave, AreTrainedBesideTheirFrozenSelves) {
  const ModelDescription model = odd_network(ModelFamily::llama);
  TrainingDescription training = testing_support::odd_training();
  training.optimizer = {OptimizerKind::adamw, OptimizerImplementation::fused};
  training.lora = LoraDescription{.rank = 3};
  const OpTrace before = run(model, training);
  training.lora->saves_embeddings = training.lora->saves_head = true;
  const OpTrace after = run(model, training);
  constexpr std::int64_t kCopies = 2 * 17 * 36;
  EXPECT_EQ(bytes_of(after, Category::weights) - bytes_of(before, Category::weights), 2 * kCopies);
  EXPECT_EQ(bytes_of(after, Category::gradients) - bytes_of(before, Category::gradients), 2 * 2 * kCopies);
  EXPECT_EQ(bytes_of(after, Category::optimizer_state) - bytes_of(before, Category::optimizer_state),
            2 * 2 * kCopies + 2 * 4);  // two of each, and their counts of steps
  std::vector<DType> fused;
  for_each<MultiTensor>(after, [&](const MultiTensor& op, const Call&) {
    if (op.function == MultiTensorFunction::fused_adamw) fused.push_back(op.type);
  });
  EXPECT_THAT(fused, ::testing::UnorderedElementsAre(DType::fp32, DType::bf16));
}

TEST(CompiledBlocksOnOneGpu, AreARangeEachAndTakeChunksOfTheLossByThemselves) {
  ModelDescription model = odd_network(ModelFamily::llama);
  model.layers = 3;
  TrainingDescription training = testing_support::odd_training();
  training.loss_code = LossCode::chunked_output;
  training.parallel.compiled = training.parallel.block_by_block = true;
  const OpTrace trace = run(model, training);
  EXPECT_EQ(trace.compiled_ranges.size(), 2u * 3u);  // of two steps
  int generated = 0;
  for_each<FusedKernel>(trace, [&](const FusedKernel&, const Call&) { ++generated; });
  EXPECT_EQ(generated, 2 * 5);  // of five chunks, forward and backward
  for_each<Softmax>(trace, [](const Softmax& op, const Call&) { EXPECT_FALSE(op.log); });
}

}  // namespace
}  // namespace ridgeline
