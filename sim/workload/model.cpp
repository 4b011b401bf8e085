#include "sim/workload/model.h"

#include <fmt/format.h>

#include "sim/units/user_error.h"
#include "sim/workload/families/count.h"

namespace ridgeline {
namespace {

/// Weights of the matrix products of one block, biases and norms apart.
std::int64_t block_weights(const ModelDescription& m) {
  const std::int64_t d = m.hidden, ff = m.feed_forward_width(), kv = m.key_value_count() * m.head_dim();
  if (m.family == ModelFamily::llama) return 2 * d * m.attention_width() + 2 * d * kv + 3 * d * ff;
  return 4 * d * d + 2 * d * ff;
}

std::int64_t gpt2_parameters(const ModelDescription& m) {
  const std::int64_t d = m.hidden, ff = m.feed_forward_width(), bias = m.bias ? 1 : 0;
  const std::int64_t norm = d + bias * d;
  const std::int64_t block = block_weights(m) + bias * (3 * d + d + ff + d) + 2 * norm;
  const std::int64_t head = m.tie_embeddings ? 0 : m.vocabulary * d;
  return m.vocabulary * d + m.max_positions * d + m.layers * block + norm + head;
}

std::int64_t llama_parameters(const ModelDescription& m) {
  const std::int64_t d = m.hidden, kv = m.key_value_count() * m.head_dim();
  const std::int64_t biases = (m.attention_bias.value_or(m.bias) ? m.attention_width() + 2 * kv + d : 0) +
                              (m.feed_forward_bias.value_or(m.bias) ? 2 * m.feed_forward_width() + d : 0);
  const std::int64_t head = m.tie_embeddings ? 0 : m.vocabulary * d;
  return m.vocabulary * d + m.layers * (block_weights(m) + biases + 2 * d) + d + head;
}

bool has_pooler(ModelHead head) { return head == ModelHead::sequence_classification || head == ModelHead::pretraining; }

std::int64_t bert_head_parameters(const ModelDescription& m) {
  const std::int64_t d = m.hidden;
  const std::int64_t decoder = m.tie_embeddings ? 0 : m.vocabulary * d;
  const std::int64_t prediction =
      d * d + d + 2 * d + decoder + m.vocabulary;  // transform, its norm, decoder and its bias
  switch (m.head) {
    case ModelHead::sequence_classification: return d * m.labels + m.labels;
    case ModelHead::question_answering: return d * 2 + 2;
    case ModelHead::masked_lm: return prediction;
    case ModelHead::pretraining: return prediction + d * 2 + 2;
    case ModelHead::language_model: return 0;
  }
  return 0;
}

std::int64_t bert_parameters(const ModelDescription& m) {
  const std::int64_t d = m.hidden, ff = m.feed_forward_width();
  const std::int64_t embeddings = (m.vocabulary + m.max_positions + m.type_vocabulary) * d + 2 * d;
  const std::int64_t block = block_weights(m) + 4 * d + ff + d + 4 * d;
  return embeddings + m.layers * block + (has_pooler(m.head) ? d * d + d : 0) + bert_head_parameters(m);
}

}  // namespace

std::int64_t parameter_count(const ModelDescription& m) {
  switch (m.family) {
    case ModelFamily::gpt2: return gpt2_parameters(m);
    case ModelFamily::bert: return bert_parameters(m);
    case ModelFamily::llama: return llama_parameters(m);
    case ModelFamily::composed:
    case ModelFamily::program: return families::count_parameters(m);
  }
  return 0;
}

double model_flops(const ModelDescription& m, std::int64_t sequences, std::int64_t length) {
  if (m.composition.given() || m.program.given()) return families::count_flops(m, sequences, length);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(length);
  const double d = static_cast<double>(m.hidden);
  double forward = 2.0 * tokens * static_cast<double>(m.layers) * static_cast<double>(block_weights(m));
  forward += 4.0 * tokens * static_cast<double>(length) * static_cast<double>(m.attention_width()) *
             static_cast<double>(m.layers);
  const double vocabulary = 2.0 * tokens * d * static_cast<double>(m.vocabulary);
  if (m.family != ModelFamily::bert) forward += vocabulary;
  else if (m.head == ModelHead::masked_lm || m.head == ModelHead::pretraining)
    forward += vocabulary + 2.0 * tokens * d * d;
  return 3.0 * forward;
}

void check_model(const ModelDescription& m) {
  const auto refuse = [](const std::string& why) { throw UserError(why); };
  if (m.composition.given() || m.program.given()) return;  // whoever reads it looks at each key where it stands
  if (m.layers < 1 || m.heads < 1 || m.hidden < 1 || m.vocabulary < 1)
    refuse("a model needs layers, heads, hidden and vocabulary of at least 1");
  if (m.head_width == 0 && m.hidden % m.heads != 0)
    refuse(fmt::format("hidden {} is not a multiple of {} heads", m.hidden, m.heads));
  if (m.heads % m.key_value_count() != 0)
    refuse(fmt::format("{} heads cannot share {} key-value heads evenly", m.heads, m.key_value_count()));
  if (m.fused_norms && !m.written_plain()) refuse("norms: fused goes with code: plain");
  if (m.complex_rotary && !m.written_plain()) refuse("rotary: complex goes with code: plain");
  if (m.family == ModelFamily::llama && m.head_dim() % 2 != 0)
    refuse(fmt::format(
        "hidden {} over {} heads is a head dimension of {}: rotary positions turn pairs, so it must be even", m.hidden,
        m.heads, m.head_dim()));
  if (m.attention_width() > (std::int64_t{1} << 24))
    refuse(fmt::format("{} heads of {} are wider than any network", m.heads, m.head_dim()));
  const double weights = static_cast<double>(m.layers) * static_cast<double>(m.hidden) *
                             (4.0 * static_cast<double>(m.hidden) + 3.0 * static_cast<double>(m.feed_forward_width())) +
                         static_cast<double>(m.vocabulary) * static_cast<double>(m.hidden);
  if (weights > 1e14) refuse(fmt::format("{:.2g} parameters are more than any GPU could ever hold", weights));
}

void check_window(const ModelDescription& model, std::int64_t length) {
  if (model.window > 0 && length > model.window)
    throw UserError(
        fmt::format("sliding_window (model.window): a sequence of {} is longer than the window of {} tokens, and "
                    "attention of a window is not built; expected at most {}",
                    length, model.window, model.window));
}

}  // namespace ridgeline
