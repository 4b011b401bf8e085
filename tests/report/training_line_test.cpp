// What the second line of a page says of how a model is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/text/prediction_text.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

/// What stands between the GPU and the engine.
std::string words_of(const TrainingDescription& training) {
  Scenario s;
  s.gpu.name = "g";
  s.training = training;
  const std::string page = prediction_text(s, made_prediction(), Notes::folded);
  const std::size_t begin = page.find("g: ") + 3;
  std::string words = page.substr(begin, page.find("·", begin) - begin);
  for (auto end = words.find('\n'); end != words.npos; end = words.find('\n')) words[end] = ' ';
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

TrainingDescription plain() {
  TrainingDescription t;
  t.micro_batch = 4, t.sequence_length = 128;
  return t;
}

TEST(TrainingLine, NamesEachPrecision) {
  const std::pair<Precision, const char*> names[] = {
      {Precision::fp32, "fp32"},         {Precision::tf32, "tf32"}, {Precision::amp_fp16, "amp-fp16"},
      {Precision::amp_bf16, "amp-bf16"}, {Precision::bf16, "bf16"}, {Precision::apex_o2, "apex-o2"}};
  for (const auto& [precision, name] : names) {
    TrainingDescription t = plain();
    t.precision = precision;
    EXPECT_EQ(words_of(t), std::string("4 x 128 tokens, ") + name);
  }
}

TEST(TrainingLine, NamesWhatIsDoneToSaveMemory) {
  TrainingDescription t = plain();
  t.gradient_accumulation = 8;
  t.activation_checkpointing = ActivationCheckpointing::block;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, 8 micro-batches a step, checkpointed");
  t = plain();
  t.activation_checkpointing = ActivationCheckpointing::operations;
  t.activation_offload = ActivationOffload::pinned;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, checkpointed by operation, saved tensors in the host's pinned memory");
  t = plain();
  t.activation_offload = ActivationOffload::pageable;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, saved tensors in the host's pageable memory");
}

TEST(TrainingLine, NamesAdaptersAndWhatTheyStandBeside) {
  TrainingDescription t = plain();
  t.lora = LoraDescription{.rank = 16};
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, adapters of rank 16");
  t.lora->frozen = FrozenWeights::nf4;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, adapters of rank 16 beside weights of four bits");
}

TEST(TrainingLine, NamesWhoSharesTheWork) {
  TrainingDescription t = plain();
  t.parallel.data = 4;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, on each of 4 GPUs");
  t.parallel.tensor = 2;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, on each of 8 GPUs");
  t.parallel.context = 3;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, on 24 GPUs, each sequence cut over 3 ranks");
  t = plain();
  t.parallel.split = 3;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, in one process over 3 GPUs");
  t = plain();
  t.parallel.pipeline = 4, t.parallel.virtual_stages = 2;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, through a pipeline of 8 stages on 4 ranks");
  t.parallel.data = 5;
  EXPECT_EQ(words_of(t), "4 x 128 tokens, fp32, through a pipeline of 8 stages on 4 ranks, 5 of them");
}

}  // namespace
}  // namespace ridgeline
