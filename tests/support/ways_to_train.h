// A small network trained and used in every way there is: optimizers, precisions, attention, strategies of several
// GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/inference_run.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/small_networks.h"

namespace ridgeline::testing_support {

struct WayToTrain {
  std::string name;
  ModelDescription model;
  TrainingDescription training;
  AttentionChoice attention = AttentionChoice::flash;
  [[nodiscard]] OpTrace run(int steps = 2) const {
    return training.inference ? inference_run(model, training, attention, steps)
                              : training_run(model, training, attention, steps);
  }
};

class WaysToTrain {
 public:
  using Change = std::function<void(WayToTrain&)>;

  [[nodiscard]] std::vector<WayToTrain> all() {
    plain();
    optimizers();
    of_torch();
    of_megatron();
    of_deepspeed();
    pipelines();
    uses();
    return std::move(ways_);
  }

 private:
  static ModelDescription network(ModelFamily family) {
    ModelDescription model = small_network(family, 1000);
    model.layers = 3;
    model.heads = 8;
    model.feed_forward = 256;
    model.activation = family == ModelFamily::llama ? Activation::swiglu : Activation::gelu_tanh;
    if (family == ModelFamily::llama) {
      model.plain = true;
      model.key_value_heads = 4;
    }
    return model;
  }
  static ModelDescription experts() {
    const config::Node tree = config::parse_yaml(
        "{family: composed, layers: 2, heads: 4, hidden: 64, feed_forward: 96, vocabulary: 1000, positions: rotary, "
        "norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, "
        "feed_forward_bias: false, tie_embeddings: false, experts: 8, experts_per_token: 2, shared_feed_forward: 32}",
        "m.yaml");
    return load_model(config::Value(tree));
  }
  void add(std::string name, ModelFamily family, const Change& change = {}) {
    WayToTrain way{std::move(name), network(family), two_sequences(Precision::bf16)};
    way.training.gradient_accumulation = 2;
    if (change) change(way);
    ways_.push_back(std::move(way));
  }
  void add_to_all(const std::string& name, const Change& change = {}) {
    add(name + ", gpt2", ModelFamily::gpt2, change);
    add(name + ", bert", ModelFamily::bert, change);
    add(name + ", llama", ModelFamily::llama, change);
  }

  void plain() {
    for (const AttentionChoice attention : {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::cudnn,
                                            AttentionChoice::efficient, AttentionChoice::math})
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::amp_fp16, Precision::amp_bf16,
                                        Precision::bf16, Precision::apex_o2})
        for (const auto recomputed : {ActivationCheckpointing::none, ActivationCheckpointing::block})
          add_to_all("plain", [&](WayToTrain& way) {
            way.attention = attention;
            way.training.precision = precision;
            way.training.activation_checkpointing = recomputed;
            if (precision == Precision::apex_o2) way.training.gradient_clipping.reset();
          });
    add("experts", ModelFamily::gpt2, [](WayToTrain& way) { way.model = experts(); });
  }
  void optimizers() {
    using enum OptimizerImplementation;
    const auto fuses = [](OptimizerKind kind) {
      return kind != OptimizerKind::adafactor && kind != OptimizerKind::adamw_kahan &&
             kind != OptimizerKind::schedule_free_adamw;
    };
    for (const OptimizerKind kind :
         {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::sgd_momentum,
          OptimizerKind::adafactor, OptimizerKind::adamw_8bit, OptimizerKind::adamw_kahan, OptimizerKind::none,
          OptimizerKind::bert_adam, OptimizerKind::lion, OptimizerKind::lion_8bit, OptimizerKind::lamb,
          OptimizerKind::schedule_free_adamw, OptimizerKind::muon})
      for (const OptimizerImplementation implementation : {for_loop, foreach, fused}) {
        if (implementation == fused ? !fuses(kind) : kind == OptimizerKind::lamb) continue;
        add("optimizer", ModelFamily::gpt2, [&](WayToTrain& way) {
          way.training.optimizer = {kind, implementation};
          way.training.precision = Precision::amp_bf16;
        });
      }
  }
  void of_torch() {
    for (const DataStrategy strategy : {DataStrategy::ddp, DataStrategy::zero1, DataStrategy::zero2, DataStrategy::fsdp,
                                        DataStrategy::fsdp1, DataStrategy::hsdp, DataStrategy::dataparallel})
      add_to_all("data parallel", [&](WayToTrain& way) {
        way.training.micro_batch = 4;
        way.training.parallel.data = 4;
        way.training.parallel.strategy = strategy;
        if (strategy == DataStrategy::hsdp) way.training.parallel.replicate = 2;
      });
    add("compressed", ModelFamily::gpt2, [](WayToTrain& way) {
      way.training.precision = Precision::fp32;
      way.training.parallel.data = 4;
      way.training.parallel.compression = GradientCompression::bf16;
    });
    add("offload", ModelFamily::gpt2, [](WayToTrain& way) {
      way.training.parallel.data = 4;
      way.training.parallel.strategy = DataStrategy::fsdp;
      way.training.parallel.offload = true;
      way.training.optimizer.implementation = OptimizerImplementation::foreach;
    });
    for (const TensorStyle style : {TensorStyle::dtensor, TensorStyle::by_hand})
      for (const bool sequence : {false, true})
        add_to_all("tensor parallel", [&](WayToTrain& way) {
          way.training.parallel.tensor = 2;
          way.training.parallel.tensor_style = style;
          way.training.parallel.sequence_parallel = sequence;
        });
    for (const ContextRotation rotation : {ContextRotation::all_gather, ContextRotation::all_to_all})
      for (const ModelFamily family : {ModelFamily::bert, ModelFamily::llama})
        add("context parallel", family, [&](WayToTrain& way) {
          if (family == ModelFamily::bert) way.model.head = ModelHead::masked_lm;
          way.training.parallel.context = 4;
          way.training.parallel.rotation = rotation;
        });
    for (const DataStrategy strategy : {DataStrategy::ddp, DataStrategy::fsdp})
      add("expert parallel", ModelFamily::gpt2, [&](WayToTrain& way) {
        way.model = experts();
        way.training.parallel.data = 4;
        way.training.parallel.expert = 2;
        way.training.parallel.strategy = strategy;
      });
  }
  void of_megatron() {
    for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::bert})
      for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16})
        for (const std::int64_t tensor : {1, 2})
          for (const bool sequence : {false, true})
            for (const AttentionChoice attention : {AttentionChoice::flash, AttentionChoice::eager})
              add("megatron", family, [&](WayToTrain& way) {
                way.attention = attention;
                way.training.precision = precision;
                way.training.parallel.framework = Framework::megatron;
                way.training.parallel.tensor = tensor;
                way.training.parallel.data = 2;
                way.training.parallel.sequence_parallel = sequence && tensor > 1;
              });
    add("megatron with TransformerEngine", ModelFamily::gpt2, [&](WayToTrain& way) {
      way.training.precision = Precision::amp_bf16;
      way.training.parallel.framework = Framework::megatron;
      way.training.parallel.transformer_engine = true;
    });
  }
  void of_deepspeed() {
    for (const DataStrategy stage : {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::zero3})
      for (const Precision precision : {Precision::amp_bf16, Precision::amp_fp16})
        add_to_all("deepspeed", [&](WayToTrain& way) {
          way.training.precision = precision;
          way.training.parallel.data = 4;
          way.training.parallel.framework = Framework::deepspeed;
          way.training.parallel.strategy = stage;
          way.training.parallel.zero.reduce_bucket_size = 1 << 20;
        });
  }
  void pipelines() {
    using enum PipelineSchedule;
    for (const PipelineSchedule schedule :
         {gpipe, one_forward_one_backward, interleaved, zb1p, zbv, interleaved_zero_bubble})
      for (const std::int64_t rank : {0, 1})
        for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::bert, ModelFamily::llama})
          add("pipeline", family, [&](WayToTrain& way) {
            way.model.layers = 4;
            if (family == ModelFamily::bert) way.model.head = ModelHead::masked_lm;
            way.model.tie_embeddings = false;
            way.training.gradient_accumulation = 4;
            way.training.parallel.pipeline = 2;
            way.training.parallel.schedule = schedule;
            const bool several = schedule == interleaved || schedule == zbv || schedule == interleaved_zero_bubble;
            way.training.parallel.virtual_stages = several ? 2 : 1;
            way.training.parallel.pipeline_rank = rank;
          });
  }
  void uses() {
    for (const KeyValueCache cache : {KeyValueCache::none, KeyValueCache::dynamic, KeyValueCache::fixed})
      for (const std::int64_t beams : {1, 3})
        for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama})
          add("generation", family, [&](WayToTrain& way) {
            way.model.plain.reset();
            way.training.gradient_accumulation = 1;
            way.training.sequence_length = 16;
            way.training.inference = InferenceDescription{2, 4, beams, cache};
          });
    add_to_all("evaluation", [&](WayToTrain& way) {
      way.training.gradient_accumulation = 1;
      way.training.inference = InferenceDescription{2, 0, 1, KeyValueCache::dynamic};
    });
  }

  std::vector<WayToTrain> ways_;
};

}  // namespace ridgeline::testing_support
