// A prediction whose every number is another one, so that whoever swaps two of them or takes another unit is seen.
//
// The step of 200 ms is the sum of its parts, as a predicted one is: 180 ms of kernels and 20 ms of waiting; 90 ms of
// math and 70 ms of memory, 30 ms of both at once, and 70 ms of neither.
#pragma once

#include <string>

#include "sim/answer/prediction.h"
#include "sim/units/quantity.h"

namespace ridgeline {

inline constexpr std::int64_t kMadeGiB = std::int64_t{1} << 30, kMadeMiB = std::int64_t{1} << 20;

inline std::int64_t made_gib(double gib) { return static_cast<std::int64_t>(gib * kGiB); }
inline Seconds made_ms(double ms) { return Seconds{ms * 1e-3}; }

inline StepPrediction made_step() {
  StepPrediction step;
  step.time = made_ms(200), step.low = made_ms(190), step.high = made_ms(215);
  step.host_time = made_ms(120), step.gpu_busy = made_ms(180);
  step.host.name = "a host", step.host.scale = 1.5, step.host.exposed = made_ms(12), step.host.tipping = 2.4;
  step.kernel_count = 1000;
  step.samples_per_s = 160, step.tokens_per_s = 81920;
  step.mfu = 0.43, step.sm_utilization = 0.77, step.kernel_active_fraction = 0.91;
  step.utilization = {.kernel_active = 0.9, .sm = 0.8, .tensor = 0.55, .dram = 0.35};
  step.latency = {.math = made_ms(90),
                  .memory = made_ms(70),
                  .overlapped = made_ms(30),
                  .in_kernels = made_ms(50),
                  .gaps = made_ms(8),
                  .communication = {},
                  .host_exposed = made_ms(12),
                  .host_hidden = made_ms(108)};
  step.power = Watts{350}, step.clock = Hertz{1.41e9}, step.held = made_ms(5);
  step.energy = {Joules{70}, Joules{60}, Joules{80}};
  return step;
}

inline MemoryPrediction made_memory() {
  MemoryPrediction memory;
  memory.peak_allocated = made_gib(10), memory.peak_reserved = made_gib(11), memory.context = made_gib(1.5);
  memory.device_used = made_gib(12.5), memory.capacity = made_gib(40);
  // By Category: weights, gradients, optimizer's state, activations, temporaries, workspaces, inputs.
  memory.at_peak = {made_gib(2),   made_gib(1.5),  made_gib(3), made_gib(2.75),
                    made_gib(0.5), made_gib(0.25), 4 * kMadeMiB};
  memory.cached_unused = made_gib(1);
  memory.peak_op = "addmm", memory.peak_phase = Phase::backward, memory.peak_layer = 3;
  memory.needed = made_gib(12.75), memory.needed_low = made_gib(12), memory.needed_high = made_gib(13);
  return memory;
}

inline KernelGroup made_products() {
  KernelGroup group;
  group.name = "gemm_128x64", group.shape = "4096x1024x1024", group.op = "aten::addmm";
  group.kernel_class = KernelClass::matrix_products;
  group.count = 96, group.time = made_ms(90), group.limiter = Limiter::compute, group.on_tensor_cores = true;
  group.flops = 5e12;
  group.read_bytes = 7e9, group.written_bytes = 3e9, group.dram_bytes = 6e9;
  group.l2_bytes = 8e9, group.l2_hit_bytes = 2e9, group.occupied_s = 0.045;
  return group;
}

inline KernelGroup made_norms() {
  KernelGroup group;
  group.name = "layer_norm", group.shape = "8x512x1024", group.op = "aten::native_layer_norm";
  group.kernel_class = KernelClass::normalization;
  group.count = 48, group.time = made_ms(16), group.limiter = Limiter::shared_memory;
  group.flops = 1e9;
  group.read_bytes = 2e9, group.written_bytes = 1e9, group.dram_bytes = 2.5e9;
  group.l2_bytes = 4e9, group.l2_hit_bytes = 3e9, group.occupied_s = 0.004;
  return group;
}

inline Prediction made_prediction() {
  Prediction p;
  p.scenario = "a made step", p.hardware = "nvidia-made", p.engine = "analytic";
  p.step = made_step();
  p.memory = made_memory();
  // By TimeClass: contractions, normalization, element-wise, optimizer, copies, communication.
  p.time_by_class = {made_ms(110), made_ms(0.5), made_ms(34.5), made_ms(20), made_ms(15), Seconds{}};
  // By Phase: setup, forward, backward, clipping, optimizer, other.
  p.time_by_phase = {Seconds{}, made_ms(55), made_ms(100), made_ms(4.5), made_ms(19.9), made_ms(0.6)};
  p.idle = made_ms(20);
  // By Limiter: compute, DRAM, L2, shared memory, latency, launch, power, link.
  p.limited_by = {made_ms(80), made_ms(60), made_ms(14), made_ms(3), made_ms(18), made_ms(22), made_ms(2), made_ms(1)};
  p.kernels = {made_products(), made_norms()};
  return p;
}

/// Of two stages on four GPUs.
inline ParallelPrediction made_parallel() {
  ParallelPrediction p;
  p.gpus = 4;
  p.exposed = made_ms(6), p.hidden = made_ms(34), p.bubble = made_ms(9);
  p.efficiency = 0.83;
  p.communication = {
      {CollectiveKind::all_reduce, GroupKind::data, 145, 6'230'000'000, made_ms(36), made_ms(6)},
      {CollectiveKind::send_recv, GroupKind::pipeline, 8, 42'000'000, made_ms(4), Seconds{}},
  };
  RankClass first, last;
  first.name = "stage 0", first.ranks = 2, first.step = made_ms(195), first.memory = made_memory();
  first.communicator_bytes = made_gib(0.75), first.busy = made_ms(170), first.bubble = made_ms(11);
  last.name = "stage 1", last.ranks = 1, last.step = made_ms(200), last.memory = made_memory();
  last.memory.peak_allocated = made_gib(20), last.memory.peak_reserved = made_gib(21);
  last.memory.device_used = made_gib(39), last.memory.fits = false;
  last.communicator_bytes = made_gib(0.5), last.busy = made_ms(180), last.bubble = made_ms(7);
  p.ranks = {first, last};
  p.limit = "the last all_reduce keeps the GPU waiting";
  return p;
}

}  // namespace ridgeline
