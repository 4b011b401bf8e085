#include "tests/invariants/random_stack.h"

#include <fmt/format.h>

#include <vector>

namespace ridgeline::invariants {
namespace {

class Keys {
 public:
  explicit Keys(Draw& draw) : draw_(draw) {}

  template <typename Value>
  void set(const char* key, const Value& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
  }
  void maybe(double probability, const char* key, std::initializer_list<const char*> values) {
    if (draw_.chance(probability)) set(key, draw_.pick<const char*>(values));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Draw& draw_;
  std::string text_;
};

std::int64_t heads_and_width(Keys& keys, Draw& draw) {
  const std::int64_t head = draw.pick<std::int64_t>({8, 16, 32, 64, 64, 80, 96, 128, 128, 256});
  const std::int64_t heads = draw.pick<std::int64_t>({1, 2, 4, 6, 8, 12, 16, 25});
  keys.set("heads", heads);
  keys.set("hidden", heads * head);
  std::vector<std::int64_t> shares;
  for (std::int64_t n = 1; n <= heads; ++n)
    if (heads % n == 0) shares.push_back(n);
  if (draw.chance(0.4)) keys.set("key_value_heads", draw.pick(shares));
  if (draw.chance(0.15)) keys.set("head_dim", head);
  return head;
}

void attention(Keys& keys, Draw& draw, std::int64_t positions) {
  keys.maybe(0.3, "qkv_bias", {"true", "false"});
  keys.maybe(0.3, "output_bias", {"true", "false"});
  keys.maybe(0.3, "projection", {"separate", "fused", "fused-slices", "fused-by-head"});
  keys.maybe(0.2, "query_key_norm", {"head", "width"});
  keys.maybe(0.2, "attention_code", {"written-out", "written-out-fp32"});
  keys.maybe(0.2, "softmax_fp32", {"true", "false"});
  keys.maybe(0.2, "score_scale", {"attention", "queries", "nowhere"});
  keys.maybe(0.2, "always_masked", {"true"});
  keys.maybe(0.2, "attention_dropout", {"0.1"});
  keys.maybe(0.1, "score_cap", {"50"});
  keys.maybe(0.1, "sinks", {"true"});
  keys.maybe(0.2, "grouping", {"told", "broadcast", "copied"});
  if (draw.chance(0.2)) {
    keys.set("window", draw.size(16, static_cast<double>(positions)));
    keys.maybe(0.5, "layer_kinds", {"[window, full]", "[full, window]"});
  }
}

void feed_forward(Keys& keys, Draw& draw) {
  keys.maybe(0.7, "feed_forward_kind", {"plain", "gated", "gated-fused"});
  if (draw.chance(0.5)) keys.set("feed_forward", 8 * draw.size(2, 1000));
  keys.maybe(0.3, "feed_forward_bias", {"true", "false"});
  keys.maybe(0.6, "activation",
             {"gelu", "gelu-tanh", "gelu-written-out", "relu", "relu-squared", "silu", "quick-gelu", "tanh"});
  if (!draw.chance(0.25)) return;
  const std::int64_t experts = draw.pick<std::int64_t>({2, 4, 8, 16, 60});
  keys.set("experts", experts);
  keys.set("experts_per_token", draw.whole(1, experts < 8 ? experts : 8));
  if (draw.chance(0.5)) keys.set("expert_feed_forward", 8 * draw.size(2, 400));
  if (draw.chance(0.4)) keys.set("shared_feed_forward", 8 * draw.size(2, 400));
  keys.maybe(0.3, "dense_layers", {"1"});
  keys.maybe(0.2, "expert_step", {"2"});
}

}  // namespace

RandomStack random_stack(Draw& draw, std::int64_t positions) {
  RandomStack result;
  Keys keys(draw);
  keys.set("family", "composed");
  keys.set("layers", draw.whole(1, 2));
  result.head = heads_and_width(keys, draw);
  const bool image = draw.chance(0.15);
  if (image) {
    const std::int64_t patch = draw.pick<std::int64_t>({8, 14, 16, 32}), side = draw.whole(2, 16);
    const bool class_token = draw.chance(0.5);
    keys.set("input", "image");
    keys.set("patch", patch);
    keys.set("image_size", patch * side);
    keys.set("class_token", class_token ? "true" : "false");
    keys.set("head", "image-classification");
    keys.set("pooler", class_token ? "first-token" : "dense-tanh");
    keys.set("labels", draw.size(2, 2000));
    keys.set("causal", "false");
    keys.set("positions", "learned");
    keys.set("tie_embeddings", "false");
    result.length = side * side + (class_token ? 1 : 0);
  } else {
    keys.set("vocabulary", draw.size(10, 200000));
    const char* place =
        draw.pick<const char*>({"none", "learned", "sinusoidal", "rotary", "rotary", "alibi", "relative"});
    keys.set("positions", place);
    if (const std::string_view table(place); table == "learned" || table == "sinusoidal")
      keys.set("max_positions", positions);
    keys.maybe(0.3, "rotary_share", {"0.25", "0.5"});
    keys.maybe(0.3, "causal", {"true", "false"});
    keys.maybe(0.3, "tie_embeddings", {"true", "false"});
    keys.maybe(0.2, "head", {"language-model", "masked-lm", "none"});
    keys.maybe(0.1, "logit_cap", {"30"});
    keys.maybe(0.2, "loss_fp32", {"true"});
  }
  keys.maybe(0.6, "norm", {"layer", "rms", "rms-plus-one", "rms-cast-last", "rms-t5"});
  keys.maybe(0.5, "norm_place", {"pre", "post", "both", "after"});
  keys.maybe(0.2, "residual", {"serial", "parallel", "parallel-two-norms"});
  keys.maybe(0.2, "dropout", {"0.1"});
  keys.maybe(0.1, "weights_by_inputs", {"true"});
  attention(keys, draw, positions);
  feed_forward(keys, draw);
  if (!image && draw.chance(0.15)) {
    keys.set("cross_attention", "true");
    keys.set("encoder",
             draw.pick<const char*>({"{head: none, causal: false}", "{head: none, causal: false, layers: 1}"}));
    if (draw.chance(0.5)) keys.set("target_length", draw.size(1, static_cast<double>(positions)));
  }
  result.text = "{" + keys.text() + "}";
  return result;
}

}  // namespace ridgeline::invariants
