// Choices of fine-tuning that a scenario leaves unsaid, and that a key which says them wins.
#include <gtest/gtest.h>

#include <string>

#include "sim/scenario/scenario.h"

namespace ridgeline {
namespace {

/// Small enough that its checkpoint would be in fp32, or of 6.7 B parameters.
enum class Size : std::uint8_t { small, large };

Scenario scenario_of(Size size, const std::string& training, const std::string& software = "pytorch-2.11") {
  const std::string model =
      size == Size::large ? "llama-7b"
                          : "{family: llama, layers: 2, heads: 4, hidden: 64, feed_forward: 128, vocabulary: 1024}";
  return load_scenario({.file = {},
                        .text = "hardware: nvidia-a100-sxm4-80gb\nmodel: " + model + "\nsoftware: " + software +
                                "\ntraining: {micro_batch: 1, sequence_length: 64, " + training + "}\n",
                        .text_name = "recipe.yaml",
                        .overrides = {}});
}

TrainingDescription training_of(Size size, const std::string& training, const std::string& software = "pytorch-2.11") {
  return scenario_of(size, training, software).training;
}

TEST(Recipe, AutocastLoadsLargeNetworksAsTheyArePublishedBesideAdaptersAlone) {
  EXPECT_EQ(training_of(Size::large, "precision: amp-bf16, lora: {}").stored_type(), DType::bf16);
  EXPECT_EQ(training_of(Size::large, "precision: amp-fp16, lora: {}").stored_type(), DType::fp16);
  EXPECT_EQ(training_of(Size::small, "precision: amp-bf16, lora: {}").stored_type(), DType::fp32);
  EXPECT_EQ(training_of(Size::large, "precision: amp-bf16").stored_type(), DType::fp32);
  EXPECT_EQ(training_of(Size::large, "precision: amp-bf16, lora: none").stored_type(), DType::fp32);
  EXPECT_EQ(training_of(Size::large, "precision: amp-bf16, weight_dtype: fp32, lora: {}").stored_type(), DType::fp32);
  EXPECT_EQ(training_of(Size::large, "precision: fp32, lora: {}").stored_type(), DType::fp32);
}

// modeling_t5.py of Transformers 5.17: _keep_in_fp32_modules = ["wo"], which bitsandbytes leaves alone.
TEST(Recipe, QuantizedBasesOfT5AreRefused) {
  const auto with = [](const char* frozen) {
    return load_scenario({.file = {},
                          .overrides = {{"model", "t5-small", ""},
                                        {"hardware", "nvidia-t4", ""},
                                        {"training.micro_batch", "1", ""},
                                        {"training.sequence_length", "32", ""},
                                        {"training.precision", "fp32", ""},
                                        {"training.lora.rank", "4", ""},
                                        {"training.lora.frozen_weights", frozen, ""}}});
  };
  EXPECT_NO_THROW(with("as stored"));
  EXPECT_THROW(with("nf4"), UserError);
}

TEST(Recipe, AdaptersHaveTheTypeOfTheirFramework) {
  const auto type = [](const std::string& training, const std::string& software) {
    return training_of(Size::large, training, software).lora->dtype;
  };
  // PEFT casts adapters to fp32 since 0.11; before, they had the type of the layer.
  EXPECT_EQ(type("precision: amp-bf16, lora: {}", "pytorch-2.5"), DType::fp32);
  EXPECT_EQ(type("precision: amp-bf16, lora: {}", "pytorch-2.0"), DType::bf16);
  EXPECT_EQ(type("precision: bf16, lora: {}", "pytorch-2.11"), DType::fp32);
  EXPECT_EQ(type("precision: bf16, lora: {}", "pytorch-2.1"), DType::bf16);
  EXPECT_EQ(type("precision: bf16, lora: {frozen_weights: nf4}", "pytorch-2.1"), DType::fp32);
  // Gradients in fp16 cannot be unscaled.
  EXPECT_EQ(type("precision: amp-fp16, lora: {}", "pytorch-2.0"), DType::fp32);
  EXPECT_EQ(type("precision: fp32, lora: {}", "pytorch-2.0"), DType::fp32);
  // Pure bf16 with torch.compile or a loss in chunks is torchtune's.
  EXPECT_EQ(type("precision: bf16, compile: true, lora: {}", "pytorch-2.5"), DType::bf16);
  EXPECT_EQ(type("precision: bf16, loss_code: chunked-output, lora: {}", "pytorch-2.5"), DType::bf16);
  EXPECT_EQ(type("precision: bf16, compile: true, lora: {dtype: fp32}", "pytorch-2.5"), DType::fp32);
}

TEST(Recipe, CompiledAdaptersInPureBf16TakeTorchtunesLoss) {
  const Scenario s = scenario_of(Size::small, "precision: bf16, compile: true, lora: {}");
  EXPECT_EQ(s.training.loss_code, LossCode::chunked_output);
  EXPECT_TRUE(s.training.parallel.block_by_block);
  const auto code = [](const std::string& training) { return training_of(Size::small, training).loss_code; };
  EXPECT_EQ(code("precision: bf16, compile: true"), LossCode::whole);
  EXPECT_EQ(code("precision: bf16, lora: {}"), LossCode::whole);
  EXPECT_EQ(code("precision: amp-bf16, compile: true, lora: {}"), LossCode::whole);
  EXPECT_EQ(code("precision: bf16, compile: true, loss_code: whole, lora: {}"), LossCode::whole);
  EXPECT_EQ(code("precision: bf16, loss_code: chunked"), LossCode::chunked);
  // A chunked loss that is compiled is torchtune's, and its unit can be said.
  const TrainingDescription chunked = training_of(Size::small, "precision: bf16, compile: true, loss_code: chunked");
  EXPECT_EQ(chunked.loss_code, LossCode::chunked_output);
  EXPECT_TRUE(chunked.parallel.block_by_block);
  const TrainingDescription whole_network =
      training_of(Size::small, "precision: bf16, compile: true, compile_unit: model, loss_code: chunked");
  EXPECT_FALSE(whole_network.parallel.block_by_block);
  // Scores chosen by the script, as measured, keep the whole network as their unit.
  EXPECT_FALSE(training_of(Size::small, "precision: bf16, compile: true, loss_code: chunked-output, lora: {}")
                   .parallel.block_by_block);
}

TEST(Recipe, WeightsOfFourBitsUnderAutocastAreCheckpointed) {
  const auto how = [](const std::string& training) {
    return training_of(Size::large, training).activation_checkpointing;
  };
  EXPECT_EQ(how("precision: amp-bf16, lora: {frozen_weights: nf4}"), ActivationCheckpointing::block);
  EXPECT_EQ(how("precision: amp-bf16, activation_checkpointing: none, lora: {frozen_weights: nf4}"),
            ActivationCheckpointing::none);
  EXPECT_EQ(how("precision: bf16, lora: {frozen_weights: nf4}"), ActivationCheckpointing::none);
  EXPECT_EQ(how("precision: amp-bf16, lora: {}"), ActivationCheckpointing::none);
  EXPECT_EQ(how("precision: amp-bf16, lora: {frozen_weights: gptq}"), ActivationCheckpointing::block);
  EXPECT_EQ(training_of(Size::large, "precision: amp-fp16, lora: {frozen_weights: gptq}").stored_type(), DType::fp16);
  EXPECT_EQ(training_of(Size::large, "precision: amp-fp16, lora: {frozen_weights: int8}").stored_type(), DType::fp32);
  // Norms, embeddings and head are cast to fp32.
  EXPECT_EQ(training_of(Size::large, "precision: amp-bf16, lora: {frozen_weights: nf4}").stored_type(), DType::fp32);
}

}  // namespace
}  // namespace ridgeline
