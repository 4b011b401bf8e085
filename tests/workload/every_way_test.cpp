// Rules that hold for every way to train and use a network: operations work on what is there, belong where their
// weights do, follow the host's call that launches them, and compute nothing in vain.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/units/user_error.h"
#include "tests/support/data_flow.h"
#include "tests/support/trace_mistakes.h"
#include "tests/support/ways_to_train.h"

namespace ridgeline {
namespace {

using testing_support::WaysToTrain;
using testing_support::WayToTrain;

struct Made {
  WayToTrain way;
  OpTrace trace;
};
const std::vector<Made>& all_ways() {
  static const std::vector<Made> made = [] {
    std::vector<Made> all;
    for (WayToTrain& way : WaysToTrain().all()) {
      OpTrace trace = way.run();
      all.push_back({std::move(way), std::move(trace)});
    }
    return all;
  }();
  return made;
}

constexpr std::int64_t kMostLayers = 4;

TEST(EveryWay, OperationsWorkOnWhatIsThere) {
  for (const Made& made : all_ways())
    EXPECT_EQ(testing_support::first_mistake(made.trace, kMostLayers), "") << made.way.name;
}

TEST(EveryWay, OnlyEventsNameTheirStreamBesideOperations) {
  for (const Made& made : all_ways())
    for (const Record& record : made.trace.records) {
      if (record.kind == Record::Kind::record_event || record.kind == Record::Kind::wait_event) continue;
      ASSERT_EQ(record.stream, 0) << made.way.name << ' ' << static_cast<int>(record.kind);
    }
}

/// DeepSpeed's weights lie in flat buffers, which belong nowhere.
TEST(EveryWay, WeightsAreUsedInTheirOwnLayer) {
  std::set<std::string> elsewhere;
  for (const Made& made : all_ways()) {
    if (made.way.training.parallel.deepspeed()) continue;
    for (const Call& call : made.trace.calls) {
      if (call.phase != Phase::forward && call.phase != Phase::backward) continue;
      for (std::uint32_t k = 0; k < std::uint32_t{call.inputs} + call.outputs; ++k) {
        const Storage& storage = made.trace.storages[made.trace.operands[call.operands_begin + k].storage];
        if (storage.category == Category::weights && storage.layer != call.layer)
          elsewhere.insert(fmt::format("{}: {} of {} in {}", made.way.name, name_of(made.trace.ops[call.op]),
                                       storage.layer, call.layer));
      }
    }
  }
  EXPECT_THAT(elsewhere, ::testing::IsEmpty());
}

/// What one call of the host launches: how many kernels at most, and which.
struct Launches {
  std::size_t most = 0;
  std::set<std::string> kernels{};
};
/// Classes of which PyTorch's operator, or node of the backward pass, launches a few kernels that are known.
const std::map<HostClass, Launches>& launched_by() {
  using enum HostClass;
  static const std::map<HostClass, Launches> all{
      {view, {}},
      {split, {}},
      {transpose, {}},
      {dropout_off, {}},
      {accumulate_grad, {}},
      {accumulate_grad_add, {1, {"add_"}}},
      {add_backward, {1, {"sum"}}},
      {addmm_backward, {3, {"mm", "sum"}}},
      {attention_cudnn, {3, {"cast", "cudnn_attention"}}},
      {attention_cudnn_backward, {1, {"cudnn_attention_backward"}}},
      {attention_fused_backward, {1, {"flash_attention_backward", "efficient_attention_backward"}}},
      {backward_call, {1, {"fill"}}},
      {backward_first, {}},
      {bmm_backward, {2, {"bmm", "_grouped_mm"}}},
      {cast, {1, {"cast"}}},
      {cast_backward, {2, {"cast", "sum"}}},
      {contiguous, {1, {"copy"}}},
      {cross_entropy, {3, {"log_softmax", "cast", "nll_loss"}}},
      {ddp_copy_back, {1, {"copy"}}},
      {ddp_hook, {1, {"scale", "copy"}}},
      {ddp_compression, {2, {"cast", "scale"}}},
      {dropout, {1, {"native_dropout"}}},
      {dtensor_op, {}},
      {dtensor_op_backward, {1, {"copy"}}},
      {dtensor_redistribute, {1, {"copy"}}},
      {embedding, {3, {"embedding", "arange", "pointwise", "copy"}}},
      {embedding_backward, {2, {"copy", "embedding_dense_backward"}}},
      {fan_in_add, {1, {"add", "add_"}}},
      {fsdp_copy_out, {2, {"copy_to_device", "copy"}}},
      {fsdp_gather, {1, {"copy", "copy_to_device", "foreach_copy"}}},
      {fsdp_reduce, {2, {"copy", "copy_to_device", "cast"}}},
      {layer_norm, {1, {"native_layer_norm"}}},
      {layer_norm_module, {2, {"cast", "native_layer_norm"}}},
      {layer_norm_backward, {1, {"native_layer_norm_backward"}}},
      {linear, {3, {"addmm", "mm", "sum", "cast"}}},
      {linear_autocast, {5, {"cast", "addmm", "mm", "sum"}}},
      {log_softmax_backward, {1, {"log_softmax_backward"}}},
      {masked_fill, {1, {"masked_fill"}}},
      {masked_fill_backward, {1, {"masked_fill"}}},
      {matmul, {2, {"cast", "bmm", "_grouped_mm"}}},
      {matmul_copy, {2, {"cast", "copy"}}},
      {megatron_linear, {3, {"mm", "add", "cast"}}},
      {megatron_linear_backward, {3, {"mm", "sum"}}},
      {mm_backward, {2, {"mm"}}},
      {nll_backward, {1, {"nll_loss_backward"}}},
      {pipeline_exchange, {1, {"send_recv"}}},
      {softmax, {2, {"softmax", "cast"}}},
      {softmax_backward, {1, {"softmax_backward"}}},
      {split_backward, {1, {"cat"}}},
      {tensor_boundary, {1, {"copy"}}},
      {view_backward, {1, {"sum"}}},
      {view_backward_copy, {1, {"copy"}}}};
  return all;
}

/// What follows calls that do not launch it, in forward and backward passes: of each run of the host's calls with the
/// kernels behind it.
std::set<std::string> without_a_call(const OpTrace& trace) {
  std::set<std::string> found;
  Launches allowed;
  std::string calls;
  bool known = false, launches = false;
  std::size_t launched = 0;
  for (std::uint32_t i = trace.steps.front().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::host) {
      if (launches) {
        allowed = {};
        calls.clear();
        known = true;
        launches = false;
        launched = 0;
      }
      const auto of = launched_by().find(record.host_class);
      known = known && of != launched_by().end();
      calls += std::string(name_of(record.host_class)) + " ";
      if (of == launched_by().end()) continue;
      allowed.most += of->second.most * record.index;
      allowed.kernels.insert(of->second.kernels.begin(), of->second.kernels.end());
    } else if (record.kind == Record::Kind::op) {
      launches = true;
      const Call& call = trace.calls[record.index];
      const Op& op = trace.ops[call.op];
      known = known && (call.phase == Phase::forward || call.phase == Phase::backward);
      if (known && (!allowed.kernels.contains(name_of(op)) || ++launched > allowed.most))
        found.insert(calls + "and then " + name_of(op));
    }
  }
  return found;
}

TEST(EveryWay, KernelsFollowTheCallThatLaunchesThem) {
  std::map<std::string, std::string> odd;
  for (const Made& made : all_ways()) {
    // A block that runs again stops before the kernel of its last call; a generation clears its rooms for keys.
    const TrainingDescription& training = made.way.training;
    if (training.inference || training.activation_checkpointing != ActivationCheckpointing::none) continue;
    for (const std::string& one : without_a_call(made.trace)) odd[one] = made.way.name;
  }
  odd.erase("layer_norm_module and then fill");  // zeros that a stage learns its shapes on, behind a stage of BERT
  EXPECT_THAT(odd, ::testing::IsEmpty());
}

/// Plain training is looked at in data_flow_test.cpp; shards come from elsewhere, stages work on what others made.
bool makes_all_it_reads(const WayToTrain& way) {
  const ParallelDescription& parallel = way.training.parallel;
  return way.name.find("plain") != 0 && !way.training.inference && !parallel.pipelined() && parallel.context == 1 &&
         !parallel.shards_parameters() && parallel.strategy != DataStrategy::dataparallel;
}

TEST(EveryWay, NothingIsComputedInVain) {
  // The state of random numbers and counters of experts are no operands, the loss itself is the script's, and of a sort
  // what is read are the places. Megatron's masks hide nothing in the attention that runs, and its script reads the
  // batch's own numbers alone.
  const std::set<std::string> known{"never written: attention",      "never written: loss",
                                    "never written: experts",        "never written: head",
                                    "writes unread: cumsum 0",  // where groups end
                                    "writes unread: div 0",
                                    "writes unread: pointwise 0",  // clamped experts
                                    "writes unread: scale 0",        "writes unread: sort 0",
                                    "writes unread: sort 1",         "writes unread: topk 0",
                                    "writes unread: cast 0",         "writes unread: eq 0",
                                    "writes unread: index 0",        "reads unwritten: copy_to_device 0",
                                    "reads unwritten: masked_fill 1"};
  std::map<std::string, std::string> odd;
  std::size_t looked_at = 0;
  for (const Made& made : all_ways()) {
    if (!makes_all_it_reads(made.way)) continue;
    ++looked_at;
    for (const std::string& one : testing_support::oddities_of_flow(made.trace))
      if (!known.contains(one)) odd[one] = made.way.name;
  }
  EXPECT_THAT(odd, ::testing::IsEmpty());
  EXPECT_GT(looked_at, 50u);
}

// generate() is Transformers': a network written out in PyTorch has none.
TEST(EveryWay, APlainNetworkReadsAndDoesNotWrite) {
  WayToTrain way{"", testing_support::small_network(ModelFamily::llama),
                 testing_support::two_sequences(Precision::bf16)};
  way.training.sequence_length = 16;
  way.model.plain = true;
  way.training.inference = InferenceDescription{.sequences = 2, .new_tokens = 4};
  EXPECT_THROW(way.run(), UserError);
  way.training.inference->new_tokens = 0;
  EXPECT_FALSE(way.run().calls.empty());
}

}  // namespace
}  // namespace ridgeline
