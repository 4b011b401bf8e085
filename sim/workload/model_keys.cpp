#include "sim/workload/model_keys.h"

#include <array>
#include <utility>

namespace ridgeline {
namespace {

using config::Value;
template <typename Enum>
using Choice = std::pair<std::string_view, Enum>;

constexpr std::array<Choice<ModelFamily>, 5> kFamilies{{{"gpt2", ModelFamily::gpt2},
                                                        {"bert", ModelFamily::bert},
                                                        {"llama", ModelFamily::llama},
                                                        {"composed", ModelFamily::composed},
                                                        {"program", ModelFamily::program}}};
constexpr std::array<Choice<Activation>, 5> kActivations{{{"gelu", Activation::gelu},
                                                          {"gelu-tanh", Activation::gelu_tanh},
                                                          {"relu", Activation::relu},
                                                          {"swiglu", Activation::swiglu},
                                                          {"gelu-spelled-out", Activation::gelu_spelled_out}}};
constexpr std::array<Choice<bool>, 2> kCodes{{{"transformers", false}, {"plain", true}}};
constexpr std::array<Choice<bool>, 2> kRotations{{{"cosines", false}, {"complex", true}}};
constexpr std::array<Choice<bool>, 2> kNorms{{{"operations", false}, {"fused", true}}};
constexpr std::array<Choice<bool>, 2> kSparsities{{{"none", false}, {"2:4", true}}};
constexpr std::array<Choice<ModelHead>, 5> kHeads{{{"language-model", ModelHead::language_model},
                                                   {"sequence-classification", ModelHead::sequence_classification},
                                                   {"question-answering", ModelHead::question_answering},
                                                   {"masked-lm", ModelHead::masked_lm},
                                                   {"pretraining", ModelHead::pretraining}}};

template <typename Choices, typename Enum>
ModelValue named(const Choices& choices, Enum given) {
  for (const auto& [name, value] : choices)
    if (value == given) return std::string(name);
  return std::string("?");
}

constexpr config::IntegerRange kLayers{1, 10000}, kWidth{1, 1 << 24}, kRows{1, std::int64_t{1} << 32};
constexpr config::Range kDropout{0.0, 0.999};

/// What a family assumes where the description is silent.
ModelDescription silent(ModelFamily family) {
  ModelDescription d;
  d.family = family;
  switch (family) {
    case ModelFamily::gpt2:
      d.max_positions = 1024;
      d.activation = Activation::gelu_tanh;
      break;
    case ModelFamily::bert:
      d.max_positions = 512;
      d.dropout = 0.1;
      d.head = ModelHead::sequence_classification;
      break;
    case ModelFamily::llama:
      d.max_positions = 2048;
      d.bias = d.tie_embeddings = false;
      d.activation = Activation::swiglu;
      break;
    case ModelFamily::composed:
    case ModelFamily::program: break;  // have keys of their own
  }
  return d;
}

constexpr std::optional<ModelFamily> kAny;
constexpr ModelKey kKeys[] = {
    {"family", "gpt2, bert, llama, composed or program", kAny,
     [](const Value& v, ModelDescription& d) { d.family = v.choice<ModelFamily>(kFamilies); },
     [](const ModelDescription& d) { return named(kFamilies, d.family); }},
    {"code", "transformers, or plain: PyTorch's own modules put together, as family gpt2 is unless it says so", kAny,
     [](const Value& v, ModelDescription& d) {
       d.plain.reset();
       if (v.exists()) d.plain = v.choice<bool>(kCodes);
     },
     [](const ModelDescription& d) { return named(kCodes, d.written_plain()); }},
    {"rotary", "complex, with code: plain: positions turn complex numbers, keys and values are copied for each head",
     ModelFamily::llama,
     [](const Value& v, ModelDescription& d) { d.complex_rotary = v.choice<bool>(kRotations, false); },
     [](const ModelDescription& d) { return named(kRotations, d.complex_rotary); }},
    {"norms", "fused, with code: plain: a norm is one kernel forward and one backward (torchtitan's fused_rmsnorm)",
     ModelFamily::llama, [](const Value& v, ModelDescription& d) { d.fused_norms = v.choice<bool>(kNorms, false); },
     [](const ModelDescription& d) { return named(kNorms, d.fused_norms); }},
    {"layers", "transformer blocks", kAny, [](const Value& v, ModelDescription& d) { d.layers = v.integer(kLayers); },
     [](const ModelDescription& d) { return ModelValue(d.layers); }},
    {"heads", "of attention", kAny,  //
     [](const Value& v, ModelDescription& d) { d.heads = v.integer(kWidth); },
     [](const ModelDescription& d) { return ModelValue(d.heads); }},
    {"hidden", "width, a multiple of heads", kAny,
     [](const Value& v, ModelDescription& d) { d.hidden = v.integer(kWidth); },
     [](const ModelDescription& d) { return ModelValue(d.hidden); }},
    {"head_dim", "width of one head", ModelFamily::llama,
     [](const Value& v, ModelDescription& d) {
       d.head_width = v.integer({0, 1 << 16}, 0);
     },
     [](const ModelDescription& d) { return ModelValue(d.head_dim()); }},
    {"key_value_heads", "heads share them; of family gpt2 under Megatron-LM only", ModelFamily::llama,
     [](const Value& v, ModelDescription& d) { d.key_value_heads = v.integer(kWidth, d.heads); },
     [](const ModelDescription& d) { return ModelValue(d.key_value_count()); }},
    {"feed_forward", "inner width", kAny,
     [](const Value& v, ModelDescription& d) { d.feed_forward = v.integer(kWidth, 4 * d.hidden); },
     [](const ModelDescription& d) { return ModelValue(d.feed_forward_width()); }},
    {"vocabulary", "rows of the token table", kAny,
     [](const Value& v, ModelDescription& d) { d.vocabulary = v.integer(kRows); },
     [](const ModelDescription& d) { return ModelValue(d.vocabulary); }},
    {"max_positions", "longest sequence", kAny,
     [](const Value& v, ModelDescription& d) { d.max_positions = v.integer(kRows, silent(d.family).max_positions); },
     [](const ModelDescription& d) { return ModelValue(d.max_positions); }},
    {"window", "tokens one may look back to; longer sequences are refused", ModelFamily::llama,
     [](const Value& v, ModelDescription& d) {
       d.window = v.integer({0, std::int64_t{1} << 32}, 0);
     },
     [](const ModelDescription& d) { return ModelValue(d.window); }},
    {"type_vocabulary", "rows of the segment table", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) { d.type_vocabulary = v.integer(kRows, 2); },
     [](const ModelDescription& d) { return ModelValue(d.type_vocabulary); }},
    {"dropout", "of embeddings and of the residual branches", kAny,
     [](const Value& v, ModelDescription& d) { d.dropout = v.number(kDropout, silent(d.family).dropout); },
     [](const ModelDescription& d) { return ModelValue(d.dropout); }},
    {"attention_dropout", "of attention probabilities", kAny,
     [](const Value& v, ModelDescription& d) { d.attention_dropout = v.number(kDropout, d.dropout); },
     [](const ModelDescription& d) { return ModelValue(d.attention_dropout); }},
    {"bias", "of linear layers and norms", kAny,
     [](const Value& v, ModelDescription& d) { d.bias = v.boolean(silent(d.family).bias); },
     [](const ModelDescription& d) { return ModelValue(d.bias); }},
    {"attention_bias", "of the projections of attention", ModelFamily::llama,
     [](const Value& v, ModelDescription& d) {
       d.attention_bias.reset();
       if (v.exists()) d.attention_bias = v.boolean();
     },
     [](const ModelDescription& d) { return ModelValue(d.attention_bias.value_or(d.bias)); }},
    {"feed_forward_bias", "of the projections of the feed-forward part", ModelFamily::llama,
     [](const Value& v, ModelDescription& d) {
       d.feed_forward_bias.reset();
       if (v.exists()) d.feed_forward_bias = v.boolean();
     },
     [](const ModelDescription& d) { return ModelValue(d.feed_forward_bias.value_or(d.bias)); }},
    {"activation", "gelu, gelu-tanh, gelu-spelled-out, relu; of a llama swiglu", kAny,
     [](const Value& v, ModelDescription& d) {
       d.activation = v.choice<Activation>(kActivations, silent(d.family).activation);
     },
     [](const ModelDescription& d) { return named(kActivations, d.activation); }},
    {"tie_embeddings", "the output projection shares the token table", kAny,
     [](const Value& v, ModelDescription& d) { d.tie_embeddings = v.boolean(silent(d.family).tie_embeddings); },
     [](const ModelDescription& d) { return ModelValue(d.tie_embeddings); }},
    {"weight_sparsity", "none or 2:4 (a what-if)", kAny,
     [](const Value& v, ModelDescription& d) { d.sparse_weights = v.choice<bool>(kSparsities, false); },
     [](const ModelDescription& d) { return named(kSparsities, d.sparse_weights); }},
    {"head", "sequence-classification, question-answering, masked-lm or pretraining", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) { d.head = v.choice<ModelHead>(kHeads, silent(d.family).head); },
     [](const ModelDescription& d) { return named(kHeads, d.head); }},
    {"labels", "of sequence-classification", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) { d.labels = v.integer(kWidth, 2); },
     [](const ModelDescription& d) { return ModelValue(d.labels); }},
    {"adds_mask", "eager attention always adds one", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) {
       d.adds_mask.reset();
       if (v.exists()) d.adds_mask = v.boolean();
     },
     [](const ModelDescription& d) { return d.adds_mask ? ModelValue(*d.adds_mask) : std::string("as the software"); }},
    {"sequence_first", "tensors are [tokens, sequences, hidden]", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) { d.sequence_first = v.boolean(false); },
     [](const ModelDescription& d) { return ModelValue(d.sequence_first); }},
    {"activation_adds_bias", "in an operation of its own", ModelFamily::bert,
     [](const Value& v, ModelDescription& d) { d.activation_adds_bias = v.boolean(false); },
     [](const ModelDescription& d) { return ModelValue(d.activation_adds_bias); }},
};

}  // namespace

std::span<const ModelKey> model_keys() { return kKeys; }

std::optional<ModelValue> assumed(const ModelKey& key, const ModelDescription& model) {
  ModelDescription without = model;
  try {
    key.read(Value::absent(std::string(key.name), {}), without);
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
  return key.value(without);
}

}  // namespace ridgeline
