// Where storages and operations belong and how long saved tensors live: rules of PyTorch that hold for every network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/described_network.h"
#include "tests/support/measurement_index.h"
#include "tests/support/small_networks.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Visit = std::function<void(const std::string& name, const OpTrace& trace)>;

TrainingDescription short_training(Precision precision) {
  TrainingDescription t = testing_support::two_sequences(precision);
  t.gradient_accumulation = 2;
  return t;
}
ModelDescription three_blocks(ModelFamily family) {
  ModelDescription model = testing_support::small_network(family, 1000);
  model.layers = 3;
  if (family == ModelFamily::llama) {
    model.feed_forward = 128;
    model.plain = true;
  }
  return model;
}

void for_each_network(const Visit& visit) {
  for (const std::string& name : model_names())
    visit(name, training_run(load_model(name), short_training(Precision::bf16), AttentionChoice::efficient));
  for_each_row(testing::measurements().file("networks/networks.jsonl.gz"), [&](const nlohmann::json& row) {
    visit(row["name"], training_run(testing::described_network(row["config"]), short_training(Precision::amp_bf16),
                                    AttentionChoice::cudnn));
  });
}
void for_each_small_network(const Visit& visit, const std::function<void(TrainingDescription&)>& change = {}) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::bert, ModelFamily::llama})
    for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16, Precision::bf16})
      for (const AttentionChoice attention : {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::cudnn,
                                              AttentionChoice::efficient, AttentionChoice::math}) {
        TrainingDescription t = short_training(precision);
        if (change) change(t);
        visit("small " + std::to_string(static_cast<int>(family)), training_run(three_blocks(family), t, attention));
      }
}

/// Operations of forward and backward passes that made an activation of another layer or module than their own.
std::set<std::string> misplaced(const OpTrace& trace) {
  std::set<std::string> found;
  std::vector<bool> written(trace.storages.size());
  for (const Call& call : trace.calls)
    for (std::uint32_t k = call.inputs; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
      const StorageId id = trace.operands[call.operands_begin + k].storage;
      const Storage& storage = trace.storages[id];
      if (written[id]) continue;
      written[id] = true;
      if (storage.category == Category::activations && (storage.layer != call.layer || storage.module != call.module))
        found.insert(name_of(trace.ops[call.op]));
    }
  return found;
}

TEST(StorageOrder, ActivationsBelongToTheLayerAndModuleThatMadeThem) {
  const Visit visit = [](const std::string& name, const OpTrace& trace) {
    EXPECT_THAT(misplaced(trace), IsEmpty()) << name;
  };
  for_each_network(visit);
  for_each_small_network(visit);
  for_each_small_network(visit,
                         [](TrainingDescription& t) { t.activation_checkpointing = ActivationCheckpointing::block; });
}

/// Operations behind the last use of what a backward pass freed, at most; the loss is the script's.
std::int64_t longest_wait(const OpTrace& trace) {
  struct Use {
    std::int64_t place = -1;
    bool backward = false, loss = false;
  };
  std::vector<Use> uses(trace.storages.size());
  std::int64_t operations = 0, longest = 0;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::op) {
      const Call& call = trace.calls[record.index];
      ++operations;
      for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
        const Operand& operand = trace.operands[call.operands_begin + k];
        uses[operand.storage] = {operations, call.phase == Phase::backward, trace.storages[operand.storage].bytes <= 4};
      }
    }
    if (record.kind != Record::Kind::free) continue;
    const Use& use = uses[record.index];
    const Category category = trace.storages[record.index].category;
    if (use.backward && !use.loss && (category == Category::activations || category == Category::temporaries))
      longest = std::max(longest, operations - use.place);
  }
  return longest;
}

// A node of autograd gives back what it saved when it has run: a few operations later, never at the pass's end.
TEST(StorageOrder, SavedTensorsAreGivenBackWhenTheirNodeHasRun) {
  static constexpr std::int64_t kLongestNode = 6;
  const Visit visit = [](const std::string& name, const OpTrace& trace) {
    const bool experts = std::ranges::any_of(trace.modules, [](const ModuleName& m) { return m.name == "experts"; });
    if (experts) return;  // one node of theirs is a product for each
    EXPECT_LE(longest_wait(trace), kLongestNode) << name;
  };
  for_each_network(visit);
  for_each_small_network(visit);
}

/// Phases of a step, in order, each as often as it begins.
std::vector<Phase> phases_of_last_step(const OpTrace& trace) {
  std::vector<Phase> phases;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Phase phase = trace.calls[trace.records[i].index].phase;
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
  }
  return phases;
}

TEST(StorageOrder, PhasesFollowEachOtherAndTheOptimizerHasItsOwn) {
  using enum Phase;
  const auto run = [](const std::function<void(TrainingDescription&)>& change) {
    TrainingDescription t = short_training(Precision::bf16);
    t.parallel.data = 4;
    change(t);
    return phases_of_last_step(training_run(three_blocks(ModelFamily::gpt2), t, AttentionChoice::flash));
  };
  for (const DataStrategy strategy :
       {DataStrategy::ddp, DataStrategy::zero1, DataStrategy::fsdp, DataStrategy::fsdp1, DataStrategy::zero2}) {
    SCOPED_TRACE(static_cast<int>(strategy));
    EXPECT_THAT(run([&](TrainingDescription& t) { t.parallel.strategy = strategy; }),
                ElementsAre(forward, backward, forward, backward, clipping, optimizer));
  }
  // DeepSpeed's optimizers clip as they add up.
  for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3})
    for (const Precision precision : {Precision::amp_bf16, Precision::amp_fp16})
      EXPECT_THAT(run([&](TrainingDescription& t) {
                    t.parallel.framework = Framework::deepspeed;
                    t.parallel.strategy = stage;
                    t.precision = precision;
                  }),
                  ElementsAre(forward, backward, forward, backward, optimizer));
  for (const OptimizerKind kind :
       {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::sgd_momentum,
        OptimizerKind::adafactor, OptimizerKind::adamw_8bit, OptimizerKind::adamw_kahan, OptimizerKind::bert_adam})
    EXPECT_THAT(run([&](TrainingDescription& t) {
                  t.parallel.data = 1;
                  t.optimizer.kind = kind;
                  t.optimizer.implementation = OptimizerImplementation::foreach;
                }),
                ElementsAre(forward, backward, forward, backward, clipping, optimizer))
        << static_cast<int>(kind);
  EXPECT_THAT(run([](TrainingDescription& t) {
                t.parallel.data = 1;
                t.optimizer.kind = OptimizerKind::none;
              }),
              ElementsAre(forward, backward, forward, backward, clipping));
}

/// What the last step does with states, outside the optimizer.
std::set<std::string> uses_of_states(const OpTrace& trace) {
  std::set<std::string> found;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
      const StorageId id = trace.operands[call.operands_begin + k].storage;
      if (trace.storages[id].category == Category::optimizer_state && call.phase != Phase::optimizer)
        found.insert(name_of(trace.ops[call.op]));
    }
  }
  return found;
}

TEST(StorageOrder, StatesAreTheOptimizersAlone) {
  for_each_small_network([](const std::string& name, const OpTrace& trace) {
    // But a scaler's: its scale multiplies the loss, its inverse the gradients.
    const std::set<std::string> used = uses_of_states(trace);
    EXPECT_TRUE(used.empty() || used == std::set<std::string>({"mul"}) ||
                used == std::set<std::string>({"cast", "mul"}))
        << name << ::testing::PrintToString(used);
  });
}

/// Host work of one kind in the last step.
std::int64_t host_work(const OpTrace& trace, HostClass kind) {
  std::int64_t times = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::host && trace.records[i].host_class == kind)
      times += trace.records[i].index;
  return times;
}

TEST(StorageOrder, EveryFurtherMicroBatchAddsToEveryGradient) {
  for (const std::int64_t micro_batches : {1, 2, 5}) {
    TrainingDescription t = short_training(Precision::bf16);
    t.gradient_accumulation = micro_batches;
    const OpTrace trace = training_run(three_blocks(ModelFamily::llama), t, AttentionChoice::flash);
    EXPECT_EQ(host_work(trace, HostClass::accumulate_grad_add), (micro_batches - 1) * trace.parameter_tensors);
  }
}

}  // namespace
}  // namespace ridgeline
