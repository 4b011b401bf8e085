// A trace is made in the pattern of another only where they differ in numbers alone: every field that may not.
#include <gtest/gtest.h>

#include <functional>

#include "sim/workload/trace_pattern.h"
#include "sim/workload/training_step.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using Change = std::function<void(OpTrace&)>;

struct Blocks {
  ModelDescription model = testing_support::odd_network(ModelFamily::gpt2);
  TrainingDescription training = testing_support::odd_training();
  OpTrace whole, part;

  Blocks() {
    model.layers = 6;
    training.optimizer.kind = OptimizerKind::sgd;
    whole = training_run(model, training, AttentionChoice::flash);
    part = TracePattern::part_of(model, training, AttentionChoice::flash);
  }
  [[nodiscard]] std::optional<TracePattern> pattern() const {
    return TracePattern::of(std::make_shared<const OpTrace>(whole), part);
  }
  /// Whether a trace that was changed is taken for one of another size.
  [[nodiscard]] bool follows(const Change& change) const {
    OpTrace other = part;
    change(other);
    return pattern()->at(model, training, other).has_value();
  }
};

/// The first record of a kind, the first operation of a block's forward pass, a storage of its own.
Record& first_record(OpTrace& t, Record::Kind kind) {
  return *std::find_if(t.records.begin(), t.records.end(), [&](const Record& r) { return r.kind == kind; });
}
std::size_t in_block(const OpTrace& t) {
  return static_cast<std::size_t>(
      std::find_if(t.calls.begin(), t.calls.end(), [](const Call& c) { return c.layer == 1; }) - t.calls.begin());
}

TEST(TracePatternFields, BytesAndShapesMayDiffer) {
  const Blocks blocks;
  EXPECT_TRUE(blocks.follows([](OpTrace&) {}));
  EXPECT_TRUE(blocks.follows([](OpTrace& t) { t.operands[t.calls[in_block(t)].operands_begin].bytes += 2; }));
  EXPECT_TRUE(blocks.follows([](OpTrace& t) { t.model_flops += 1; }));
  EXPECT_TRUE(blocks.follows([](OpTrace& t) {
    Call& call = t.calls[in_block(t)];
    t.ops.push_back(Softmax{.rows = 77});
    call.op = static_cast<std::uint32_t>(t.ops.size() - 1);
  }));
}

TEST(TracePatternFields, WhatATraceSaysOfItselfMayNot) {
  const Blocks blocks;
  for (const Change& change : std::initializer_list<Change>{
           [](OpTrace& t) { ++t.events; }, [](OpTrace& t) { ++t.parameters; },
           [](OpTrace& t) { ++t.parameter_tensors; }, [](OpTrace& t) { t.notes.emplace_back("note"); },
           [](OpTrace& t) { t.streams.emplace_back("stream"); }, [](OpTrace& t) { t.refills.emplace_back(0, 1); },
           [](OpTrace& t) {
             t.stage_actions.push_back({0, 1});
           },
           [](OpTrace& t) { t.without_gradients = true; },
           [](OpTrace& t) {
             t.modules.push_back({"module", 0});
           },
           [](OpTrace& t) { ++t.steps[0].begin; }, [](OpTrace& t) { --t.steps[1].end; },
           [](OpTrace& t) { t.steps.pop_back(); },
           [](OpTrace& t) {
             t.repeats.push_back({{0, 1}, 2});
           }})
    EXPECT_FALSE(blocks.follows(change));
}

TEST(TracePatternFields, RecordsMayNot) {
  const Blocks blocks;
  for (const Change& change : std::initializer_list<Change>{
           [](OpTrace& t) { t.records.push_back({Record::Kind::wait_for_gpu}); },
           [](OpTrace& t) { first_record(t, Record::Kind::host).kind = Record::Kind::wait_for_gpu; },
           [](OpTrace& t) { first_record(t, Record::Kind::host).host_class = HostClass::other; },
           [](OpTrace& t) { first_record(t, Record::Kind::host).stream = 1; },
           [](OpTrace& t) { ++first_record(t, Record::Kind::host).index; },
           [](OpTrace& t) { ++first_record(t, Record::Kind::free).index; }})
    EXPECT_FALSE(blocks.follows(change));
}

TEST(TracePatternFields, CallsStoragesAndOperandsMayNotApartFromBytes) {
  const Blocks blocks;
  for (const Change& change : std::initializer_list<Change>{
           [](OpTrace& t) { ++t.calls[in_block(t)].inputs; }, [](OpTrace& t) { ++t.calls[in_block(t)].outputs; },
           [](OpTrace& t) { t.calls[in_block(t)].phase = Phase::other; },
           [](OpTrace& t) { t.calls[in_block(t)].stream = 1; }, [](OpTrace& t) { t.calls[in_block(t)].layer = 2; },
           [](OpTrace& t) { ++t.calls[in_block(t)].module; }, [](OpTrace& t) { ++t.calls[in_block(t)].operands_begin; },
           [](OpTrace& t) { t.storages.back().category = Category::workspaces; },
           [](OpTrace& t) { t.storages.back().stream = 1; }, [](OpTrace& t) { t.storages.back().layer = 2; },
           [](OpTrace& t) { ++t.storages.back().module; }, [](OpTrace& t) { t.storages.back().bytes = 0; },
           [](OpTrace& t) { ++t.operands[t.calls[in_block(t)].operands_begin].storage; }})
    EXPECT_FALSE(blocks.follows(change));
}

TEST(TracePatternFields, RangesOfCompilationMayNot) {
  const Blocks blocks;
  for (const Change& change : std::initializer_list<Change>{
           [](OpTrace& t) { ++t.compiled_ranges[0].forward.begin; },
           [](OpTrace& t) { ++t.compiled_ranges[0].forward.end; },
           [](OpTrace& t) { ++t.compiled_ranges[0].backward.begin; },
           [](OpTrace& t) { ++t.compiled_ranges[0].backward.end; },
           [](OpTrace& t) { ++t.compiled_ranges[0].outer_nodes; },
           [](OpTrace& t) { t.compiled_ranges[0].returns_scores = !t.compiled_ranges[0].returns_scores; },
           [](OpTrace& t) { t.compiled_ranges.pop_back(); }})
    EXPECT_FALSE(blocks.follows(change));
}

/// Whether a whole trace that was changed has a pattern.
bool has_pattern(const Change& change) {
  Blocks blocks;
  change(blocks.whole);
  return blocks.pattern().has_value();
}
/// Of the fourth block.
Call& call_between(OpTrace& t) {
  return *std::find_if(t.calls.begin(), t.calls.end(), [](const Call& c) { return c.layer == 3; });
}
Storage& storage_between(OpTrace& t) {
  return *std::find_if(t.storages.begin(), t.storages.end(),
                       [](const Storage& s) { return s.layer == 3 && s.category == Category::activations; });
}

TEST(TracePatternFields, BlocksOfTheWholeAreThoseOfThePart) {
  EXPECT_TRUE(has_pattern([](OpTrace&) {}));
  for (const Change& change : std::initializer_list<Change>{
           [](OpTrace& t) { storage_between(t).bytes += 2; }, [](OpTrace& t) { storage_between(t).bytes = 0; },
           [](OpTrace& t) { storage_between(t).category = Category::inputs; },
           [](OpTrace& t) { storage_between(t).stream = 1; }, [](OpTrace& t) { storage_between(t).layer = 2; },
           [](OpTrace& t) { t.calls.back().phase = Phase::clipping; },  // the part clips nothing
           [](OpTrace& t) { call_between(t).phase = Phase::other; }, [](OpTrace& t) { call_between(t).stream = 1; },
           [](OpTrace& t) { call_between(t).layer = 2; }, [](OpTrace& t) { --call_between(t).inputs; },
           [](OpTrace& t) { t.operands[call_between(t).operands_begin].bytes += 2; },
           [](OpTrace& t) {
             t.ops.push_back(Softmax{.rows = 77});
             call_between(t).op = static_cast<std::uint32_t>(t.ops.size() - 1);
           },
           [](OpTrace& t) {
             t.storages.push_back({8, Category::activations, 3});
           }})  // one that is never made
    EXPECT_FALSE(has_pattern(change));
}

// What is outside of all blocks may differ: it stays as it is, as long as its like stays too.
TEST(TracePatternFields, WhatIsOutsideOfBlocksMayBeKept) {
  Blocks blocks;
  const auto outside = [](OpTrace& t) -> Call& {
    return *std::find_if(t.calls.begin(), t.calls.end(), [](const Call& c) { return c.phase == Phase::optimizer; });
  };
  const std::optional<TracePattern> pattern = blocks.pattern();
  ASSERT_TRUE(pattern);
  OpTrace other = blocks.part;
  other.ops.push_back(Softmax{.rows = 77});
  outside(other).op = static_cast<std::uint32_t>(other.ops.size() - 1);
  EXPECT_FALSE(pattern->at(blocks.model, blocks.training, other));
  EXPECT_TRUE(pattern->keeps_lists(blocks.part)) << "those of the optimizer have no like: six blocks have more tensors";
}

TEST(TracePatternFields, ATraceOfOtherSizesIsTheOneMadeWhole) {
  Blocks blocks;
  const std::optional<TracePattern> pattern = blocks.pattern();
  ASSERT_TRUE(pattern);
  blocks.training.micro_batch = 4;
  const std::optional<OpTrace> made = pattern->at(
      blocks.model, blocks.training, TracePattern::part_of(blocks.model, blocks.training, AttentionChoice::flash));
  ASSERT_TRUE(made);
  const OpTrace whole = training_run(blocks.model, blocks.training, AttentionChoice::flash);
  EXPECT_EQ(testing_support::last_step_in_words(*made), testing_support::last_step_in_words(whole));
  EXPECT_EQ(made->model_flops, whole.model_flops);
  EXPECT_NE(testing_support::last_step_in_words(*made), testing_support::last_step_in_words(blocks.whole));
}

TEST(TracePatternFields, APatternIsOfNetworksOnOneGpuOfSixBlocksAtLeast) {
  const Blocks blocks;
  const auto applies = [&](const std::function<void(Blocks&)>& change) {
    Blocks changed = blocks;
    change(changed);
    return TracePattern::applies(changed.model, changed.training);
  };
  EXPECT_TRUE(applies([](Blocks&) {}));
  for (const std::function<void(Blocks&)>& change : std::initializer_list<std::function<void(Blocks&)>>{
           [](Blocks& b) { b.model.layers = 5; }, [](Blocks& b) { b.model.family = ModelFamily::composed; },
           [](Blocks& b) { b.training.checkpointed_every = 2; },
           [](Blocks& b) {
             b.training.packed_lengths = {2, 3};
           },
           [](Blocks& b) { b.training.data_parallel = DataParallel::apex; },
           [](Blocks& b) { b.training.inference = InferenceDescription{}; },
           [](Blocks& b) { b.training.lora = LoraDescription{}; }, [](Blocks& b) { b.training.parallel.data = 2; },
           [](Blocks& b) { b.training.parallel.tensor = 2; }, [](Blocks& b) { b.training.parallel.compiled = true; },
           [](Blocks& b) { b.training.parallel.split = 2; },
           [](Blocks& b) { b.training.parallel.framework = Framework::megatron; },
           [](Blocks& b) { b.training.parallel.framework = Framework::deepspeed; }})
    EXPECT_FALSE(applies(change));
}

}  // namespace
}  // namespace ridgeline
