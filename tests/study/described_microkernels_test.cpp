// The microkernels as workloads: what one point of each curve launches, written out on a chip of a hundred SMs.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/study/microkernels/microkernel.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/host_class.h"

namespace ridgeline {
namespace {

Gpu of_hundred_sms() {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count = 100;
  gpu.sm.l1_and_shared = Bytes{200000.0};
  return gpu;
}

std::string operands(const char* what, const std::vector<Access>& accesses) {
  std::string text;
  for (const Access& a : accesses)
    text += fmt::format(", {} #{} {}", what, a.operand, a.bytes) +
            (a.requested > 0.0 ? fmt::format(" by {}", a.requested) : "");
  return text;
}

/// "name: 3 blocks of 256 threads, 10 registers; …"
std::string launch_words(const KernelLaunch& launch) {
  if (const auto* fixed = std::get_if<FixedWork>(&launch.work)) {
    const char* what = fixed->what == FixedWork::What::memset                  ? "set"
                       : fixed->what == FixedWork::What::memcpy_host_to_device ? "to device"
                                                                               : "to host";
    return fmt::format("{} {} {}", launch.name, what, fixed->bytes);
  }
  const auto& work = std::get<MemoryBoundWork>(launch.work);
  const auto kernel = static_cast<CodeKernel>(work.kernel_class);
  EXPECT_EQ(launch.name, code_constants(kernel).name);
  EXPECT_EQ(work.active_blocks, launch.blocks());
  EXPECT_EQ(launch.grid[1] * launch.grid[2], 1);
  std::string text = fmt::format("{}: {} x {} threads, {} registers, {} passes", launch.name, launch.grid[0],
                                 launch.threads_per_block, launch.registers_per_thread, work.iterations);
  if (launch.shared_bytes_per_block > 0) text += fmt::format(", {} shared", launch.shared_bytes_per_block);
  if (work.elements != MemoryBoundWork{}.elements) text += fmt::format(", {} together", work.elements);
  if (work.reread_bytes > 0.0) text += fmt::format(", {} again", work.reread_bytes);
  if (work.tail_steps != MemoryBoundWork{}.tail_steps) text += fmt::format(", {} on a word", work.tail_steps);
  constexpr const char* kPipes[] = {"no pipe", "fp32", "wgmma", "mma"};
  if (launch.pipe != Pipe::none)
    text += fmt::format(", {} FLOPs by {} in {}", launch.flops, kPipes[static_cast<int>(launch.pipe)],
                        launch.type == DType::fp16   ? "fp16"
                        : launch.type == DType::bf16 ? "bf16"
                        : launch.type == DType::tf32 ? "tf32"
                                                     : "fp32");
  return text + operands("reads", launch.reads) + operands("writes", launch.writes);
}

std::string described(std::string_view curve, std::map<std::string, double> at) {
  static const Gpu gpu = of_hundred_sms();
  ProbePoint point;
  point.at = std::move(at);
  for (const Microkernel& kernel : microkernels()) {
    if (kernel.curve != curve) continue;
    if (!covers(kernel, point, gpu)) return "not described";
    const MicrokernelRun run = kernel.describe(point, gpu);
    std::string text;
    for (const KernelLaunch& launch : run.launches) text += launch_words(launch) + "; ";
    constexpr const char* kShows[] = {"a second", "microseconds", "cycles", "a cycle"};
    constexpr const char* kLaunched[] = {"", ", in a stream", ", alone"};
    return text + fmt::format("touches {}, {} {}{}{}", run.footprint, run.amount, kShows[static_cast<int>(run.shows)],
                              kLaunched[static_cast<int>(run.launched)], run.in_order ? ", in order" : "");
  }
  return "no such curve";
}
/// Curve, condition, what is launched.
struct DescribedPoint {
  std::string_view curve;
  std::map<std::string, double> at;
  std::string_view expected;
};
void expect_described(const std::vector<DescribedPoint>& points) {
  for (const DescribedPoint& point : points) EXPECT_EQ(described(point.curve, point.at), point.expected) << point.curve;
}

TEST(DescribedMicrokernels, EmptyKernelsAndCopies) {
  expect_described({
      {"stream_period", {}, "empty: 1 x 32 threads, 16 registers, 0 passes; touches 0, 0 microseconds, in a stream"},
      {"graph_period", {{"blocks", 7}}, "empty: 7 x 128 threads, 16 registers, 0 passes; touches 0, 0 microseconds"},
      {"memset_period", {{"bytes", 3000}}, "memset set 3000; touches 0, 0 microseconds"},
      {"host_copy",
       {{"pinned", 1}, {"bytes", 5000}, {"to_device", 1}},
       "memcpy to device 5000; touches 0, 5000 a second, alone"},
      {"host_copy",
       {{"pinned", 1}, {"bytes", 5000}, {"to_device", 0}},
       "memcpy to host 5000; touches 0, 5000 a second, alone"},
      {"host_copy", {{"pinned", 0}, {"bytes", 5000}, {"to_device", 1}}, "not described"},
  });
}

// 4 KiB of each array a block of 256 threads with 16 bytes each: ten blocks for 40 KiB.
TEST(DescribedMicrokernels, StreamsThroughTheDram) {
  expect_described({
      {"dram_read",
       {{"bytes", 40960}},
       "stream_read: 10 x 256 threads, 10 registers, 1 passes, reads #0 40960; touches 40960, 40960 a second"},
      {"dram_write",
       {{"bytes", 40960}},
       "stream_write: 10 x 256 threads, 14 registers, 1 passes, writes #0 40960; touches 40960, 40960 a second"},
      {"dram_copy",
       {{"bytes", 40960}},
       "stream_copy: 10 x 256 threads, 14 registers, 1 passes, reads #0 40960, writes #1 40960; touches 81920, 81920 a "
       "second"},
      {"dram_triad",
       {{"bytes", 40960}},
       "stream_triad: 10 x 256 threads, 18 registers, 1 passes, reads #0 40960, reads #1 40960, writes #2 40960; "
       "touches 122880, 122880 a second"},
      {"read_write_mix",  // five arrays of 40 KiB
       {{"bytes", 204800}, {"reads", 3}, {"writes", 2}},
       "stream_triad: 10 x 256 threads, 24 registers, 1 passes, reads #0 40960, reads #1 40960, reads #2 40960, writes "
       "#3 40960, writes #4 40960; touches 204800, 204800 a second"},
  });
}

// A pass of 1024 threads with 16 bytes each is 16 KiB.
TEST(DescribedMicrokernels, SweepsOverWhatIsNear) {
  expect_described({
      // 16 passes a sweep, eight loads at once; each of 30 blocks reads all of it five times.
      {"l2_read",
       {{"bytes", 262144}, {"blocks", 30}, {"sweeps", 5}},
       "l2_sweep: 30 x 1024 threads, 32 registers, 10 passes, reads #0 262144 by 39321600; touches 262144, 39321600 a "
       "second"},
      // A thirtieth of 1 000 000 bytes is two passes and a bit, which is left out; sixteen stores at once.
      {"l2_write",
       {{"bytes", 1000000}, {"blocks", 30}, {"sweeps", 5}},
       "l2_rewrite: 30 x 1024 threads, 32 registers, 0.625 passes, writes #0 983040 by 4915200; touches 983040, "
       "4915200 "
       "a second"},
      {"l2_reread_clean",
       {{"bytes", 163840}},
       "reread: 10 x 256 threads, 24 registers, 1 passes, reads #0 163840; touches 163840, 163840 a second, in order"},
      {"l2_reread_dirty",
       {{"bytes", 163840}},
       "rewrite: 10 x 256 threads, 16 registers, 1 passes, writes #0 163840; reread: 10 x 256 threads, 24 registers, 1 "
       "passes, reads #0 163840; touches 163840, 327680 a second"},
      // 200 sweeps of two passes by each of a hundred SMs.
      {"l1_read",
       {{"bytes", 32768}},
       "l1_sweep: 100 x 1024 threads, 32 registers, 400 passes, 2 together, 655360000 again, reads #0 3276800; touches "
       "3276800, 6553600 a cycle"},
      {"l1_read",  // nine tenths of the L1 is the most that is found again
       {{"bytes", 180000}},
       "l1_sweep: 100 x 1024 threads, 32 registers, 2197.265625 passes, 10.986328125 together, 3600000000 again, reads "
       "#0 18000000; touches 18000000, 36000000 a cycle"},
      {"l1_read", {{"bytes", 180001}}, "not described"},
      {"shared_read",
       {{"bytes", 32768}},
       "shared_sweep: 100 x 1024 threads, 32 registers, 400 passes, 32768 shared; touches 0, 6553600 a cycle"},
  });
}

// One thread, 16 384 lines of 128 bytes one after the other, or half a thousand loads of eight warps.
TEST(DescribedMicrokernels, LatenciesOfOneBlock) {
  expect_described({
      {"global_latency",  // 97 % of the L1
       {{"bytes", 194000}},
       "chase: 1 x 1 threads, 16 registers, 16384 passes, 2097152 again, reads #0 194000; touches 194000, 16384 "
       "cycles"},
      {"global_latency",
       {{"bytes", 194001}},
       "chase: 1 x 1 threads, 16 registers, 16384 passes, reads #0 194001 by 2097152; touches 194001, 16384 cycles"},
      {"global_latency",  // more lines than there are jumps
       {{"bytes", 9000000}},
       "chase: 1 x 1 threads, 16 registers, 16384 passes, reads #0 2097152 by 2097152; touches 9000000, 16384 cycles"},
      {"shared_latency", {}, "shared_chase: 1 x 1 threads, 16 registers, 16384 passes; touches 0, 16384 cycles"},
  });
  // Of 32 banks those that a stride meets: two lanes of one bank take turns, all lanes of one word do not.
  const std::vector<std::pair<int, int>> turns{{0, 1}, {1, 1}, {2, 2}, {3, 1}, {12, 4}, {16, 16}, {32, 32}};
  for (const auto& [stride, count] : turns)
    EXPECT_EQ(
        described("bank_conflicts", {{"stride", stride}}),
        fmt::format("shared_loads: 1 x 256 threads, 16 registers, {} passes; touches 0, 4096 cycles", 512 * count));
}

TEST(DescribedMicrokernels, BlocksThatFillSms) {
  expect_described({
      {"wave_staircase",  // 2 x 4096 x 4 chains x 512 threads x 30 blocks
       {{"blocks", 30}, {"shared_bytes", 5000}},
       "arithmetic: 30 x 512 threads, 20 registers, 4096 passes, 5000 shared, 503316480 FLOPs by fp32 in fp32, writes "
       "#0 120; touches 0, 0 microseconds"},
      {"occupancy_bandwidth",
       {{"warps", 32}, {"loads", 1}, {"bytes", 409600000}},
       "sweep_1: 100 x 1024 threads, 32 registers, 250 passes, reads #0 409600000; touches 409600000, 409600000 a "
       "second"},
      {"occupancy_bandwidth",  // more than a block may have: two of 640 threads
       {{"warps", 40}, {"loads", 2}, {"bytes", 409600000}},
       "sweep_2: 200 x 640 threads, 32 registers, 100 passes, reads #0 409600000; touches 409600000, 409600000 a "
       "second"},
      {"occupancy_bandwidth",
       {{"warps", 16}, {"loads", 3}, {"bytes", 245760000}},
       "sweep_3: 100 x 512 threads, 32 registers, 100 passes, reads #0 245760000; touches 245760000, 245760000 a "
       "second"},
      {"occupancy_bandwidth",
       {{"warps", 16}, {"loads", 4}, {"bytes", 409600000}},
       "sweep_4: 100 x 512 threads, 32 registers, 125 passes, reads #0 409600000; touches 409600000, 409600000 a "
       "second"},
      {"occupancy_bandwidth",  // eight fly as two groups of four
       {{"warps", 16}, {"loads", 8}, {"bytes", 409600000}},
       "sweep_4: 100 x 512 threads, 32 registers, 125 passes, reads #0 409600000; touches 409600000, 409600000 a "
       "second"},
  });
}

// 800 blocks of 256 threads, 64 rounds: on one word, on 20 480 words side by side, on a thousand lines in pairs.
TEST(DescribedMicrokernels, AdditionsInTheL2) {
  expect_described({
      {"atomic_add",
       {{"addresses", 1}, {"operations", 77}},
       "atomic_add: 800 x 256 threads, 16 registers, 64 passes, 32 on a word, writes #0 128; touches 0, 77 a second"},
      {"atomic_add",
       {{"addresses", 20480}, {"operations", 77}},
       "atomic_add: 800 x 256 threads, 16 registers, 64 passes, 10 on a word, writes #0 81920; touches 0, 77 a second"},
      {"atomic_add",
       {{"addresses", 1000}, {"operations", 77}, {"bytes_apart", 128}, {"together", 2}},
       "atomic_add: 800 x 256 threads, 16 registers, 64 passes, 2 on a word, writes #0 128000; touches 0, 77 a second"},
      {"async_copy",  // ten stages of 16 KiB for each SM, three in shared memory
       {{"way", 0}, {"stages", 3}, {"bytes", 16384000}},
       "copy_registers: 100 x 128 threads, 64 registers, 10 passes, 49152 shared, reads #0 16384000; touches 16384000, "
       "16384000 a second"},
      {"async_copy",
       {{"way", 1}, {"stages", 3}, {"bytes", 16384000}},
       "copy_ahead: 100 x 128 threads, 64 registers, 10 passes, 49152 shared, 2 together, reads #0 16384000; touches "
       "16384000, 16384000 a second"},
  });
}

// 2 x 512 x 512 x 512 FLOPs; each block reads 512 rows of its tile of both operands.
TEST(DescribedMicrokernels, ProductsByThreeHands) {
  expect_described({
      {"gemm_naive",
       {{"n", 512}},
       "gemm_naive: 1024 x 256 threads, 32 registers, 512 passes, 268435456 FLOPs by fp32 in fp32, reads #0 1048576 by "
       "33554432, reads #1 1048576 by 33554432, writes #2 1048576; touches 3145728, 268435456 a second"},
      {"gemm_shared",
       {{"n", 512}},
       "gemm_shared: 64 x 256 threads, 64 registers, 32 passes, 8448 shared, 268435456 FLOPs by fp32 in fp32, reads #0 "
       "1048576 by 8388608, reads #1 1048576 by 8388608, writes #2 1048576; touches 3145728, 268435456 a second"},
      {"gemm_tensor",
       {{"n", 512}},
       "gemm_tensor: 16 x 256 threads, 124 registers, 16 passes, 18944 shared, 268435456 FLOPs by mma in fp16, reads "
       "#0 "
       "524288 by 2097152, reads #1 524288 by 2097152, writes #2 1048576; touches 2097152, 268435456 a second"},
  });
}

// Types are told by their bits, bf16 by one more than it has. Eight blocks an SM add and multiply, eight chains a
// thread; of a lasting load two products of 16 x 16 x 16 a warp and step, or a copy of 256 MiB.
TEST(DescribedMicrokernels, PipesAlone) {
  const auto product = [](double bits) { return described("mma_sync_peak", {{"type_bits", bits}, {"flops", 99}}); };
  for (const auto& [bits, type] : std::vector<std::pair<double, std::string>>{{16, "fp16"}, {17, "bf16"}, {19, "tf32"}})
    EXPECT_EQ(product(bits), "mma_sync: 400 x 256 threads, 40 registers, 1024 passes, 99 FLOPs by mma in " + type +
                                 "; touches 0, 99 a second");
  expect_described({
      {"cuda_core_peak",  // 2 x 8 x 256 x 2048 x 800
       {{"type_bits", 32}, {"flops", 99}},
       "multiply_add: 800 x 256 threads, 24 registers, 2048 passes, 6710886400 FLOPs by fp32 in fp32; touches 0, 99 a "
       "second"},
      {"cuda_core_peak",
       {{"type_bits", 16}, {"flops", 99}},
       "multiply_add_halves: 800 x 256 threads, 24 registers, 2048 passes; touches 0, 99 a second"},
      {"wgmma_peak",
       {{"flops", 99}},
       "wgmma: 100 x 256 threads, 168 registers, 2048 passes, 99 FLOPs by wgmma in bf16; touches 0, 99 a second"},
      {"sustained_rate",  // 2 x 8 x 256 x 16384 x 800
       {{"load", 0}},
       "multiply_add: 800 x 256 threads, 24 registers, 16384 passes, 53687091200 FLOPs by fp32 in fp32; touches 0, "
       "53687091200 a second"},
      {"sustained_rate",
       {{"load", 3}},
       "stream_copy: 800 x 256 threads, 24 registers, 81.92 passes, reads #0 268435456, writes #1 268435456; touches "
       "536870912, 536870912 a second"},
  });
  for (const double load : {1.0, 2.0})  // 2 x (2 x 4096) x 16384 x 8 warps x 800
    EXPECT_EQ(described("sustained_rate", {{"load", load}}),
              "mma_sync: 800 x 256 threads, 40 registers, 16384 passes, 1717986918400 FLOPs by mma in fp16; touches 0, "
              "1717986918400 a second");
}

// Each curve's own source; those whose constants were set with both runs in view.
TEST(DescribedMicrokernels, EachNamesItsSource) {
  std::string seen;
  for (const Microkernel& kernel : microkernels()) {
    EXPECT_TRUE(std::filesystem::exists(std::string(RIDGELINE_SOURCE_DIR) + "/hw/probe/" + std::string(kernel.source)));
    if (kernel.every_point_seen) seen += std::string(kernel.curve) + " ";
  }
  EXPECT_EQ(microkernels().size(), 29u);
  EXPECT_EQ(seen, "read_write_mix wave_staircase atomic_add ");
}

/// Takes a microsecond a pass, 50 for what has no passes, and keeps what it was asked.
class PassesEngine final : public TimingEngine {
 public:
  mutable std::vector<KernelLaunch> launches;
  mutable std::vector<double> shares;
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override {
    launches.push_back(launch);
    shares.assign(residency.begin(), residency.end());
    KernelTime result;
    const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
    result.time = microseconds(work == nullptr ? 50.0 : work->iterations);
    return result;
  }
  [[nodiscard]] std::string_view name() const override { return "passes"; }
};

MicrokernelPrediction predicted_point(const Gpu& gpu, const PassesEngine& engine, std::string_view curve,
                                      std::map<std::string, double> at) {
  ProbePoint point;
  point.at = std::move(at);
  for (const Microkernel& kernel : microkernels())
    if (kernel.curve == curve) return predict_microkernel(kernel, point, gpu, engine);
  ADD_FAILURE() << curve;
  return {};
}

// In a graph a kernel starts 0.262 us before the one before it ends, but no sooner than the graph allows; in a stream
// the gap comes between; alone the host's call and the way to the device come before.
TEST(DescribedMicrokernels, PeriodsAreThoseOfTheirLaunches) {
  Gpu gpu = of_hundred_sms();
  gpu.launch.graph_period = microseconds(0.9);
  gpu.launch.gap = microseconds(3.0);
  gpu.launch.start_latency = microseconds(7.0);
  const PassesEngine engine;
  const auto us = [&](std::string_view curve, std::map<std::string, double> at) {
    return in_microseconds(predicted_point(gpu, engine, curve, std::move(at)).time);
  };
  EXPECT_NEAR(us("l2_read", {{"bytes", 262144}, {"blocks", 30}, {"sweeps", 5}}), 10 - 0.262, 1e-9);
  EXPECT_NEAR(us("graph_period", {{"blocks", 7}}), 0.9, 1e-9);
  EXPECT_NEAR(us("dram_read", {{"bytes", 40960}}), 0.9, 1e-9) << "0.738 us is too soon";
  EXPECT_NEAR(us("l2_reread_dirty", {{"bytes", 163840}}), 2 * 0.9, 1e-9);
  EXPECT_NEAR(us("stream_period", {}), 3.0, 1e-9);
  EXPECT_NEAR(us("memset_period", {{"bytes", 3000}}), 50.0, 1e-9) << "it waits for what was before";
  const Host host = load_host("default", host_class_names());
  EXPECT_NEAR(us("host_copy", {{"pinned", 1}, {"bytes", 5000}, {"to_device", 1}}),
              50.0 + 7.0 + in_microseconds(host.launch_call) * host.scale, 1e-9);
}

// A rate is what is counted over the period; cycles are those that twice the loop takes more.
TEST(DescribedMicrokernels, ValuesAreInTheUnitOfTheirCurve) {
  Gpu gpu = of_hundred_sms();
  gpu.clock.sustained = Hertz{1e9};
  const PassesEngine engine;
  const auto value = [&](std::string_view curve, std::map<std::string, double> at) {
    return predicted_point(gpu, engine, curve, std::move(at)).value;
  };
  EXPECT_NEAR(value("l2_read", {{"bytes", 262144}, {"blocks", 30}, {"sweeps", 5}}), 39321600 / 9.738e-6, 1e3);
  EXPECT_NEAR(value("memset_period", {{"bytes", 3000}}), 50.0, 1e-9);
  EXPECT_NEAR(value("shared_latency", {}), 16384 * 1000.0 / 16384, 1e-6) << "a thousand cycles a pass";
  engine.launches.clear();
  EXPECT_NEAR(value("l1_read", {{"bytes", 32768}}), 6553600 / (400 * 1000.0), 1e-6);
  ASSERT_EQ(engine.launches.size(), 3u) << "the period, twice the loop, the loop";
  const auto longest = [&] {
    return *std::max_element(engine.launches.begin(), engine.launches.end(), [](const auto& x, const auto& y) {
      return std::get<MemoryBoundWork>(x.work).iterations < std::get<MemoryBoundWork>(y.work).iterations;
    });
  };
  EXPECT_EQ(std::get<MemoryBoundWork>(engine.launches[0].work).iterations, 400.0);
  EXPECT_EQ(std::get<MemoryBoundWork>(longest().work).iterations, 800.0);
  EXPECT_EQ(std::get<MemoryBoundWork>(longest().work).reread_bytes, 2 * 655360000.0);
  EXPECT_EQ(longest().reads[0].bytes, 3276800.0) << "it touches nothing more";
  engine.launches.clear();
  (void)value("global_latency", {{"bytes", 3000000}});
  EXPECT_EQ(engine.launches[0].reads[0].bytes, 2097152.0);
  EXPECT_EQ(longest().reads[0].bytes, 3000000.0) << "no more than there is";
  EXPECT_EQ(longest().reads[0].requested, 2 * 2097152.0);
  engine.launches.clear();
  (void)value("global_latency", {{"bytes", 9000000}});
  EXPECT_EQ(longest().reads[0].bytes, 2 * 2097152.0);
}

// Each operand finds in the L2 what of the footprint stayed there; of one array that is read again and again, more.
TEST(DescribedMicrokernels, TheL2HoldsWhatItsFootprintLeaves) {
  Gpu gpu = of_hundred_sms();
  const PassesEngine engine;
  const double half = 0.75 * gpu.l2.capacity.value();
  L2Spec in_order = gpu.l2;
  in_order.resident_full /= 0.906;
  in_order.resident_none /= 0.939;
  (void)predicted_point(gpu, engine, "dram_triad", {{"bytes", half / 3}});
  EXPECT_EQ(engine.shares, std::vector<double>(3, L2Residency(gpu.l2).hit_share(half)));
  (void)predicted_point(gpu, engine, "l2_reread_clean", {{"bytes", half}});
  EXPECT_EQ(engine.shares, std::vector<double>(1, L2Residency(in_order).hit_share(half)));
  EXPECT_GT(L2Residency(in_order).hit_share(half), L2Residency(gpu.l2).hit_share(half));
}

}  // namespace
}  // namespace ridgeline
