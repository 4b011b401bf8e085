// Which attention runs, by scaled_dot_product_attention's order and by what each backend needs: one thing changed at a
// time, on both sides of each bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/kernels/assumed_kernels.h"
#include "sim/kernels/attention/attention_choice.h"
#include "sim/units/user_error.h"
#include "tests/kernels/worked_launches.h"

namespace ridgeline::worked_attention_choice {
namespace {

struct Asked {
  AttentionRequest request = AttentionRequest::sdpa;
  Precision precision = Precision::bf16;
  std::int64_t head_dim = 64;
  int major = 9, minor = 0;
  bool wgmma = true;
  bool prefers_cudnn = true, fused = true;
  std::int64_t context = 1;
  bool packed = false;
};
std::string_view word_of(AttentionChoice choice) {
  switch (choice) {
    case AttentionChoice::eager: return "eager";
    case AttentionChoice::flash: return "flash";
    case AttentionChoice::cudnn: return "cudnn";
    case AttentionChoice::efficient: return "efficient";
    case AttentionChoice::math: return "math";
  }
  return "?";
}
/// The choice, or the sentence that refuses.
std::string chosen(const Asked& asked) {
  TrainingDescription training;
  training.attention = asked.request;
  training.precision = asked.precision;
  training.parallel.context = asked.context;
  if (asked.packed) training.packed_lengths = {5, 3};
  ModelDescription model;
  model.heads = 3;
  model.hidden = 3 * asked.head_dim;
  Gpu gpu = testing_support::made_up_chip();
  gpu.name = "chip";
  gpu.compute_major = asked.major, gpu.compute_minor = asked.minor;
  gpu.sm.warpgroup_mma = asked.wgmma;
  Software software;
  software.name = "stack";
  software.prefers_cudnn_attention_on_hopper = asked.prefers_cudnn;
  software.has_flash_attention = asked.fused;
  try {
    return std::string(word_of(choose_attention(training, model, gpu, software)));
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(WorkedAttentionChoice, sdpa_tries_cudnn_on_hopper_then_flash_then_efficient_then_products) {
  EXPECT_EQ(chosen({}), "cudnn");
  EXPECT_EQ(chosen({.major = 10}), "cudnn");
  EXPECT_EQ(chosen({.major = 11}), "flash");
  EXPECT_EQ(chosen({.major = 8}), "flash");
  EXPECT_EQ(chosen({.prefers_cudnn = false}), "flash");
  EXPECT_EQ(chosen({.fused = false}), "math");
  // cuDNN needs steps of eight and at most 256 with wgmma, 128 without.
  EXPECT_EQ(chosen({.head_dim = 256}), "cudnn");
  EXPECT_EQ(chosen({.head_dim = 252}), "flash");
  EXPECT_EQ(chosen({.head_dim = 264}), "efficient");
  EXPECT_EQ(chosen({.head_dim = 128, .wgmma = false}), "cudnn");
  EXPECT_EQ(chosen({.head_dim = 136, .wgmma = false}), "flash");
  EXPECT_EQ(chosen({.head_dim = 260}), "math") << "efficient attention takes steps of eight";
  for (const Precision half : {Precision::bf16, Precision::amp_bf16, Precision::amp_fp16, Precision::apex_o2})
    EXPECT_EQ(chosen({.precision = half}), "cudnn");
  // In fp32 efficient attention alone, in steps of four.
  EXPECT_EQ(chosen({.precision = Precision::fp32}), "efficient");
  EXPECT_EQ(chosen({.precision = Precision::fp32, .head_dim = 68}), "efficient");
  EXPECT_EQ(chosen({.precision = Precision::fp32, .head_dim = 66}), "math");
}

TEST(WorkedAttentionChoice, chips_before_ampere_have_efficient_attention_without_bf16) {
  EXPECT_EQ(chosen({.major = 7, .minor = 5}), "math");
  EXPECT_EQ(chosen({.precision = Precision::amp_bf16, .major = 7}), "math");
  EXPECT_EQ(chosen({.precision = Precision::amp_fp16, .major = 7}), "efficient");
  EXPECT_EQ(chosen({.precision = Precision::fp32, .major = 7}), "efficient");
  EXPECT_EQ(chosen({.precision = Precision::amp_fp16, .head_dim = 68, .major = 7}), "math");
}

// SMs of up to 100 KB of shared memory train heads of up to 192, or above 224 without dropout.
TEST(WorkedAttentionChoice, flash_trains_shorter_heads_on_smaller_chips_of_ampere) {
  EXPECT_EQ(chosen({.head_dim = 192, .major = 8, .minor = 6}), "flash");
  EXPECT_EQ(chosen({.head_dim = 200, .major = 8, .minor = 6}), "efficient");
  EXPECT_EQ(chosen({.head_dim = 224, .major = 8, .minor = 9}), "efficient");
  EXPECT_EQ(chosen({.head_dim = 232, .major = 8, .minor = 9}), "flash");
  EXPECT_EQ(chosen({.head_dim = 200, .major = 12}), "efficient");
  EXPECT_EQ(chosen({.head_dim = 256, .major = 8, .minor = 0}), "flash");
  EXPECT_EQ(chosen({.head_dim = 200, .major = 9, .minor = 1, .prefers_cudnn = false}), "flash");
}

struct Called {
  std::int64_t kv_heads = 4, seq_k = 32;
  bool masked = false, causal = false, dropout = false;
  std::int64_t head_dim = 64;
  DType type = DType::bf16;
  int major = 9;
  bool prefers_cudnn = true;
};
std::string_view backend(const Called& called) {
  Attention op{.causal = called.causal, .dropout = called.dropout, .type = called.type, .batch = 2, .heads = 4};
  op.kv_heads = called.kv_heads;
  op.seq_q = 32;
  op.seq_k = called.seq_k;
  op.head_dim = called.head_dim;
  op.bias = called.masked;
  Gpu gpu = testing_support::made_up_chip();
  gpu.compute_major = called.major, gpu.compute_minor = 0;
  gpu.sm.warpgroup_mma = called.major == 9;
  Software software;
  software.prefers_cudnn_attention_on_hopper = called.prefers_cudnn;
  switch (choose_backend(op, gpu, software)) {
    case AttentionBackend::flash: return "flash";
    case AttentionBackend::cudnn: return "cudnn";
    case AttentionBackend::efficient: return "efficient";
    case AttentionBackend::math: return "math";
  }
  return "?";
}

// The backends that torch._fused_sdp_choice named on an H200 with PyTorch 2.11, and on others by its constraints.
TEST(WorkedAttentionChoice, masks_and_grouped_keys_of_a_call) {
  EXPECT_EQ(backend({.masked = true}), "cudnn");
  EXPECT_EQ(backend({.kv_heads = 2, .masked = true}), "cudnn");
  EXPECT_EQ(backend({.kv_heads = 1, .masked = true, .head_dim = 224}), "cudnn");
  EXPECT_EQ(backend({.masked = true, .dropout = true}), "cudnn");
  EXPECT_EQ(backend({.seq_k = 300, .masked = true, .head_dim = 80}), "cudnn");
  EXPECT_EQ(backend({.masked = true, .head_dim = 36}), "math");
  EXPECT_EQ(backend({.head_dim = 36}), "flash");
  EXPECT_EQ(backend({.masked = true, .type = DType::fp32}), "efficient");
  EXPECT_EQ(backend({.kv_heads = 2, .type = DType::fp32}), "math");
  EXPECT_EQ(backend({.seq_k = 1}), "flash") << "cuDNN takes more than one key";
  for (const Called& ampere : {Called{.major = 8}, Called{.prefers_cudnn = false}}) {
    Called called = ampere;
    EXPECT_EQ(backend(called), "flash");
    called.kv_heads = 2;
    EXPECT_EQ(backend(called), "flash");
    called.masked = true;
    EXPECT_EQ(backend(called), "math") << "grouped keys beside a mask";
    called.kv_heads = 4;
    EXPECT_EQ(backend(called), "efficient");
    called.masked = false, called.causal = true, called.seq_k = 48;
    EXPECT_EQ(backend(called), "efficient") << "flash is causal for as many keys as queries";
  }
}

TEST(WorkedAttentionChoice, a_backend_that_is_asked_for_runs_or_is_refused_in_a_sentence) {
  using Request = AttentionRequest;
  EXPECT_EQ(chosen({.request = Request::eager, .fused = false}), "eager");
  EXPECT_EQ(chosen({.request = Request::math}), "math");
  EXPECT_EQ(chosen({.request = Request::cudnn, .major = 8}), "cudnn");
  EXPECT_EQ(chosen({.request = Request::flash}), "flash");
  EXPECT_EQ(chosen({.request = Request::efficient}), "efficient");
  for (const Request request : {Request::cudnn, Request::flash, Request::efficient})
    EXPECT_EQ(chosen({.request = request, .fused = false}), "training.attention: stack has no fused attention");
  EXPECT_EQ(chosen({.request = Request::cudnn, .major = 7, .minor = 5}),
            "training.attention: cuDNN attention needs compute capability 8.0");
  EXPECT_EQ(chosen({.request = Request::cudnn, .precision = Precision::fp32}),
            "training.attention: cuDNN attention takes fp16 and bf16 only");
  EXPECT_EQ(chosen({.request = Request::cudnn, .head_dim = 68}),
            "training.attention: cuDNN attention takes head dimensions up to 256 in steps of 8 here, not 68");
  EXPECT_EQ(chosen({.request = Request::cudnn, .head_dim = 136, .wgmma = false}),
            "training.attention: cuDNN attention takes head dimensions up to 128 in steps of 8 here, not 136");
  EXPECT_EQ(chosen({.request = Request::flash, .major = 7, .minor = 5}),
            "training.attention: FlashAttention-2 needs compute capability 8.0; chip has 7.5");
  EXPECT_EQ(chosen({.request = Request::flash, .precision = Precision::fp32}),
            "training.attention: FlashAttention-2 takes fp16 and bf16 only");
  EXPECT_EQ(chosen({.request = Request::flash, .head_dim = 264}),
            "training.attention: FlashAttention-2 trains head dimensions up to 256 here, not 264");
  EXPECT_EQ(chosen({.request = Request::flash, .head_dim = 200, .major = 8, .minor = 9}),
            "training.attention: FlashAttention-2 trains head dimensions up to 192 here, not 200");
  EXPECT_EQ(
      chosen({.request = Request::efficient, .major = 7, .minor = 5}),
      "training.attention: memory-efficient attention takes bf16 from compute capability 8.0 on, and chip has 7.5; "
      "take precision amp-fp16 or attention math");
  EXPECT_EQ(chosen({.request = Request::efficient, .head_dim = 68}),
            "training.attention: memory-efficient attention needs head dimensions in steps of 8, not 68");
  EXPECT_EQ(chosen({.request = Request::efficient, .precision = Precision::fp32, .head_dim = 66}),
            "training.attention: memory-efficient attention needs head dimensions in steps of 4, not 66");
}

TEST(WorkedAttentionChoice, packed_sequences_need_flash_and_context_ranks_a_fused_backend) {
  EXPECT_EQ(chosen({.packed = true}), "flash") << "where cuDNN would be taken";
  EXPECT_EQ(chosen({.request = AttentionRequest::math, .packed = true}), "flash");
  EXPECT_EQ(chosen({.precision = Precision::fp32, .packed = true}),
            "training.packed_lengths: FlashAttention-2 takes fp16 and bf16 only");
  EXPECT_EQ(chosen({.context = 2}), "cudnn");
  EXPECT_EQ(chosen({.precision = Precision::fp32, .context = 2}), "efficient");
  EXPECT_EQ(
      chosen({.head_dim = 260, .context = 2}),
      "training.parallel.context: PyTorch's context_parallel takes fused attention, but: memory-efficient attention "
      "needs head dimensions in steps of 8, not 260");
}

TEST(WorkedAttentionChoice, kernels_that_no_library_has_are_named) {
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  const auto notes = [](int major, bool wgmma, bool tma) {
    Gpu gpu = testing_support::made_up_chip();
    gpu.compute_major = major, gpu.compute_minor = 6;
    gpu.sm.warpgroup_mma = wgmma, gpu.sm.tensor_memory_accelerator = tma;
    return assumed_kernels(gpu);
  };
  EXPECT_TRUE(notes(9, true, true).empty());
  EXPECT_TRUE(notes(10, true, true).empty());
  EXPECT_TRUE(notes(8, false, false).empty());
  EXPECT_TRUE(notes(8, false, true).empty());
  EXPECT_TRUE(notes(10, false, false).empty());
  EXPECT_THAT(notes(8, true, true),
              ElementsAre(HasSubstr("no library has wgmma kernels for compute capability 8.6: those of Hopper")));
  EXPECT_THAT(notes(8, true, false), ElementsAre(HasSubstr("wgmma without TMA")));
  EXPECT_THAT(notes(9, true, false),
              ElementsAre(HasSubstr("wgmma without TMA"), HasSubstr("Hopper without wgmma or TMA")));
  EXPECT_THAT(notes(9, false, true), ElementsAre(HasSubstr("Hopper without wgmma or TMA")));
}

}  // namespace
}  // namespace ridgeline::worked_attention_choice
