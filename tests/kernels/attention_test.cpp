#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/attention/attention_choice.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"
#include "sim/units/user_error.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

Attention attention(AttentionBackend backend, DType type, bool backward = false) {
  Attention op{.backend = backend,
               .backward = backward,
               .type = type,
               .batch = 4,
               .heads = 16,
               .kv_heads = 16,
               .seq_q = 1024,
               .seq_k = 1024,
               .head_dim = 64};
  return op;
}
std::vector<std::string> names(const Attention& op, const Gpu& gpu) {
  std::vector<std::string> result;
  for (const KernelLaunch& launch : lower(op, gpu, Software{}).launches) result.push_back(launch.name);
  return result;
}
std::string refusal(const Attention& op, const char* gpu) {
  try {
    static_cast<void>(lower(op, load_gpu(gpu), Software{}));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(AttentionLowering, launches_what_the_profiler_saw) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  EXPECT_THAT(names(attention(AttentionBackend::cudnn, DType::bf16), gpu), ElementsAre("Memset", HasSubstr("fprop")));
  EXPECT_THAT(names(attention(AttentionBackend::cudnn, DType::bf16, true), gpu),
              ElementsAre("Memset", HasSubstr("dot_do_o"), HasSubstr("bprop"), HasSubstr("convert_dq")));
  EXPECT_THAT(names(attention(AttentionBackend::flash, DType::bf16, true), gpu),
              ElementsAre(HasSubstr("dot_do_o"), HasSubstr("bprop"), HasSubstr("convert_dq")));
  EXPECT_EQ(names(attention(AttentionBackend::efficient, DType::fp32), gpu).size(), 1u);
  EXPECT_EQ(names(attention(AttentionBackend::efficient, DType::fp32, true), gpu).size(), 5u);
  EXPECT_EQ(names(attention(AttentionBackend::efficient, DType::bf16, true), gpu).size(), 2u);
}

// Rows of dO and O are multiplied and summed: by the kernel itself in 16 bits, by eager kernels in front of it in 32.
TEST(AttentionLowering, every_backward_pass_reads_the_result_of_the_forward_pass_once) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  for (const AttentionBackend backend : {AttentionBackend::flash, AttentionBackend::efficient, AttentionBackend::cudnn})
    for (const DType type : {DType::bf16, DType::fp32}) {
      if (type == DType::fp32 && backend != AttentionBackend::efficient) continue;
      double bytes = 0.0;
      for (const KernelLaunch& launch : lower(attention(backend, type, true), gpu, Software{}).launches)
        for (const Access& access : launch.reads) bytes += access.operand == 4 ? access.bytes : 0.0;
      EXPECT_DOUBLE_EQ(bytes, 4.0 * 16 * 1024 * 64 * static_cast<double>(bytes_of(type)));
    }
}

TEST(AttentionLowering, results_that_stay_in_the_l2_do_not_count_as_written_to_the_dram) {
  Gpu gpu = load_gpu("nvidia-h100-pcie-80gb");
  gpu.dram.bandwidth = gpu.dram.bandwidth * 0.1;
  const AnalyticEngine engine(gpu);
  for (const AttentionBackend backend : {AttentionBackend::flash, AttentionBackend::efficient, AttentionBackend::cudnn})
    for (const bool backward : {false, true})
      for (const KernelLaunch& launch : lower(attention(backend, DType::bf16, backward), gpu, Software{}).launches) {
        if (!std::holds_alternative<AttentionWork>(launch.work)) continue;
        std::vector<double> residency(launch.reads.size() + launch.writes.size(), 0.0);
        const KernelTime cold = engine.time(launch, residency);
        EXPECT_DOUBLE_EQ(cold.dram_write_bytes, launch.written_bytes()) << launch.name;
        std::fill(residency.begin() + static_cast<std::ptrdiff_t>(launch.reads.size()), residency.end(), 1.0);
        const KernelTime kept = engine.time(launch, residency);
        EXPECT_EQ(kept.dram_write_bytes, 0.0) << launch.name;
        for (const KernelTime& time : {cold, kept})
          EXPECT_LE(time.dram_read_bytes + time.dram_write_bytes,
                    time.time.value() * gpu.dram.bandwidth.value() * (1.0 + 1e-9))
              << launch.name;
      }
}

TEST(AttentionLowering, dropout_reads_its_random_state_first) {
  Attention op = attention(AttentionBackend::cudnn, DType::fp16);
  op.dropout = true;
  EXPECT_THAT(names(op, load_gpu("nvidia-h200-sxm-141gb")),
              ::testing::ElementsAre("philox_unpack", "Memset", ::testing::HasSubstr("fprop")));
}

TEST(AttentionLowering, few_queries_split_the_keys_and_combine) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Attention op = attention(AttentionBackend::flash, DType::bf16);
  op.batch = 1;
  op.seq_q = 64;
  op.seq_k = 8192;
  EXPECT_EQ(names(op, gpu).size(), 2u);
  op.batch = 64;
  EXPECT_EQ(names(op, gpu).size(), 1u);
}

TEST(AttentionLowering, shared_keys_sum_their_gradients) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Attention op = attention(AttentionBackend::flash, DType::bf16, true);
  const std::size_t own = names(op, gpu).size();
  op.kv_heads = 4;
  EXPECT_GT(names(op, gpu).size(), own);
  op.kv_heads = 5;
  EXPECT_THAT(refusal(op, "nvidia-h200-sxm-141gb"), ::testing::HasSubstr("16 query heads cannot share 5"));
}

TEST(AttentionLowering, refuses_in_a_sentence_what_a_gpu_cannot_run) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(attention(AttentionBackend::flash, DType::fp16), "nvidia-t4"),
              HasSubstr("compute capability 8.0"));
  EXPECT_THAT(refusal(attention(AttentionBackend::cudnn, DType::fp16), "nvidia-v100-sxm2-16gb"),
              HasSubstr("compute capability 8.0"));
  EXPECT_THAT(refusal(attention(AttentionBackend::efficient, DType::bf16), "nvidia-t4"), HasSubstr("bf16"));
  EXPECT_THAT(refusal(attention(AttentionBackend::flash, DType::fp32), "nvidia-h200-sxm-141gb"),
              HasSubstr("efficient"));
  Attention wide = attention(AttentionBackend::flash, DType::fp16);
  wide.head_dim = 512;
  EXPECT_THAT(refusal(wide, "nvidia-h200-sxm-141gb"), HasSubstr("512"));
  Attention empty = attention(AttentionBackend::efficient, DType::fp32);
  empty.seq_k = 0;
  EXPECT_NE(refusal(empty, "nvidia-h200-sxm-141gb"), "");
}

TEST(AttentionChoice, takes_plain_products_for_bf16_where_no_fused_kernel_has_it) {
  const Software software = load_software("pytorch-2.11");
  ModelDescription model;
  model.heads = 12;
  model.hidden = 768;
  TrainingDescription training;
  training.precision = Precision::bf16;
  training.attention = AttentionRequest::sdpa;
  EXPECT_EQ(choose_attention(training, model, load_gpu("nvidia-v100-sxm2-16gb"), software), AttentionChoice::math);
  EXPECT_EQ(choose_attention(training, model, load_gpu("nvidia-a100-sxm4-40gb"), software), AttentionChoice::flash);
  training.attention = AttentionRequest::efficient;
  EXPECT_THROW(static_cast<void>(choose_attention(training, model, load_gpu("nvidia-t4"), software)), UserError);
  training.precision = Precision::amp_fp16;
  EXPECT_EQ(choose_attention(training, model, load_gpu("nvidia-t4"), software), AttentionChoice::efficient);
}

TEST(AttentionLowering, long_heads_take_the_tiles_of_their_own_kernels) {
  const Gpu h200 = load_gpu("nvidia-h200-sxm-141gb"), a100 = load_gpu("nvidia-a100-sxm4-40gb");
  const auto tiles = [](Attention op, const Gpu& gpu) {
    op.head_dim = 256;
    for (const KernelLaunch& launch : lower(op, gpu, Software{}).launches)
      if (const auto* work = std::get_if<AttentionWork>(&launch.work)) return std::pair{work->tile_q, work->tile_k};
    return std::pair{0, 0};
  };
  EXPECT_EQ(tiles(attention(AttentionBackend::flash, DType::bf16), h200), (std::pair{64, 64}));
  EXPECT_EQ(tiles(attention(AttentionBackend::flash, DType::bf16), a100), (std::pair{128, 64}));
  EXPECT_EQ(tiles(attention(AttentionBackend::cudnn, DType::bf16, true), h200), (std::pair{64, 64}));
  EXPECT_EQ(tiles(attention(AttentionBackend::efficient, DType::fp32), h200), (std::pair{32, 128}));
  // 64 heads: at most 200 blocks, so that each walks over six tiles of 64 keys.
  EXPECT_EQ(tiles(attention(AttentionBackend::efficient, DType::bf16, true), h200), (std::pair{128, 6 * 64}));
}

TEST(AttentionLaw, every_backend_times_on_every_gpu_it_exists_for) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    const auto engine = make_timing_engine("analytic", gpu);
    for (const AttentionBackend backend :
         {AttentionBackend::flash, AttentionBackend::cudnn, AttentionBackend::efficient})
      for (const DType type : {DType::fp16, DType::bf16, DType::fp32})
        for (const bool backward : {false, true})
          for (const std::int64_t head_dim : {32, 64, 80, 128}) {
            Attention op = attention(backend, type, backward);
            op.head_dim = head_dim;
            if (!refusal(op, name.c_str()).empty()) continue;
            const double whole = testing::predict_op(op, 0, gpu, *engine).time.value();
            op.causal = true;
            const double half = testing::predict_op(op, 0, gpu, *engine).time.value();
            const double peak = 2.0 * std::max({gpu.sm.rates.tensor_fp16, gpu.sm.rates.fp32}) * gpu.sm.count *
                                std::max(gpu.clock.boost.value(), gpu.clock.sustained.value());
            EXPECT_LT(half, whole) << name;
            EXPECT_GT(whole, (backward ? 10.0 : 4.0) * 64.0 * 1024.0 * 1024.0 * static_cast<double>(head_dim) / peak)
                << name;
          }
  }
}

// Each query head writes its own gradient of the keys and values that four of them share; their sum is a kernel's work.
TEST(AttentionLowering, gradients_of_shared_keys_are_as_large_as_those_of_all_query_heads) {
  for (const AttentionBackend backend : {AttentionBackend::flash, AttentionBackend::cudnn}) {
    Attention op = attention(backend, DType::bf16, true);
    op.kv_heads = 4;
    const double own = 2.0 * 4 * 4 * 1024 * 64, all = 2.0 * 4 * 16 * 1024 * 64;
    const std::vector<KernelLaunch> launches = lower(op, load_gpu("nvidia-h200-sxm-141gb"), Software{}).launches;
    std::int64_t written_in_whole = 0, read_once = 0;
    for (const KernelLaunch& launch : launches) {
      if (!std::holds_alternative<AttentionWork>(launch.work)) continue;
      for (const Access& access : launch.writes) written_in_whole += access.bytes == all;
      for (const Access& access : launch.reads) read_once += access.bytes == own;
    }
    EXPECT_GE(written_in_whole, 2) << "of keys and of values";
    EXPECT_GE(read_once, 2) << "keys and values";
  }
}

}  // namespace
}  // namespace ridgeline
