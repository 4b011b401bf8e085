// Attention and routers that models write in ways of their own: what each runs more than the usual code does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "sim/config/parse_yaml.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

ModelDescription variant(const std::string& keys) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 2, heads: 4, hidden: 64, feed_forward: 96, vocabulary: 100" + keys + "}", "m.yaml");
  return load_model(config::Value(tree));
}
std::string refusal_of_variant(const std::string& keys) {
  try {
    variant(keys);
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "no mistake was found";
}
OpTrace run_of_variant(const std::string& keys, Precision precision = Precision::bf16) {
  TrainingDescription training;
  training.precision = precision;
  training.micro_batch = 2;
  training.sequence_length = 32;
  return testing_support::checked(training_run(variant(keys), training, AttentionChoice::flash, 1));
}
template <typename OpType, typename Predicate>
std::int64_t calls(const OpTrace& trace, Predicate holds) {
  return std::count_if(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
    const auto* op = std::get_if<OpType>(&trace.ops[call.op]);
    return op != nullptr && holds(*op);
  });
}

// Scores of 2 x 4 heads; the maximum is one kernel forward and five backward in each of two layers.
TEST(AttentionVariants, AFlatBatchHoldsMaskedScoresAboveTheLowestNumber) {
  const std::string code = ", attention_code: written-out";
  for (const Precision precision : {Precision::bf16, Precision::amp_bf16, Precision::amp_fp16}) {
    const auto of_scores = [&](const std::string& keys) {
      return calls<Pointwise>(run_of_variant(keys, precision), [](const Pointwise& op) {
        return op.elements() == 2 * 4 * 32 * 32 &&
               (op.function == PointwiseFunction::other || op.function == PointwiseFunction::masked_fill ||
                op.function == PointwiseFunction::equal || op.function == PointwiseFunction::divide);
      });
    };
    EXPECT_EQ(of_scores(code + "-flat, score_scale: queries") - of_scores(code + ", score_scale: queries"), 2 * 6);
  }
  EXPECT_THAT(refusal_of_variant(code + "-flat, key_value_heads: 2"), HasSubstr("written-out-flat"));
}

// softmax(scores, dtype=torch.float32): of fp16 one kernel reads 16 bits and writes 32, and one does the reverse
// backward; of bf16 a copy in fp32 is made first and its gradient cast back. Then the probabilities are cast, and their
// gradient.
TEST(AttentionVariants, ScoresInFp16GoIntoSoftmaxAsTheyAre) {
  const auto count = [](Precision precision, DType scores) {
    const OpTrace trace = run_of_variant(", attention_code: written-out, causal: false", precision);
    const auto casts = calls<Pointwise>(trace, [](const Pointwise& op) {
      return op.function == PointwiseFunction::cast && op.elements() == 2 * 4 * 32 * 32;
    });
    const auto mixed = calls<Softmax>(trace, [&](const Softmax& op) {
      return !op.log && op.cols == 32 && (op.backward ? op.output : op.input) == scores &&
             (op.backward ? op.input : op.output) == DType::fp32;
    });
    return std::pair{casts, mixed};
  };
  const std::int64_t layers = 2;
  EXPECT_EQ(count(Precision::amp_fp16, DType::fp16), std::pair(2 * layers, 2 * layers));
  EXPECT_EQ(count(Precision::amp_bf16, DType::bf16), std::pair(4 * layers, std::int64_t{0}));
}

// A part of a head that is not turned is a slice: its gradient fills zeros and copies, for queries and keys.
TEST(AttentionVariants, PartsOfHeadsAreSlices) {
  const auto filled = [](const std::string& share) {
    return calls<Pointwise>(run_of_variant(", head_dim: 32, positions: " + share), [](const Pointwise& op) {
      return op.function == PointwiseFunction::fill && op.elements() == 2 * 4 * 32 * 32;
    });
  };
  const std::int64_t others = filled("none");
  EXPECT_EQ(filled("rotary, rotary_share: 0.5") - others, 2 * 2 * 2);
  EXPECT_EQ(filled("rotary") - others, 2 * 2 * 2);  // the two halves of whole heads
}

TEST(AttentionVariants, HeadsThatAreTurnedInPlacePickAnglesInEachLayer) {
  const std::string turned = ", positions: rotary, rotary_style: pairs, attention_code: written-out-fp32";
  const auto picks = [&](const std::string& keys) {
    return calls<Pointwise>(run_of_variant(turned + keys), [](const Pointwise& op) {
      return op.function == PointwiseFunction::index && op.elements() == 32 * 16;
    });
  };
  EXPECT_EQ(picks(""), 0);
  EXPECT_EQ(picks(", turned_in_place: true"), 2);
  EXPECT_EQ(picks(", turned_in_place: true, projection: fused-groups"), 2);
  EXPECT_EQ(parameter_count(variant(turned + ", turned_in_place: true, projection: fused-groups")),
            parameter_count(variant(turned)));
  EXPECT_THAT(refusal_of_variant(turned + ", projection: fused-groups"), HasSubstr("fused-groups"));
  EXPECT_THAT(refusal_of_variant(", positions: rotary, turned_in_place: true"), HasSubstr("pairs"));
}

TEST(AttentionVariants, ASparseMixerDrawsOneExpertAfterAnother) {
  const std::string experts = ", positions: rotary, experts: 4, feed_forward_kind: gated, experts_per_token: ";
  const auto largest = [&](const std::string& keys) {
    return calls<Reduction>(run_of_variant(experts + keys), [](const Reduction& op) {
      return op.kind == ReductionKind::sum_cols && op.rows == 64 && op.cols == 4;
    });
  };
  EXPECT_EQ(largest("2"), 0);
  EXPECT_EQ(largest("2, router: sparse-mixer"), 2 * 6);
  EXPECT_EQ(parameter_count(variant(experts + "2, router: sparse-mixer")), parameter_count(variant(experts + "2")));
  EXPECT_THAT(refusal_of_variant(experts + "1, router: sparse-mixer"), HasSubstr("two experts"));
}

// A copy of the bias for each of two sequences; each layer adds it to its scores and makes no tensor for the sum.
TEST(AttentionVariants, DistancesThatTheHostCountsAreAddedInPlace) {
  const std::string keys = ", causal: false, head: masked-lm, positions: relative, attention_code: written-out";
  const auto added = [&](const std::string& more, PointwiseFunction function) {
    return calls<Pointwise>(run_of_variant(keys + more, Precision::amp_bf16), [&](const Pointwise& op) {
      return op.function == function && op.elements() == 2 * 4 * 32 * 32 && op.input_count == 2;
    });
  };
  const std::string in_place = ", relative_in_place: true, position_table: true, max_positions: 32";
  EXPECT_EQ(added("", PointwiseFunction::add), 2);
  EXPECT_EQ(added(in_place, PointwiseFunction::add), 0);
  // Two layers' scores, and the second gradient of the bias.
  EXPECT_EQ(added(in_place, PointwiseFunction::add_in_place), 3);
  EXPECT_THAT(refusal_of_variant(", relative_in_place: true"), HasSubstr("positions: relative"));
}

TEST(AttentionVariants, ProteinsRowsAreMadeLargerAndAHeadIsNeverRead) {
  const std::string protein = ", causal: false, head: masked-lm, positions: rotary";
  const auto rows = [&](const std::string& keys) {
    return calls<Pointwise>(run_of_variant(protein + keys), [](const Pointwise& op) {
      return op.function == PointwiseFunction::divide && op.elements() == 2 * 32 * 64;
    });
  };
  EXPECT_EQ(rows(", token_dropout: true") - rows(""), 2);  // forward and backward
  EXPECT_EQ(parameter_count(variant(protein + ", contact_head: true")) - parameter_count(variant(protein)), 2 * 4 + 1);
}

TEST(AttentionVariants, DistancesOfPatchesAreTrainedInEachLayer) {
  const std::string image =
      ", input: image, image_size: 32, patch: 8, class_token: true, causal: false, head: image-classification, "
      "pooler: mean-norm";
  TrainingDescription training;
  training.micro_batch = 2;
  const auto run = [&](const std::string& keys) {
    const ModelDescription model = variant(image + keys);
    training.sequence_length = model.max_positions;
    const OpTrace trace = testing_support::checked(training_run(model, training, AttentionChoice::efficient, 1));
    EXPECT_EQ(trace.parameters, parameter_count(model));
    return trace;
  };
  const OpTrace with = run(", patch_distances: true"), without = run("");
  EXPECT_EQ(with.parameters - without.parameters, 2 * (7 * 7 + 3) * 4);
  const auto masked = [](const Attention& op) { return op.bias; };
  EXPECT_EQ(calls<Attention>(with, masked), 4);
  EXPECT_EQ(calls<Attention>(without, masked), 0);
  EXPECT_EQ(run(", positions: learned, extra_tokens: 4").parameters -
                run(", positions: learned, extra_tokens: 4, late_tokens: true").parameters,
            4 * 64);
}

TEST(AttentionVariants, RoutersOfSigmoidsAndInFp32) {
  const std::string experts = ", experts: 4, feed_forward_kind: gated, experts_per_token: 3";
  const auto products = [&](const std::string& keys) {
    return calls<Matmul>(run_of_variant(experts + keys),
                         [](const Matmul& op) { return op.type == DType::fp32 && op.n == 4; });
  };
  EXPECT_EQ(products(", router_fp32: true") - products(""), 2);
  const auto softmaxes = [&](const std::string& keys) {
    return calls<Softmax>(run_of_variant(experts + keys), [](const Softmax& op) { return op.cols == 4; });
  };
  EXPECT_EQ(softmaxes(""), 4);
  EXPECT_EQ(softmaxes(", router: sigmoid"), 0);
  EXPECT_EQ(parameter_count(variant(experts + ", router_correction: true")) - parameter_count(variant(experts)), 2 * 4);
  EXPECT_EQ(parameter_count(variant(experts)) - parameter_count(variant(experts + ", experts_end: 1")),
            (4 - 1) * 3 * 96 * 64 + 4 * 64 - (2 * 96 + 64));  // a dense part has biases, experts a router
  EXPECT_THAT(refusal_of_variant(experts + ", router: sparse-mixer"), HasSubstr("two experts"));
}

// Transformers draws torch.rand([]) on the host: nothing is launched for it, and nobody waits.
TEST(AttentionVariants, WhetherALayerRunsIsANumberOfTheHost) {
  const OpTrace asks = run_of_variant(", drops_layers: true"), runs = run_of_variant("");
  EXPECT_EQ(asks.calls.size(), runs.calls.size());
  EXPECT_GT(asks.records.size(), runs.records.size());  // the host's part
}

// Outside bf16, whose kernel reads it on the GPU, each grouped product begins with the host reading where each expert's
// rows begin: two a layer forward.
TEST(AttentionVariants, TheHostWaitsBeforeEveryGroupedProduct) {
  const auto waits = [](const OpTrace& trace) {
    return std::count_if(trace.records.begin() + trace.steps.back().begin,
                         trace.records.begin() + trace.steps.back().end,
                         [](const Record& record) { return record.kind == Record::Kind::wait_for_gpu; });
  };
  const std::string gated = ", feed_forward_kind: gated";
  const auto more = [&](Precision precision) {
    return waits(run_of_variant(gated + ", experts: 4, experts_per_token: 2", precision)) -
           waits(run_of_variant(gated, precision));
  };
  EXPECT_EQ(more(Precision::fp32), 2 * 2);
  EXPECT_EQ(more(Precision::bf16), 0);
}

// The memory-efficient kernel pads a head's statistics to whole warps of rows; flash attention does not.
TEST(AttentionVariants, StatisticsHaveARowAQueryOrWholeWarpsOfThem) {
  const auto statistics = [](AttentionChoice choice, AttentionBackend backend) {
    TrainingDescription training;
    training.precision = Precision::bf16;
    training.micro_batch = 2;
    training.sequence_length = 40;
    const OpTrace trace = training_run(variant(""), training, choice, 1);
    std::int64_t bytes = 0;
    for (const Call& call : trace.calls) {
      const auto* op = std::get_if<Attention>(&trace.ops[call.op]);
      if (op == nullptr || op->backward) continue;
      EXPECT_EQ(op->backend, backend);
      bytes = trace.operands[call.operands_begin + call.inputs + 1].bytes;
    }
    return bytes;
  };
  EXPECT_EQ(statistics(AttentionChoice::flash, AttentionBackend::flash), 2 * 4 * 40 * 4);
  EXPECT_EQ(statistics(AttentionChoice::efficient, AttentionBackend::efficient), 2 * 4 * 64 * 4);
}

// Queries and keys of both layers are turned as complex numbers, forward and back; keys and values are copied for
// each head that shares them.
TEST(AttentionVariants, ComplexNumbersTurnQueriesAndKeysInKernelsOfTheirOwn) {
  const auto trace_of = [](const std::string& keys) {
    const config::Node tree = config::parse_yaml(
        "{family: llama, code: plain, layers: 2, heads: 4, key_value_heads: 2, hidden: 64, feed_forward: 96, "
        "vocabulary: 100, max_positions: 64" +
            keys + "}",
        "m.yaml");
    TrainingDescription training;
    training.precision = Precision::bf16;
    training.micro_batch = 2;
    training.sequence_length = 32;
    return testing_support::checked(training_run(load_model(config::Value(tree)), training, AttentionChoice::flash, 1));
  };
  const auto turned = [](const OpTrace& trace, std::int64_t heads) {
    return calls<Pointwise>(trace, [&](const Pointwise& op) {
      return op.function == PointwiseFunction::complex_mul && op.elements() == 2 * 32 * heads * 16 / 2;
    });
  };
  const OpTrace complex = trace_of(", rotary: complex");
  EXPECT_EQ(turned(complex, 4), 2 * 2);
  EXPECT_EQ(turned(complex, 2), 2 * 2);
  EXPECT_EQ(turned(trace_of(""), 4), 0);
  EXPECT_EQ(calls<Attention>(complex, [](const Attention& op) { return op.kv_heads != 4; }), 0);
}

// Selective checkpointing of torchtitan without torch.compile: the second run of a block does not repeat attention, nor
// every second of its seven products, of which it stops before the last; norms in one kernel run twice.
TEST(AttentionVariants, OperationsThatAreKeptDoNotRunAgain) {
  const auto trace_of = [](ActivationCheckpointing checkpointing, bool early = true) {
    const config::Node tree = config::parse_yaml(
        "{family: llama, code: plain, norms: fused, layers: 2, heads: 4, hidden: 64, feed_forward: 96, vocabulary: "
        "100, max_positions: 64}",
        "m.yaml");
    TrainingDescription training;
    training.precision = Precision::bf16;
    training.micro_batch = 2;
    training.sequence_length = 32;
    training.activation_checkpointing = checkpointing;
    training.checkpoint_stops_early = early;
    return testing_support::checked(training_run(load_model(config::Value(tree)), training, AttentionChoice::flash, 1));
  };
  const OpTrace none = trace_of(ActivationCheckpointing::none), block = trace_of(ActivationCheckpointing::block),
                kept = trace_of(ActivationCheckpointing::operations);
  const auto products = [](const OpTrace& trace) { return calls<Matmul>(trace, [](const Matmul&) { return true; }); };
  const auto attentions = [](const OpTrace& trace) {
    return calls<Attention>(trace, [](const Attention& op) { return !op.backward; });
  };
  const auto norms = [](const OpTrace& trace) {
    return calls<Norm>(trace, [](const Norm& op) { return op.rms && !op.backward; });
  };
  EXPECT_EQ(products(block) - products(none), 2 * 6);
  EXPECT_EQ(products(kept) - products(none), 2 * 3);
  // The last product's result is read by nobody, but a block that does not stop early makes it.
  EXPECT_EQ(products(trace_of(ActivationCheckpointing::block, false)) - products(none), 2 * 7);
  EXPECT_EQ(attentions(block) - attentions(none), 2);
  EXPECT_EQ(attentions(kept), attentions(none));
  EXPECT_EQ(norms(none), 2 * 2 + 1);
  EXPECT_EQ(norms(block), norms(none) + 2 * 2);
  EXPECT_EQ(norms(kept), norms(block));
}

// A prompt of two tokens has a mask, a single new token sees all that is before it.
TEST(AttentionVariants, OnlyASingleTokenNeedsNoMask) {
  ModelDescription model;
  model.family = ModelFamily::llama;
  model.layers = 1;
  model.heads = 4;
  model.key_value_heads = 2;
  model.hidden = 64;
  model.feed_forward = 128;
  model.vocabulary = 96;
  model.max_positions = 32;
  model.bias = false;
  model.activation = Activation::swiglu;
  TrainingDescription t;
  t.micro_batch = 1;
  t.precision = Precision::bf16;
  for (const std::int64_t prompt : {1, 2, 3}) {
    t.sequence_length = prompt;
    t.inference = InferenceDescription{};
    t.inference->new_tokens = 2;
    std::set<std::pair<std::int64_t, bool>> seen;
    for (const Op& op : training_run(model, t, AttentionChoice::flash, 1).ops)
      if (const auto* attention = std::get_if<Attention>(&op)) seen.emplace(attention->seq_q, attention->causal);
    std::set<std::pair<std::int64_t, bool>> expected{{1, false}};
    if (prompt > 1) expected.emplace(prompt, true);
    EXPECT_EQ(seen, expected) << prompt;
  }
}

}  // namespace
}  // namespace ridgeline
