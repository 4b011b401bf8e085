#include "sim/workload/composition.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/composition_keys.h"
#include "sim/workload/networks/program_model.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

/// Stages of an image's windows.
void check_stages(const Mapping& m, Stack& s) {
  if (s.stage_layers.empty()) {
    if (s.window_side > 0 && !s.images_apart) m["window_side"].fail("is of stages (stage_layers) or of images_apart");
    return;
  }
  if (s.input != InputKind::image) m["stage_layers"].fail("stages are of images: input: image");
  if (s.experts > 0 || s.sinks || s.key_value_rank > 0 || s.projection != ProjectionKind::separate || s.causal ||
      s.positions != PositionKind::none || s.residual != ResidualKind::serial || s.layer_scale || s.class_token)
    m["stage_layers"].fail(
        "stages have plain attention in windows, one feed-forward part and no positions, class token, experts or "
        "causal "
        "mask");
  if (s.stage_heads.size() != s.stage_layers.size())
    m.value().fail(fmt::format("stage_heads: {} for {} stages", s.stage_heads.size(), s.stage_layers.size()));
  if (s.window_side < 1 || s.patch < 1) m.value().fail("stages need window_side and patch");
  s.layers = 0;
  s.heads = s.stage_heads.front();
  std::int64_t side = s.image_size / s.patch, width = s.hidden;
  for (std::size_t i = 0; i < s.stage_layers.size(); ++i, side /= 2, width *= 2) {
    s.layers += s.stage_layers[i];
    const std::int64_t window = std::min(s.window_side, side);
    if (window < 1 || side % window != 0 || (i + 1 < s.stage_layers.size() && side % 2 != 0))
      m["window_side"].fail(
          fmt::format("a stage of {0} x {0} patches has no whole windows of {1} x {1}; padded ones "
                      "are not built",
                      side, window));
    if (width % s.stage_heads[i] != 0) m["stage_heads"].fail("does not divide the width of a stage");
  }
}

/// Attention, embeddings and routers that models write in ways of their own.
void check_variants(const Mapping& m, const Stack& s) {
  if (s.relative_in_place &&
      (s.positions != PositionKind::relative || s.attention_code != AttentionCode::written_out || s.causal))
    m["relative_in_place"].fail("goes with positions: relative, attention_code: written-out and causal: false");
  if (s.relative_each_layer && (s.positions != PositionKind::relative || s.relative_in_place))
    m["relative_each_layer"].fail("goes with positions: relative, and not with relative_in_place");
  if (s.box_rows > 0 && s.input != InputKind::tokens) m["box_rows"].fail("goes with input: tokens");
  if (s.parts_selected && (s.projection != ProjectionKind::fused_by_head || s.key_value_count() != s.heads))
    m["parts_selected"].fail("goes with projection: fused-by-head and keys for each head");
  if (s.queries_by_position && s.positions != PositionKind::rotary)
    m["queries_by_position"].fail("goes with positions: rotary");
  if (s.patch_distances &&
      (s.input != InputKind::image || !s.class_token || s.extra_tokens > 0 || !s.stage_layers.empty() ||
       s.projection != ProjectionKind::separate || s.attention_code != AttentionCode::fused))
    m["patch_distances"].fail(
        "are of images with a class token, without stages: projection: separate, attention_code: fused");
  if (s.late_tokens && s.extra_tokens < 1) m["late_tokens"].fail("are further tokens: extra_tokens");
  if (s.token_dropout && s.input != InputKind::tokens) m["token_dropout"].fail("goes with input: tokens");
  if (s.router_correction && s.router == RouterKind::sparse_mixer)
    m["router_correction"].fail("does not go with router: sparse-mixer");
  if (s.turned_in_place && (s.positions != PositionKind::rotary || s.rotary_style != RotaryStyle::pairs ||
                            s.key_value_rank > 0 || s.query_key_norm != QueryKeyNorm::none))
    m["turned_in_place"].fail("goes with positions: rotary and rotary_style: pairs, without norms of queries and keys");
  if (s.turned_in_place && s.projection != ProjectionKind::separate && s.projection != ProjectionKind::fused_groups)
    m["turned_in_place"].fail("goes with projection: separate or fused-groups");
  if (s.projection == ProjectionKind::fused_groups &&
      (!s.turned_in_place || s.heads % 4 != 0 || s.key_value_count() != s.heads))
    m["projection"].fail(
        "fused-groups are four, each with as many heads, which have keys of their own and are turned_in_place");
  if (s.attention_code == AttentionCode::written_out_flat &&
      (s.key_value_count() != s.heads || s.sinks || s.score_cap > 0.0 || s.positions == PositionKind::alibi ||
       s.mask_filled))
    m["attention_code"].fail("written-out-flat has keys for each head, and no sinks, caps, slopes or filled masks");
  if (s.rotary_style == RotaryStyle::complex && (!s.plain || s.key_value_rank > 0 || s.turned() != s.head_width()))
    m["rotary_style"].fail("complex goes with code: plain and heads that are turned as a whole");
  if (s.plain && s.mask_filled && s.max_positions < 1)
    m["mask_filled"].fail("with code: plain each layer has a mask of max_positions, which is missing");
  if (s.sequence_first && (s.causal || s.input != InputKind::tokens || s.positions != PositionKind::learned ||
                           s.projection != ProjectionKind::separate || s.key_value_count() != s.heads))
    m["sequence_first"].fail("goes with encoders that read tokens and learned positions, projection: separate");
  if (s.output_modules && (s.residual != ResidualKind::serial || !s.stage_layers.empty()))
    m["output_modules"].fail("goes with residual: serial, without stages");
  if (s.head == HeadKind::pretraining && (s.pooler != PoolerKind::pretrained_tanh || s.causal))
    m["head"].fail("pretraining goes with pooler: pretrained-tanh and causal: false");
  if (s.router == RouterKind::sparse_mixer && (s.experts_per_token != 2 || s.router_bias || s.router_fp32))
    m["router"].fail("sparse-mixer chooses two experts a token, without a bias: experts_per_token: 2");
}

/// What follows from other keys is filled in, what cannot be built is refused where it stands.
void check_stack(const Mapping& m, Stack& s) {
  check_stages(m, s);
  check_variants(m, s);
  if (s.positions == PositionKind::disentangled && (s.position_rows < 2 || s.position_terms.empty()))
    m["positions"].fail("disentangled positions need position_rows and position_terms");
  if (s.positions == PositionKind::disentangled && (s.causal || s.key_value_count() != s.heads))
    m["positions"].fail("disentangled positions are of encoders whose heads have keys of their own");
  if (s.positions == PositionKind::disentangled && s.position_table && s.max_positions < 1)
    m.value().fail("max_positions is missing, which a table of positions needs");
  if ((s.query_key_norm == QueryKeyNorm::width || s.query_key_norm == QueryKeyNorm::each_head) &&
      s.projection != ProjectionKind::separate)
    m["query_key_norm"].fail("over the width, or with weights of each head, goes with projection: separate");
  if (s.image_layers > 2) m["image_layers"].fail("expected 1 or 2");
  if (s.query_key_norm != QueryKeyNorm::none && (s.key_value_rank > 0 || s.positions == PositionKind::disentangled))
    m["query_key_norm"].fail("does not go with latent attention or disentangled positions");
  if (s.position_table && s.positions != PositionKind::disentangled && s.positions != PositionKind::relative &&
      !(s.positions == PositionKind::rotary && s.input == InputKind::image))
    m["position_table"].fail(
        "stands beside disentangled or relative positions, or an image's rotary ones; others: positions: learned");
  if (s.first_convolution > 0 && (s.positions != PositionKind::disentangled || s.first_convolution % 2 == 0))
    m["first_convolution"].fail("goes with disentangled positions, and is an odd number");
  if (s.position_table && s.positions == PositionKind::relative && s.max_positions < 1)
    m.value().fail("max_positions is missing, which a table of positions needs");
  if (s.residual != ResidualKind::serial && (s.layer_scale || s.residual_scale || s.drop_path > 0.0))
    m["residual"].fail("layer_scale, residual_scale and drop_path go with residual: serial");
  if (!s.first_norm && s.norm_place != NormPlace::pre && s.norm_place != NormPlace::both)
    m["first_norm"].fail("a first layer without a norm goes with norm_place: pre or both");
  if (s.extra_tokens > 0 && !s.class_token) m["extra_tokens"].fail("stand behind a class token: class_token: true");
  if (s.rotary_table && s.max_positions < 1) m.value().fail("max_positions is missing, which a table of angles needs");
  const auto need = [&](const char* key, std::int64_t value) {
    if (value < 1)
      m[key].exists() ? m[key].fail("must be at least 1") : m.value().fail(fmt::format("{} is missing", key));
  };
  if (s.input == InputKind::tokens) need("vocabulary", s.vocabulary);
  if (s.input == InputKind::image) {
    need("image_size", s.image_size);
    need("patch", s.patch);
    s.max_positions = (s.image_size / s.patch) * (s.image_size / s.patch) + (s.class_token ? 1 : 0) + s.extra_tokens;
  }
  if (s.input == InputKind::audio) need("audio_bins", s.audio_bins);
  if (s.head_dim == 0 && s.hidden % s.heads != 0)
    m["heads"].fail(fmt::format("hidden {} is not a multiple of {} heads", s.hidden, s.heads));
  if (s.heads % s.key_value_count() != 0)
    m["key_value_heads"].fail(
        fmt::format("{} heads cannot share {} key-value heads evenly", s.heads, s.key_value_count()));
  if (s.positions == PositionKind::rotary && (s.turned() < 2 || s.turned() % 2 != 0))
    m["positions"].fail(fmt::format("rotary positions turn pairs, and a head has {} number{} to turn", s.turned(),
                                    s.turned() == 1 ? "" : "s"));
  if (s.positions == PositionKind::rotary && s.key_value_rank == 0 && s.turned() > s.head_width())
    m[m.has("rotary_width") ? "rotary_width" : "rotary_share"].fail(
        fmt::format("{} numbers to turn of a head of {}", s.turned(), s.head_width()));
  if ((s.positions == PositionKind::learned || s.positions == PositionKind::sinusoidal) && s.max_positions < 1)
    m.value().fail("max_positions is missing, which a table of positions needs");
  if (s.experts > 0 && s.experts_per_token > s.experts)
    m["experts_per_token"].fail(fmt::format("{} of {} experts", s.experts_per_token, s.experts));
  if (s.residual != ResidualKind::serial && s.norm_place != NormPlace::pre)
    m["norm_place"].fail("attention and feed-forward side by side (residual) read a norm's result: expected pre");
  if (s.residual != ResidualKind::serial && s.cross_attention) m["cross_attention"].fail("goes with residual: serial");
  if (s.cross_attention && s.projection != ProjectionKind::separate)
    m["projection"].fail("queries of cross_attention come from one tensor, keys from another: expected separate");
  if (s.layer_groups > s.layers) m["layer_groups"].fail("more groups than layers");
}

Stack read_stack(const Value& value, const std::vector<std::string>& known, Stack stack) {
  const Mapping m(value, known);
  for (const CompositionKey& key : composition_keys()) key.read(m[key.name], stack);
  check_stack(m, stack);
  return stack;
}

/// Checks the main stack alone.
void check_head(const Mapping& m, const Stack& s) {
  for (const CompositionKey& key : composition_keys())
    if (!s.image_rows && key.name.starts_with("image_") && key.name != "image_size" &&
        key.value(s) != key.value(Stack{}))
      m[key.name].fail("goes with image_rows: true");
  if (s.pair_loss && s.head != HeadKind::contrastive) m["pair_loss"].fail("goes with head: contrastive");
  if (s.class_loss != ClassLoss::cross_entropy && s.head != HeadKind::sequence_classification &&
      s.head != HeadKind::image_classification)
    m["class_loss"].fail("goes with head: sequence-classification or image-classification");
  if (s.unread_layers > 0) m["unread_layers"].fail("is of a tower: encoder");
}

void check_image_rows(const Mapping& m, const Composition& c) {
  const Stack& s = c.stack;
  if (!c.encoder || c.encoder->input != InputKind::image || s.input != InputKind::tokens || s.cross_attention)
    m["image_rows"].fail("goes with an encoder of images and a main stack that reads tokens");
  const std::int64_t side = c.encoder->patch_side();
  for (const auto& [key, by] : {std::pair{"image_pool", s.image_pool}, std::pair{"image_merge", s.image_merge}})
    if (side % by != 0) m[key].fail(fmt::format("{} does not divide the {} patches of a side", by, side));
  if (s.image_deep > s.layers) m["image_deep"].fail("more projectors than layers");
  if (s.image_merge_projection && s.image_merge == 1) m["image_merge_projection"].fail("goes with image_merge");
}

double parameters_at_least(const Stack& s) {
  const auto d = static_cast<double>(s.hidden);
  return static_cast<double>(s.layers) * d * static_cast<double>(s.inner()) *
             static_cast<double>(std::max<std::int64_t>(s.experts, 1)) +
         static_cast<double>(s.vocabulary) * static_cast<double>(s.table_width());
}

}  // namespace

bool CompositionHandle::operator==(const CompositionHandle& other) const {
  if (composition_ == other.composition_) return true;
  return composition_ && other.composition_ && *composition_ == *other.composition_;
}

std::int64_t only_length(const ModelDescription& model) {
  if (model.program.given()) return model.program->fixed_length;
  if (!model.composition.given() || model.composition->stack.input != InputKind::image) return 0;
  return model.composition->stack.max_positions;
}

std::int64_t rows_of_image(const Composition& composition) {
  const Stack& s = composition.stack;
  if (!s.image_rows) return 0;
  const std::int64_t side = composition.encoder->patch_side() / s.image_pool / s.image_merge;
  return side * side;
}

CompositionHandle without_dropout(const CompositionHandle& composition) {
  if (!composition.given()) return composition;
  auto evaluated = std::make_shared<Composition>(*composition);
  const auto evaluate = [](Stack& s) {
    s.dropout = s.attention_dropout = s.activation_dropout = s.embedding_dropout = s.drop_path = 0.0;
    s.drops_layers = false;
  };
  evaluate(evaluated->stack);
  if (evaluated->encoder) evaluate(*evaluated->encoder);
  return CompositionHandle(std::move(evaluated));
}

std::vector<std::int64_t> Stack::tokens_of_calls(std::int64_t layer) const {
  if (!images_apart) return {};
  const std::int64_t side = image_size / patch;
  if (window_side == 0 || std::find(full_layers.begin(), full_layers.end(), layer) != full_layers.end())
    return {side * side};
  std::vector<std::int64_t> tokens;
  for (std::int64_t y = 0; y < side; y += window_side)
    for (std::int64_t x = 0; x < side; x += window_side)
      tokens.push_back(std::min(window_side, side - y) * std::min(window_side, side - x));
  return tokens;
}

std::vector<Composition::Carried> Composition::carried_before(std::int64_t block, std::int64_t length) const {
  const std::int64_t blocks = encoder ? encoder->layers : 0;
  const auto of = [&](const Stack& s, std::int64_t layer) {
    const std::int64_t tokens = s.cross_attention && s.target_length > 0 ? s.target_length : length;
    return Carried{s.tokens_before(layer, tokens), s.hidden << s.stage_of(layer)};
  };
  if (block <= blocks && encoder) return {of(*encoder, block)};
  std::vector<Carried> carried{of(stack, block - blocks)};
  if (encoder) carried.push_back(of(*encoder, blocks));
  return carried;
}

std::int64_t Composition::kind_of_block(std::int64_t block) const {
  const bool encodes = encoder && block < encoder->layers;
  const Stack& s = encodes ? *encoder : stack;
  const std::int64_t layer = encodes || !encoder ? block : block - encoder->layers;
  std::int64_t kind = s.stage_of(layer);
  for (const bool differs :
       {encodes, s.windowed(layer), s.turns(layer), s.has_experts(layer),
        s.images_apart ? s.tokens_of_calls(layer).size() > 1 : s.window_side > 0 && layer % 2 == 1})
    kind = 2 * kind + (differs ? 1 : 0);
  return kind;
}

ModelDescription read_composition(const Value& value, std::string fallback_name) {
  std::vector<std::string> known;
  for (const CompositionKey& key : composition_keys()) known.emplace_back(key.name);
  std::vector<std::string> all = known;
  all.insert(all.end(), {"name", "family", "encoder"});
  const Mapping m(value, all);
  auto composition = std::make_shared<Composition>();
  composition->stack = read_stack(value, all, {});
  check_head(m, composition->stack);
  if (m["encoder"].exists()) {
    Stack like = composition->stack.image_rows ? Stack{} : composition->stack;
    like.causal = like.cross_attention = like.drops_layers = false;
    like.head = HeadKind::none;
    like.layer_kinds.clear();
    composition->encoder = read_stack(m["encoder"], known, like);
    if (!composition->encoder->stage_layers.empty()) m["encoder"].fail("stages are not built for an encoder");
  }
  const Stack& s = composition->stack;
  if (s.cross_attention && !composition->encoder) m["cross_attention"].fail("goes with an encoder");
  if (s.image_rows) check_image_rows(m, *composition);
  if (s.head == HeadKind::contrastive && (!composition->encoder || (s.projection_width < 1 && !s.pair_loss)))
    m["head"].fail("contrastive goes with an encoder and a projection_width");
  if (parameters_at_least(s) > 1e14) value.fail("more parameters than any GPU could ever hold");
  ModelDescription d;
  d.name = m["name"].text(std::move(fallback_name));
  d.family = ModelFamily::composed;
  d.plain = s.plain;
  d.layers = s.layers + (composition->encoder ? composition->encoder->layers : 0);
  d.heads = s.heads;
  d.key_value_heads = s.key_value_count();
  d.hidden = s.hidden;
  d.head_width = s.head_dim > 0 && s.head_dim * s.heads != s.hidden ? s.head_dim : 0;
  d.feed_forward = s.inner();
  d.vocabulary = s.vocabulary;
  d.max_positions = s.max_positions;
  d.dropout = s.dropout;
  d.attention_dropout = s.attention_dropout;
  d.tie_embeddings = s.tie_embeddings;
  d.labels = s.labels;
  d.composition = CompositionHandle(std::move(composition));
  return d;
}

}  // namespace ridgeline
