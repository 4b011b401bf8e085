// One process with several GPUs: a network cut over its devices, and torch.nn.DataParallel.
#include <gtest/gtest.h>

#include <map>

#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

ModelDescription gpt(std::int64_t layers, std::int64_t hidden) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = layers;
  model.heads = hidden / 64;
  model.hidden = hidden;
  model.vocabulary = 50304;
  model.max_positions = 1024;
  model.activation = Activation::gelu_tanh;
  return model;
}

TrainingDescription training() {
  TrainingDescription t;
  t.micro_batch = 4;
  t.sequence_length = 64;
  t.optimizer.implementation = OptimizerImplementation::fused;
  return t;
}

std::map<CollectiveKind, std::vector<Collective>> collectives(const OpTrace& trace) {
  std::map<CollectiveKind, std::vector<Collective>> result;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    if (const auto* c = std::get_if<Collective>(&trace.ops[trace.calls[record.index].op]))
      result[c->kind].push_back(*c);
  }
  return result;
}

std::int64_t sum(const std::vector<Collective>& all) {
  std::int64_t bytes = 0;
  for (const Collective& one : all) bytes += one.bytes;
  return bytes;
}

TEST(NetworkCutOverDevices, hands_one_tensor_on_and_its_gradient_back) {
  TrainingDescription t = training();
  const std::int64_t handed = t.micro_batch * t.sequence_length * 128 * 4;
  for (const std::int64_t devices : {2, 4})
    for (const std::int64_t pieces : {1, 2, 4}) {
      t.parallel.split = devices;
      t.parallel.pieces = pieces;
      const auto found = collectives(training_run(gpt(4, 128), t, AttentionChoice::flash));
      ASSERT_EQ(found.size(), 1u);
      const std::vector<Collective>& copies = found.at(CollectiveKind::peer_copy);
      EXPECT_EQ(copies.size(), static_cast<std::size_t>(2 * (devices - 1) * pieces));
      EXPECT_EQ(sum(copies), 2 * (devices - 1) * handed);
    }
}

TEST(NetworkCutOverDevices, has_each_weight_on_one_of_them) {
  TrainingDescription t = training();
  t.parallel.split = 2;
  const ModelDescription model = gpt(4, 128);
  const OpTrace trace = training_run(model, t, AttentionChoice::flash);
  std::map<int, std::int64_t> weights;
  for (const Storage& storage : trace.storages)
    if (storage.category == Category::weights) weights[storage.stream] += storage.bytes;
  const std::int64_t d = model.hidden, block = 12 * d * d + 13 * d;
  EXPECT_EQ(weights.at(0), 4 * (model.vocabulary * d + model.max_positions * d + 2 * block));
  EXPECT_EQ(weights.at(1), 4 * (2 * block + 2 * d + model.vocabulary * d));  // a head of its own
  // Kernels of a weight's gradient and update run on its device.
  std::map<int, int> updates;
  for (const Call& call : trace.calls)
    if (call.phase == Phase::optimizer && std::holds_alternative<MultiTensor>(trace.ops[call.op]))
      ++updates[call.stream];
  EXPECT_GT(updates[0], 0);
  EXPECT_GT(updates[1], 0);
}

// measurements/h200/parallel/further_steps.jsonl.gz: 25 broadcasts and 38 reductions a step of GPT-2.
TEST(DataParallel, sends_the_buffers_that_were_measured) {
  TrainingDescription t = training();
  t.precision = Precision::amp_bf16;
  t.parallel.data = 2;
  t.parallel.strategy = DataStrategy::dataparallel;
  const OpTrace trace = training_run(gpt(12, 768), t, AttentionChoice::flash);
  const auto found = collectives(trace);
  EXPECT_EQ(found.at(CollectiveKind::broadcast).size(), 25u);
  EXPECT_EQ(found.at(CollectiveKind::reduce).size(), 38u);
  EXPECT_EQ(sum(found.at(CollectiveKind::broadcast)), 4 * trace.parameters);
  EXPECT_EQ(sum(found.at(CollectiveKind::reduce)), 4 * trace.parameters);
}

// Its threads enter autocast with fp16, whatever the script's type is: nvjet_sm90_hsh in the measured step.
TEST(DataParallel, multiplies_in_fp16_under_autocast) {
  TrainingDescription t = training();
  t.precision = Precision::amp_bf16;
  t.parallel.data = 2;
  t.parallel.strategy = DataStrategy::dataparallel;
  const OpTrace trace = training_run(gpt(2, 128), t, AttentionChoice::flash);
  for (const Op& op : trace.ops)
    if (const auto* product = std::get_if<Matmul>(&op)) {
      EXPECT_EQ(product->type, DType::fp16);
    }
}

// PyTorch keeps cuDNN's plans of attention by thread; the other kernels of attention have none.
TEST(DataParallel, new_threads_plan_the_attention_of_cudnn_alone) {
  const auto plans = [&](std::int64_t devices, AttentionChoice attention) {
    TrainingDescription t = training();
    t.precision = Precision::amp_bf16;
    t.parallel.data = devices;
    t.parallel.strategy = DataStrategy::dataparallel;
    const OpTrace trace = training_run(gpt(2, 128), t, attention);
    std::uint32_t most = 0;
    for (const Record& record : trace.records)
      if (record.kind == Record::Kind::host && record.host_class == HostClass::thread_products)
        most = std::max(most, record.index);
    return most;
  };
  EXPECT_EQ(plans(2, AttentionChoice::cudnn), 2u);  // two layers of one shape, on two devices
  EXPECT_EQ(plans(4, AttentionChoice::cudnn), 4u);
  EXPECT_EQ(plans(2, AttentionChoice::flash), 0u);
  EXPECT_EQ(plans(2, AttentionChoice::eager), 0u);
}

TEST(DataParallel, gives_each_gpu_its_part_of_the_batch) {
  TrainingDescription t = training();
  t.parallel.strategy = DataStrategy::dataparallel;
  const auto rows_of_head = [&](std::int64_t devices) {
    t.parallel.data = devices;
    std::int64_t rows = 0;
    for (const Op& op : training_run(gpt(2, 128), t, AttentionChoice::flash).ops)
      if (const auto* product = std::get_if<Matmul>(&op); product != nullptr && product->n == 50304) rows = product->m;
    return rows;
  };
  EXPECT_EQ(rows_of_head(1), 4 * 64);
  EXPECT_EQ(rows_of_head(2), 2 * 64);
  EXPECT_EQ(rows_of_head(4), 64);
}

}  // namespace
}  // namespace ridgeline
