#include "tests/invariants/random_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"
#include "tests/invariants/chip_keys.h"
#include "tests/invariants/random_stack.h"

namespace ridgeline::invariants {
namespace {

void set(Overrides& out, std::string key, std::string value) { out.push_back({std::move(key), std::move(value), ""}); }
void set(Overrides& out, std::string key, std::int64_t value) { set(out, std::move(key), fmt::format("{}", value)); }

struct Network {
  std::string family, text;  ///< as an inline mapping
  std::int64_t head = 0, length = 0;
};

/// A network of a few numbers. `usual`: widths as networks have them; `sparse`: may have 2:4 sparse weights.
Network random_network(Draw& draw, bool usual, std::int64_t positions, bool may_be_sparse = false) {
  if (draw.chance(0.4)) {
    const RandomStack stack = random_stack(draw, positions);
    return {"composed", stack.text, stack.head, stack.length};
  }
  const std::string family = draw.pick<const char*>({"gpt2", "gpt2", "bert", "llama", "llama"});
  const bool sparse = may_be_sparse && draw.chance(0.1);
  // Rotary positions turn pairs; sides of sparse weights are multiples of 16.
  const std::int64_t unit = sparse ? 16 : family == "llama" ? 2 : 1;
  const auto whole_units = [unit](std::int64_t size) { return (size + unit - 1) / unit * unit; };
  const std::int64_t head =
      whole_units(usual ? draw.pick<std::int64_t>({32, 64, 64, 64, 80, 96, 128, 128})
                        : draw.pick<std::int64_t>({1, 2, 3, 8, 16, 40, 64, 72, 100, 128, 160, 256, 257}));
  const std::int64_t heads = usual ? draw.pick<std::int64_t>({2, 4, 8, 12, 12, 16, 20, 25, 32}) : draw.size(1, 24);
  const std::int64_t hidden = heads * head;
  std::string text = fmt::format(
      "{{family: {}, layers: {}, heads: {}, hidden: {}, vocabulary: {}, max_positions: {}", family,
      draw.whole(1, usual ? 2 : 3), heads, hidden,
      usual ? draw.pick<std::int64_t>({65, 1000, 30522, 32000, 50257, 50304}) : draw.size(1, 60000), positions);
  if (family == "llama") {
    std::vector<std::int64_t> shares;
    for (std::int64_t n = 1; n <= heads; ++n)
      if (heads % n == 0) shares.push_back(n);
    if (draw.chance(0.5)) text += fmt::format(", key_value_heads: {}", draw.pick(shares));
    if (draw.chance(0.5))
      text += fmt::format(", feed_forward: {}", whole_units(draw.size(1 + 1.5 * static_cast<double>(hidden),
                                                                      1 + 4.0 * static_cast<double>(hidden))));
  } else {
    if (draw.chance(0.3)) text += fmt::format(", dropout: {}", draw.pick<const char*>({"0.0", "0.1", "0.5"}));
    if (draw.chance(0.2)) text += ", bias: false";
    if (draw.chance(0.4))
      text +=
          fmt::format(", activation: {}", draw.pick<const char*>({"gelu", "gelu-tanh", "relu", "gelu-spelled-out"}));
    if (!usual && draw.chance(0.3))
      text += fmt::format(", feed_forward: {}", whole_units(draw.size(1, 5.0 * static_cast<double>(hidden))));
  }
  if (draw.chance(0.2)) text += ", tie_embeddings: false";
  if (family == "bert" && draw.chance(0.7))
    text += fmt::format(", head: {}", draw.pick<const char*>({"sequence-classification", "question-answering",
                                                              "masked-lm", "pretraining"}));
  if (sparse) text += ", weight_sparsity: \"2:4\"";
  return {family, text + "}", head};
}

/// What `asked` for a backend, where it can run what a scenario says; else PyTorch's own choice. One question in twenty
/// stays as it is: a refusal has to be a message, too.
std::string attention_for(Draw& draw, const std::string& asked, const std::string& precision, const Gpu& gpu,
                          bool has_fused, std::int64_t head) {
  const bool fused = asked == "flash" || asked == "cudnn" || asked == "efficient";
  if (!fused || draw.chance(0.05)) return asked;
  const bool half = precision != "fp32" && precision != "tf32", old = gpu.compute_major < 8;
  bool runs = has_fused;
  if (asked == "efficient") runs = runs && head % (half ? 8 : 4) == 0 && !(old && precision.ends_with("bf16"));
  else runs = runs && half && !old;
  if (asked == "flash") runs = runs && head <= 192;
  if (asked == "cudnn") runs = runs && head % 8 == 0 && head <= 128;
  return runs ? asked : "sdpa";
}

/// Tokens that a sequence of `model` may have, `most` at most; `only` becomes those that each has.
std::int64_t longest_sequence(const ModelDescription& model, std::int64_t most, std::int64_t& only) {
  only = only_length(model);
  return model.has_position_table() ? std::min(most, model.max_positions) : most;
}

/// Sequences and tokens such that a case takes milliseconds.
void set_sizes(Overrides& out, Draw& draw, const std::string& engine, bool usual, std::int64_t longest,
               std::int64_t only) {
  const double most_tokens = engine == "simulate" ? 2048 : 65536;
  const std::int64_t sequence =
      only > 0 ? only
      : usual  ? std::min(longest, draw.pick<std::int64_t>({64, 128, 256, 384, 512, 1024, 1024, 2048}))
               : std::min(longest, draw.size(1, 2048));
  const double most = std::max(1.0, most_tokens / static_cast<double>(sequence));
  set(out, "training.micro_batch", draw.size(1, std::min(most, 128.0)));
  set(out, "training.sequence_length", sequence);
}

/// Ways to train of which each is rare; several exclude one another or need some GPU or network, and are refused.
void set_further_ways(Overrides& out, Draw& draw) {
  if (draw.chance(0.06)) set(out, "training.fp8", draw.pick<const char*>({"tensorwise", "rowwise"}));
  if (draw.chance(0.1)) set(out, "training.loss_code", "chunked");
  if (draw.chance(0.15))
    set(out, "training.activation_checkpointing", draw.pick<const char*>({"block", "block", "selective"}));
  if (draw.chance(0.06)) set(out, "training.packed_lengths", draw.pick<const char*>({"16", "100", "512"}));
  if (draw.chance(0.06)) set(out, "training.activation_offload", draw.pick<const char*>({"pinned", "pageable"}));
}

}  // namespace

Scenario Question::load_with(const Overrides& more) const {
  ScenarioSource source;
  if (!hardware.empty()) source.overrides.push_back({"hardware", hardware, ""});
  for (const Overrides* part : {&settings, &chip, &more})
    source.overrides.insert(source.overrides.end(), part->begin(), part->end());
  return load_scenario(source);
}

Scenario Question::load_on(const std::string& file) const {
  ScenarioSource source;
  source.overrides.push_back({"hardware", file, ""});
  source.overrides.insert(source.overrides.end(), settings.begin(), settings.end());
  return load_scenario(source);
}

std::string Question::command(const Overrides& more) const {
  std::string text = "build/ridgeline predict --engine " + engine;
  if (!hardware.empty()) text += " --hardware " + hardware;
  for (const Overrides* part : {&settings, &chip, &more})
    for (const config::Override& change : *part) text += fmt::format(" --set '{}={}'", change.key, change.value);
  return text;
}

std::string random_engine(Draw& draw, const std::string& asked, bool with_roofline) {
  const double share = draw.share();
  if (!asked.empty()) return asked;
  if (with_roofline && share < 0.1) return "roofline";
  return share < 0.25 ? "simulate" : "analytic";
}

std::size_t shipped_networks() { return model_names().size(); }

Overrides shipped_network(std::size_t index, std::int64_t layers) {
  Overrides out;
  set(out, "model", model_names().at(index % model_names().size()));
  set(out, "model.layers", layers);
  return out;
}

Overrides common_settings(Draw& draw, const std::string& engine) {
  Overrides out;
  std::int64_t longest = 2048, only = 0;
  const bool simulated = engine == "simulate";
  if (!simulated && draw.chance(0.4)) {
    out = shipped_network(static_cast<std::size_t>(draw.whole(0, 1000)), draw.whole(1, 2));
    longest = longest_sequence(load_model(out.front().value), longest, only);
  } else {
    const Network network = random_network(draw, true, longest);
    set(out, "model", network.text);
    only = network.length;
  }
  set_sizes(out, draw, engine, true, longest, only);
  set(out, "training.precision", draw.pick<const char*>({"fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"}));
  set(out, "training.attention", draw.pick<const char*>({"eager", "sdpa", "sdpa", "efficient", "math"}));
  set(out, "training.optimizer",
      draw.pick<const char*>({"{name: adamw, implementation: foreach}", "{name: adamw, implementation: fused}",
                              "{name: adamw, implementation: for-loop}", "{name: sgd}", "{name: adafactor}",
                              "{name: adamw-8bit}", "{name: none}"}));
  if (draw.chance(0.3)) set(out, "training.compile", "true");
  if (draw.chance(0.3)) set(out, "training.cuda_graphs", "true");
  if (draw.chance(0.2)) set(out, "training.gradient_clipping", "1.0");
  // Most hosts here are fast enough to leave the step to the GPU.
  if (draw.chance(0.7)) set(out, "host.scale", "0.02");
  set_further_ways(out, draw);
  return out;
}

Overrides any_settings(Draw& draw, const std::string& engine, const std::string& hardware) {
  Overrides out;
  std::int64_t longest = 4096;
  const Gpu gpu = load_gpu(hardware);
  const std::string software = draw.pick<const char*>({"pytorch-1.13", "pytorch-2.0", "pytorch-2.11", "pytorch-2.11"});
  const std::string precision = draw.pick<const char*>({"fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "apex-o2"});
  const bool may_be_sparse = gpu.sm.rates.sparsity_factor > 1.0 && precision != "fp32";
  Network network;
  if (engine != "simulate" && draw.chance(0.2)) {
    out = shipped_network(static_cast<std::size_t>(draw.whole(0, 1000)), draw.whole(1, 3));
    const ModelDescription model = load_model(out.front().value);
    longest = longest_sequence(model, longest, network.length);
    network.head = model.head_dim();
    if (model.family == ModelFamily::bert) network.family = "bert";
  } else {
    network = random_network(draw, draw.chance(0.4), longest, may_be_sparse);
    set(out, "model", network.text);
  }
  const std::string attention =
      attention_for(draw, draw.pick<const char*>({"eager", "sdpa", "sdpa", "flash", "cudnn", "efficient", "math"}),
                    precision, gpu, software != "pytorch-1.13", network.head);
  if (draw.chance(0.15) && precision != "apex-o2") {
    set(out, "inference.sequences", draw.size(1, 16));
    set(out, "inference.prompt_length",
        network.length > 0 ? network.length : std::min<std::int64_t>(longest - 16, draw.size(1, 512)));
    set(out, "inference.precision", precision);
    set(out, "inference.attention", attention);
    if (network.family != "bert" && draw.chance(0.6)) {
      set(out, "inference.new_tokens", draw.whole(1, 8));
      set(out, "inference.cache", draw.pick<const char*>({"none", "dynamic", "static"}));
      if (draw.chance(0.3)) set(out, "inference.beams", draw.whole(1, 4));
    }
    if (draw.chance(0.3)) set(out, "inference.cuda_graphs", "true");
  } else {
    set_sizes(out, draw, engine, draw.chance(0.4), longest, network.length);
    set(out, "training.precision", precision);
    set(out, "training.attention", attention);
    const std::string optimizer = draw.pick<const char*>({"adamw", "adamw", "adam", "sgd", "sgd-momentum", "adafactor",
                                                          "adamw-8bit", "adamw-kahan", "bert-adam", "none"});
    std::string implementation = draw.pick<const char*>({"for-loop", "foreach", "foreach", "fused"});
    if (implementation == "fused" && (optimizer == "adafactor" || optimizer == "adamw-kahan") && !draw.chance(0.05))
      implementation = "foreach";
    set(out, "training.optimizer", fmt::format("{{name: {}, implementation: {}}}", optimizer, implementation));
    if (draw.chance(0.2)) set(out, "training.gradient_accumulation", draw.whole(1, 4));
    if (draw.chance(0.3)) set(out, "training.gradient_clipping", "1.0");
    if (draw.chance(0.2)) set(out, "training.activation_checkpointing", "block");
    if (draw.chance(0.2)) set(out, "training.reads_loss", draw.pick<const char*>({"never", "step", "micro-batch"}));
    if (draw.chance(0.3)) set(out, "training.compile", "true");
    if (draw.chance(0.2)) set(out, "training.cuda_graphs", "true");
    set_further_ways(out, draw);
  }
  set(out, "software", software);
  if (draw.chance(0.4)) set(out, "host", draw.pick<const char*>({"fast", "slow"}));
  if (draw.chance(0.2)) set(out, "allocator.expandable_segments", "true");
  return out;
}

Overrides random_chip(Draw& draw, const std::string& hardware, int most, double widest) {
  const std::vector<ChipKey> keys = keys_of(hardware);
  for (int attempt = 0; attempt < 20; ++attempt) {
    Overrides changes;
    const std::int64_t count = draw.whole(1, most);
    for (std::int64_t i = 0; i < count; ++i) {
      const ChipKey& key = draw.pick(keys);
      const double factor = draw.between(1.0 / widest, widest);
      if (key.key.starts_with("compute_") || key.value == 0.0) continue;
      if (key.unit.ends_with("Hz")) {
        for (const ChipKey& clock : keys)
          if (clock.unit.ends_with("Hz") && section_of(clock.key) == section_of(key.key))
            changes.push_back(changed(clock, factor));
        continue;
      }
      changes.push_back(changed(key, factor));
    }
    Overrides inner = changes;
    for (config::Override& change : inner) change.key = change.key.substr(std::string_view("hardware.").size());
    try {
      load_gpu(hardware, inner);
      return changes;
    } catch (const UserError&) {  // out of range, or impossible beside the others
    }
  }
  return {};
}

}  // namespace ridgeline::invariants
