// What the analytic engine makes of a kernel that has others beside it: choices, forms and another library's time, on
// both sides of each bound; and which row of constants each attention kernel has.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/attention/attention_constants.h"
#include "sim/timing/likely_time.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/workload/op.h"

namespace ridgeline::worked_engine {
namespace {

const Gpu& chip() {
  static const Gpu gpu = [] {
    Gpu made = load_gpu("nvidia-h200-sxm-141gb");
    made.power.limit = Watts{1e6};  // never in the way
    return made;
  }();
  return gpu;
}

class Choice final : public KernelChoice {
 public:
  explicit Choice(double seconds) : seconds_(seconds) {}
  [[nodiscard]] double seconds(const KernelLaunch& /*launch*/, const Gpu& /*gpu*/,
                               std::span<const double> /*residency*/) const override {
    return seconds_;
  }

 private:
  double seconds_;
};

/// 10^9 values of four bytes are added to as many, on the CUDA cores.
KernelLaunch addition(double flops = 0.0) {
  KernelLaunch launch;
  launch.grid = {1000000, 1, 1};
  launch.pipe = Pipe::fp32;
  launch.flops = flops;
  launch.reads = {{0, 4e9}, {1, 4e9}};
  launch.writes = {{2, 4e9}};
  launch.work = MemoryBoundWork{.kernel_class = static_cast<int>(MemoryBoundKernel::add), .elements = 1e9};
  return launch;
}
KernelTime timed(const KernelLaunch& launch) { return AnalyticEngine(chip()).time(launch, {}); }
KernelTime timed_with(double seconds, KernelLaunch launch) {
  launch.choice = std::make_shared<const Choice>(seconds);
  return timed(launch);
}

// A faster choice moves no more than the DRAM does meanwhile, reads and writes by the same share; a slower one what it
// did.
TEST(WorkedEngine, a_choice_takes_its_time_and_moves_what_the_dram_can_meanwhile) {
  const KernelTime own = timed(addition());
  const double moved = own.dram_read_bytes + own.dram_write_bytes, bandwidth = chip().dram.bandwidth.value();
  ASSERT_GT(own.dram_write_bytes, 1e9);
  for (const double share : {0.1, 0.5, 0.99}) {
    const double seconds = share * moved / bandwidth;
    const KernelTime fast = timed_with(seconds, addition());
    EXPECT_NEAR(fast.time.value(), seconds, 1e-12 * seconds);
    EXPECT_NEAR(fast.dram_read_bytes, share * own.dram_read_bytes, 1e-9 * moved);
    EXPECT_NEAR(fast.dram_write_bytes, share * own.dram_write_bytes, 1e-9 * moved);
    EXPECT_NEAR(fast.clocked.value(), own.clocked.value() * seconds / own.time.value(), 1e-12 * seconds);
  }
  const KernelTime slow = timed_with(3.0 * moved / bandwidth, addition());
  EXPECT_EQ(slow.dram_read_bytes, own.dram_read_bytes);
  EXPECT_EQ(slow.dram_write_bytes, own.dram_write_bytes);
}

// No choice is faster than a start, nor than the arithmetic at the highest clock of the fastest pipe.
TEST(WorkedEngine, a_choice_needs_a_start_and_its_arithmetic) {
  EXPECT_DOUBLE_EQ(timed_with(0.0, addition()).time.value(), chip().launch.kernel_fixed.value());
  const double flops = 1e12;
  const double rate = 2.0 * chip().sm.rates.fp32 * chip().sm.count * chip().clock.sustained.value();
  EXPECT_NEAR(timed_with(0.0, addition(flops)).time.value(), flops / rate, 1e-9 * flops / rate);
}

KernelLaunch product(GemmWork::Family family, Pipe pipe) {
  KernelLaunch launch;
  launch.grid = {132, 1, 1};
  launch.threads_per_block = 384;
  launch.registers_per_thread = 168;
  launch.pipe = pipe;
  launch.type = DType::bf16;
  launch.flops = 2.0 * 4096 * 4096 * 4096;
  const double bytes = 2.0 * 4096 * 4096;
  launch.reads = {{0, bytes}, {1, bytes}};
  launch.writes = {{2, bytes}};
  launch.work = GemmWork{.family = family,
                         .type = DType::bf16,
                         .m = 4096,
                         .n = 4096,
                         .k = 4096,
                         .layout = static_cast<int>(Layout::nt),
                         .tile_m = 128,
                         .tile_n = 256,
                         .tile_k = 64,
                         .stages = 4};
  return launch;
}

// Sparse operands double the rate, kernels of mma.sync are held to that of wgmma, which the chip has.
TEST(WorkedEngine, the_arithmetic_of_a_product_is_that_of_the_fastest_tensor_cores) {
  Gpu gpu = chip();
  gpu.sm.rates.sparsity_factor = 2.0;
  const double peak = 2.0 * gpu.sm.rates.tensor_bf16 * gpu.sm.count;
  const auto least = [&](const GemmWork::Family family, Pipe pipe, SparseOperand sparse) {
    KernelLaunch launch = product(family, pipe);
    std::get<GemmWork>(launch.work).sparse = sparse;
    launch.choice = std::make_shared<const Choice>(0.0);
    return AnalyticEngine(gpu).time(launch, {}).time.value();
  };
  const double dense = least(GemmWork::Family::wgmma, Pipe::tensor_wgmma, SparseOperand::none);
  EXPECT_DOUBLE_EQ(least(GemmWork::Family::mma_sync, Pipe::tensor_mma, SparseOperand::none), dense);
  EXPECT_NEAR(least(GemmWork::Family::wgmma, Pipe::tensor_wgmma, SparseOperand::b), 0.5 * dense, 1e-9 * dense);
  EXPECT_LE(dense, product(GemmWork::Family::wgmma, Pipe::tensor_wgmma).flops / (peak * gpu.clock.lowest.value()));
  EXPECT_GE(dense, product(GemmWork::Family::wgmma, Pipe::tensor_wgmma).flops / (peak * gpu.clock.boost.value()));
}

TEST(WorkedEngine, another_librarys_product_takes_its_time_as_often) {
  const KernelLaunch once = product(GemmWork::Family::wgmma, Pipe::tensor_wgmma);
  KernelLaunch twice = once;
  std::get<GemmWork>(twice.work).product_time = 2.5;
  const KernelTime a = timed(once), b = timed(twice);
  EXPECT_NEAR(b.time.value(), 2.5 * a.time.value(), 1e-9 * b.time.value());
  EXPECT_NEAR(b.clocked.value(), 2.5 * a.clocked.value(), 1e-9 * b.clocked.value());
  EXPECT_EQ(b.dram_read_bytes, a.dram_read_bytes);
}

/// Two additions of which one is shown: it takes `own`, the other has `share` of the elements and `around` beside it.
KernelTime with_other(double share, double around, double own_around) {
  KernelLaunch launch = addition(), other = addition();
  for (auto* accesses : {&other.reads, &other.writes})
    for (Access& access : *accesses) access.bytes *= share;
  std::get<MemoryBoundWork>(other.work).elements *= share;
  launch.around = own_around;
  launch.others =
      std::make_shared<const std::vector<OtherForm>>(std::vector<OtherForm>{OtherForm{std::move(other), around}});
  return timed(launch);
}

// Of forms on the CUDA cores the fastest counts, with what runs beside it; the one shown takes the rest, but no less
// than its bytes need.
TEST(WorkedEngine, another_form_that_is_faster_gives_its_time) {
  const double own = timed(addition()).time.value();
  EXPECT_DOUBLE_EQ(with_other(2.0, 0.0, 0.0).time.value(), own) << "a slower one";
  KernelLaunch half = addition();
  for (auto* accesses : {&half.reads, &half.writes})
    for (Access& access : *accesses) access.bytes *= 0.999;
  std::get<MemoryBoundWork>(half.work).elements *= 0.999;
  const double faster = timed(half).time.value();
  ASSERT_LT(faster, own);
  EXPECT_NEAR(with_other(0.999, 0.0, 0.0).time.value(), faster, 1e-12 * own);
  EXPECT_NEAR(with_other(0.999, 1e-6, 3e-6).time.value(), faster + 1e-6 - 3e-6, 1e-12 * own);
  EXPECT_DOUBLE_EQ(with_other(0.999, 1.0, 0.0).time.value(), own);
  const KernelTime bound = with_other(0.1, 0.0, 0.0);
  EXPECT_NEAR(bound.time.value(), (bound.dram_read_bytes + bound.dram_write_bytes) / chip().dram.bandwidth.value(),
              1e-12 * own);
}

// Of ranks in order 0.7 and 0.3 are taken; nothing beyond 1.2 of the first counts.
TEST(WorkedEngine, a_library_takes_the_next_best_now_and_then) {
  EXPECT_TRUE(std::isinf(likely_of({}, true)));
  EXPECT_TRUE(std::isinf(likely_of({}, false)));
  const std::vector<double> two{10.0, 11.0}, far{10.0, 13.0}, one{10.0};
  EXPECT_EQ(likely_of(two, false), 10.0);
  EXPECT_DOUBLE_EQ(likely_of(two, true), 10.3);
  EXPECT_DOUBLE_EQ(likely_of(far, true), 10.6);
  EXPECT_DOUBLE_EQ(likely_of(one, true), 10.6);
  GemmWork work{.family = GemmWork::Family::mma_sync, .type = DType::tf32};
  EXPECT_DOUBLE_EQ(dislike_of_form(work), 1.2);
  work.split_k = 2;
  EXPECT_DOUBLE_EQ(dislike_of_form(work), 1.2 * 1.15);
  work.type = DType::bf16;
  EXPECT_DOUBLE_EQ(dislike_of_form(work), 1.15);
  work.family = GemmWork::Family::wgmma, work.type = DType::tf32, work.split_k = 1;
  EXPECT_DOUBLE_EQ(dislike_of_form(work), 1.0);
  work.family = GemmWork::Family::simt, work.split_k = 2;
  EXPECT_DOUBLE_EQ(dislike_of_form(work), 1.0);
}

// Forms on tensor cores rank by their dislikes and are taken in turns, those on the CUDA cores are taken where faster.
TEST(WorkedEngine, forms_on_tensor_cores_are_taken_in_turns_and_others_where_they_are_fastest) {
  const auto form = [](GemmWork::Family family, int splits, double around) {
    OtherForm other;
    other.launch.work = GemmWork{.family = family, .type = DType::bf16, .split_k = splits};
    other.around = around;
    return other;
  };
  KernelLaunch launch;
  launch.work = GemmWork{.family = GemmWork::Family::wgmma, .type = DType::bf16};
  launch.around = 2.0;
  launch.others = std::make_shared<const std::vector<OtherForm>>(
      std::vector{form(GemmWork::Family::wgmma, 2, 1.0), form(GemmWork::Family::simt, 1, 4.0)});
  // 10 + 2; (8 + 1) x 1.15 = 10.35; 40 + 4: 0.7 x 10.35 + 0.3 x 12, of which 2 run beside
  EXPECT_DOUBLE_EQ(seconds_of_forms(launch, 10.0, std::vector{8.0, 40.0}), 0.7 * 10.35 + 0.3 * 12.0 - 2.0);
  // 5 + 4 on the CUDA cores
  EXPECT_DOUBLE_EQ(seconds_of_forms(launch, 10.0, std::vector{8.0, 5.0}), 9.0 - 2.0);
  // 0.7 x 12 + 0.3 x 14.4
  EXPECT_DOUBLE_EQ(seconds_of_forms(launch, 10.0, std::vector{80.0, 50.0}), 0.7 * 12.0 + 0.3 * 14.4 - 2.0);
  EXPECT_DOUBLE_EQ(of_generations(10.0, 8.0, 0.25), 8.0);
  EXPECT_DOUBLE_EQ(of_generations(8.0, 10.0, 0.25), 8.5);
}

TEST(WorkedEngine, every_attention_kernel_has_a_row_of_its_own) {
  using Part = AttentionWork::Part;
  const auto row = [](AttentionBackend backend, Part part, DType type = DType::bf16, int splits = 1,
                      bool packed = false) {
    AttentionWork work{.part = part, .backend = static_cast<int>(backend), .type = type, .splits = splits};
    if (packed) work.lengths.list = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{5, 3});
    return attention_class_of(work);
  };
  using enum AttentionBackend;
  EXPECT_EQ(row(flash, Part::forward), AttentionClass::flash_forward);
  EXPECT_EQ(row(flash, Part::forward, DType::bf16, 2), AttentionClass::flash_forward_split);
  EXPECT_EQ(row(flash, Part::backward), AttentionClass::flash_backward);
  EXPECT_EQ(row(flash, Part::forward, DType::bf16, 1, true), AttentionClass::flash_forward_packed);
  EXPECT_EQ(row(flash, Part::backward, DType::bf16, 1, true), AttentionClass::flash_backward_packed);
  EXPECT_EQ(row(cudnn, Part::forward), AttentionClass::cudnn_forward);
  EXPECT_EQ(row(cudnn, Part::backward), AttentionClass::cudnn_backward);
  EXPECT_EQ(row(efficient, Part::forward), AttentionClass::efficient_forward_half);
  EXPECT_EQ(row(efficient, Part::backward, DType::fp16), AttentionClass::efficient_backward_half);
  EXPECT_EQ(row(efficient, Part::forward, DType::fp32), AttentionClass::efficient_forward_fp32);
  EXPECT_EQ(row(efficient, Part::backward, DType::fp32), AttentionClass::efficient_backward_fp32);
}

}  // namespace
}  // namespace ridgeline::worked_engine
