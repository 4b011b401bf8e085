// torch.compile on small models: what is fused, what stays, what lives how long.
#include "sim/workload/compile/compile_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/live_storages.h"

namespace ridgeline {
namespace {

/// Of the GPU compiled for.
constexpr int kSms = 132;

ModelDescription small_gpt2(double dropout = 0.0) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = 2;
  model.heads = 4;
  model.hidden = 256;
  model.vocabulary = 512;
  model.max_positions = 128;
  model.dropout = model.attention_dropout = dropout;
  return model;
}

TrainingDescription small_training(Precision precision = Precision::amp_bf16, std::int64_t accumulation = 1) {
  TrainingDescription training;
  training.micro_batch = 4;
  training.sequence_length = 128;
  training.gradient_accumulation = accumulation;
  training.precision = precision;
  return training;
}

struct Both {
  OpTrace eager, compiled;
};
Both both(const ModelDescription& model, const TrainingDescription& training,
          AttentionChoice attention = AttentionChoice::flash) {
  return {training_run(model, training, attention),
          compile::compile_trace(training_run(model, training, attention), kSms)};
}

template <typename O, typename Visit>
void for_each_call(const OpTrace& trace, Visit visit) {
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    if (const auto* op = std::get_if<O>(&trace.ops[call.op])) visit(*op, call);
  }
}
template <typename O>
int count(const OpTrace& trace) {
  int result = 0;
  for_each_call<O>(trace, [&](const O&, const Call&) { ++result; });
  return result;
}

TEST(CompileTrace, products_attention_and_optimizer_stay_what_they_were) {
  for (const Precision precision : {Precision::fp32, Precision::amp_bf16, Precision::amp_fp16, Precision::bf16}) {
    const Both traces = both(small_gpt2(), small_training(precision));
    EXPECT_EQ(count<Matmul>(traces.compiled), count<Matmul>(traces.eager));
    EXPECT_EQ(count<Attention>(traces.compiled), count<Attention>(traces.eager));
    EXPECT_EQ(count<MultiTensor>(traces.compiled), count<MultiTensor>(traces.eager));
  }
}

TEST(CompileTrace, no_norm_softmax_dropout_or_embedding_is_left) {
  const OpTrace trace = both(small_gpt2(0.1), small_training(), AttentionChoice::eager).compiled;
  EXPECT_EQ(count<Norm>(trace) + count<Softmax>(trace) + count<Dropout>(trace) + count<Embedding>(trace), 0);
  EXPECT_GT(count<FusedKernel>(trace), 20);
}

TEST(CompileTrace, a_residual_and_the_norm_behind_it_are_one_kernel) {
  bool found = false;
  for_each_call<FusedKernel>(both(small_gpt2(), small_training()).compiled, [&](const FusedKernel& op, const Call&) {
    found = found || (op.shape == FusedKernel::Shape::rows && op.name.find("add") != std::string::npos &&
                      op.name.find("native_layer_norm") != std::string::npos);
  });
  EXPECT_TRUE(found);
}

TEST(CompileTrace, casts_of_weights_are_kernels_of_their_own) {
  std::set<std::string> names;
  for_each_call<FusedKernel>(both(small_gpt2(), small_training()).compiled,
                             [&](const FusedKernel& op, const Call&) { names.insert(op.name); });
  EXPECT_TRUE(names.contains("_to_copy"));
}

std::int64_t bytes_outside_library_calls(const OpTrace& trace) {
  std::int64_t bytes = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    const Op& op = trace.ops[call.op];
    if (std::holds_alternative<Matmul>(op) || std::holds_alternative<Attention>(op)) continue;
    if (std::holds_alternative<MultiTensor>(op)) continue;  // the optimizer is not compiled
    for (int o = 0; o < call.inputs + call.outputs; ++o)
      bytes += trace.operands[call.operands_begin + static_cast<std::uint32_t>(o)].bytes;
  }
  return bytes;
}

TEST(CompileTrace, fusion_moves_fewer_bytes) {
  for (const AttentionChoice attention : {AttentionChoice::flash, AttentionChoice::eager}) {
    const Both traces = both(small_gpt2(0.1), small_training(), attention);
    EXPECT_LT(static_cast<double>(bytes_outside_library_calls(traces.compiled)),
              0.8 * static_cast<double>(bytes_outside_library_calls(traces.eager)));
  }
}

// Everything a steady step allocates it frees, but for what replaces an equal thing of the step before.
TEST(CompileTrace, storages_are_born_before_they_are_used_and_die_once) {
  for (const std::int64_t accumulation : {1, 3}) {
    for (const AttentionChoice attention : {AttentionChoice::flash, AttentionChoice::eager}) {
      const OpTrace trace =
          both(small_gpt2(0.1), small_training(Precision::amp_fp16, accumulation), attention).compiled;
      std::map<StorageId, bool> alive;
      std::int64_t born = 0, died = 0;
      StorageId next = 0;
      for (std::uint32_t i = 0; i < trace.records.size(); ++i) {
        const Record& record = trace.records[i];
        const bool steady = i >= trace.steps.back().begin;
        if (record.kind == Record::Kind::allocate) {
          EXPECT_EQ(record.index, next++) << "storages are numbered as they are allocated";
          alive[record.index] = true;
          if (steady) born += trace.storages[record.index].bytes;
        } else if (record.kind == Record::Kind::free) {
          ASSERT_TRUE(alive[record.index]) << "storage " << record.index;
          alive[record.index] = false;
          if (steady) died += trace.storages[record.index].bytes;
        } else if (record.kind == Record::Kind::op) {
          const Call& call = trace.calls[record.index];
          for (int o = 0; o < call.inputs + call.outputs; ++o) {
            const Operand& operand = trace.operands[call.operands_begin + static_cast<std::uint32_t>(o)];
            if (trace.storages[operand.storage].bytes > 0) {
              ASSERT_TRUE(alive[operand.storage]) << "storage " << operand.storage << " at record " << i;
            }
          }
        }
      }
      EXPECT_EQ(born, died);
    }
  }
}

TEST(CompileTrace, recomputing_keeps_less_than_eager_saves) {
  const auto kept_after_forward = [](const OpTrace& trace) {
    std::int64_t bytes = 0, most = 0;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
      const Record& record = trace.records[i];
      if (record.kind == Record::Kind::allocate) bytes += trace.storages[record.index].bytes;
      if (record.kind == Record::Kind::free) bytes -= trace.storages[record.index].bytes;
      if (record.kind == Record::Kind::op && trace.calls[record.index].phase == Phase::backward) break;
      most = std::max(most, bytes);
    }
    return most;
  };
  const Both traces = both(small_gpt2(0.1), small_training(Precision::fp32), AttentionChoice::eager);
  EXPECT_LT(kept_after_forward(traces.compiled), kept_after_forward(traces.eager));
}

TEST(CompileTrace, the_host_enters_each_graph_once_a_micro_batch) {
  const OpTrace trace = both(small_gpt2(), small_training(Precision::amp_bf16, 3)).compiled;
  std::map<HostClass, int> hosts;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::host) ++hosts[trace.records[i].host_class];
  EXPECT_EQ(hosts[HostClass::compiled_forward], 3);
  EXPECT_EQ(hosts[HostClass::compiled_backward], 3);
  EXPECT_EQ(hosts[HostClass::linear_autocast], 0);
  EXPECT_GT(hosts[HostClass::accumulate_grad_add], 0);
}

ModelDescription small_llama() {
  ModelDescription model;
  model.family = ModelFamily::llama;
  model.layers = 2;
  model.heads = 4;
  model.key_value_heads = 2;
  model.hidden = 256;
  model.feed_forward = 512;
  model.vocabulary = 512;
  return model;
}
OpTrace compiled_llama(bool mask_given) {
  TrainingDescription training = small_training();
  training.mask_given = mask_given;
  return compile::compile_trace(training_run(small_llama(), training, AttentionChoice::cudnn), kSms);
}

TEST(CompileTrace, a_mask_that_is_given_is_added_to_all_scores_of_repeated_keys) {
  for (const bool given : {false, true}) {
    int calls = 0;
    for_each_call<Attention>(compiled_llama(given), [&](const Attention& op, const Call&) {
      ++calls;
      EXPECT_EQ(op.bias, given);
      EXPECT_EQ(op.causal, !given);
      EXPECT_EQ(op.kv_heads, given ? 4 : 2);
    });
    EXPECT_EQ(calls, 4);
  }
}

TEST(CompileTrace, sine_and_cosine_are_computed_by_each_kernel_that_needs_them) {
  int rotations = 0;
  for_each_call<FusedKernel>(compiled_llama(true), [&](const FusedKernel& op, const Call&) {
    rotations += op.name.find("cos") != std::string::npos ? 1 : 0;
  });
  EXPECT_GE(rotations, 4);  // forward and backward, of two blocks
}

// The models of Transformers return their scores: unused, their gradient arrives as zeros.
TEST(CompileTrace, scores_given_to_the_script_come_back_as_zeros) {
  const std::int64_t scores = std::int64_t{4} * 128 * 512;
  const auto fills = [&](const OpTrace& trace) {
    int found = 0;
    for_each_call<Pointwise>(trace, [&](const Pointwise& op, const Call& call) {
      found += op.function == PointwiseFunction::fill && op.elements() == scores && call.phase == Phase::backward;
    });
    return found;
  };
  EXPECT_EQ(fills(compiled_llama(true)), 1);
  EXPECT_EQ(fills(both(small_gpt2(), small_training()).compiled), 0);
}

// A gradient of an activation is computed from the activation's own terms and more.
TEST(CompileTrace, gradients_of_activations_take_more_instructions_than_these) {
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
    ModelDescription model = small_gpt2();
    model.activation = activation;
    std::int64_t forward = 0, backward = 0;
    for_each_call<FusedKernel>(both(model, small_training()).compiled, [&](const FusedKernel& op, const Call&) {
      if (op.name.find("gelu_backward") != std::string::npos) backward = std::max(backward, op.arithmetic);
      else if (op.name.find("gelu") != std::string::npos) forward = std::max(forward, op.arithmetic);
    });
    EXPECT_GT(forward, 0);
    EXPECT_GT(backward, forward);
  }
}

// Random numbers that two kernels read, one of which waits for the other, stay outside of the one that waits: else both
// would wait for each other, and neither they nor what comes behind them were there.
TEST(CompileTrace, kernels_never_wait_for_each_other) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 2, heads: 4, hidden: 256, input: image, patch: 8, image_size: 80, class_token: "
      "false, "
      "head: image-classification, labels: 11, causal: false, positions: learned, tie_embeddings: false, dropout: 0.1, "
      "feed_forward_kind: plain, feed_forward: 440, experts: 4, experts_per_token: 2, dense_layers: 1}",
      "m.yaml");
  TrainingDescription training = small_training();
  training.sequence_length = 100;
  const Both traces = both(load_model(config::Value(tree)), training, AttentionChoice::efficient);
  EXPECT_EQ(testing_support::first_inconsistency(traces.compiled), "");
  EXPECT_EQ(count<Attention>(traces.compiled), count<Attention>(traces.eager));
}

// Norms that are one kernel in PyTorch (F.rms_norm) are taken apart as others are.
TEST(CompileTrace, fused_norms_are_taken_apart_too) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    ModelDescription model = small_llama();
    model.plain = model.fused_norms = true;
    const Both traces = both(model, small_training(precision));
    EXPECT_GT(count<Norm>(traces.eager), 0);
    EXPECT_EQ(count<Norm>(traces.compiled), 0);
    EXPECT_EQ(count<Matmul>(traces.compiled), count<Matmul>(traces.eager));
    bool found = false;
    for_each_call<FusedKernel>(traces.compiled, [&](const FusedKernel& op, const Call&) {
      found = found || op.name.find("_fused_rms_norm_backward") != std::string::npos;
    });
    EXPECT_TRUE(found);
  }
}

}  // namespace
}  // namespace ridgeline
