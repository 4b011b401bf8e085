#include "sim/timing/convolution/convolution_law.h"

#include <algorithm>
#include <cmath>

#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/timing/math_rate.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"
#include "sim/timing/products/gemm_constants.h"

namespace ridgeline {
namespace {

double pieces(double length, double piece) { return std::ceil(length / piece - 1e-9); }

/// Pipes that are nearly equally busy get in each other's way.
double rounded_maximum(double a, double b, double c = 0.0) {
  const double x = a * a, y = b * b, z = c * c;
  return std::sqrt(std::sqrt(x * x + y * y + z * z));
}

/// A pixel of no more bytes is one load of a thread, which straddles nothing.
constexpr std::int64_t kOneLoad = 16;

/// How badly pixels of this many bytes straddle `line` bytes (as rows of a product's operands, docs/model/products.md).
double pixel_straddling(double channels, double element, std::int64_t line) {
  const auto bytes = static_cast<std::int64_t>(channels * element);
  if (bytes <= kOneLoad) return 0.0;
  const std::int64_t unit = bytes & -bytes;
  const double missing = 1.0 - static_cast<double>(std::min(unit, line)) / static_cast<double>(line);
  return missing * missing * missing;
}
constexpr std::int64_t kPixelLine = 128, kPixelStore = 64;

double convolution_rate(const GemmWork& work, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  if (work.family == GemmWork::Family::simt) return std::min(rates.fp32, 32.0 * gpu.sm.schedulers * gpu.sm.issue_rate);
  const double rate = work.type == DType::bf16   ? rates.tensor_bf16
                      : work.type == DType::fp16 ? rates.tensor_fp16
                      : work.type == DType::tf32 ? rates.tensor_tf32
                                                 : rates.fp32;
  return work.family == GemmWork::Family::mma_sync ? mma_sync_rate(rate, work.type, gpu) : rate;
}

struct Tiling {
  double tiles = 1, steps = 1;
  double a_channels = 1, b_channels = 1, out_channels = 1;  ///< contiguous values of an operand's pixel
};

Tiling tiling_of(const GemmWork& work) {
  const Gathering& g = work.gathering;
  const double taps = static_cast<double>(g.taps), phases = static_cast<double>(g.phases);
  const double batch = static_cast<double>(work.batch), m = static_cast<double>(work.m),
               n = static_cast<double>(work.n), k = static_cast<double>(work.k);
  Tiling t;
  switch (g.role) {
    case Gathering::Role::forward:
    case Gathering::Role::input_gradient: {
      const auto channels = static_cast<double>(g.channels);
      t.tiles = phases * pieces(m / phases, work.tile_m) * pieces(n, work.tile_n);
      t.steps = g.dense_taps ? pieces(k, work.tile_k) : taps / phases * pieces(channels, work.tile_k);
      t.a_channels = channels;
      t.b_channels = g.role == Gathering::Role::forward ? channels : n;
      t.out_channels = n;
      break;
    }
    case Gathering::Role::weight_gradient: {
      const double rows = pieces(m, work.tile_m), apart = taps * pieces(n / taps, work.tile_n);
      // Only the persistent kernels give each tap its own tiles.
      t.tiles = rows * (work.family == GemmWork::Family::wgmma ? apart : std::min(apart, pieces(n, work.tile_n)));
      t.steps = pieces(k, work.tile_k);
      t.a_channels = m;
      t.b_channels = t.out_channels = n / taps;
      break;
    }
    case Gathering::Role::scattered_images:
    case Gathering::Role::scattered_filters:
    case Gathering::Role::none:
      t.tiles = batch * pieces(m, work.tile_m) * pieces(n, work.tile_n);
      t.steps = pieces(k, work.tile_k);
      t.a_channels = t.b_channels = t.out_channels = n;
      break;
  }
  return t;
}

/// Of what tiles ask for, what reaches the L2: requests of neighbouring SMs for one line are merged, clusters of blocks
/// share panels (counters of products on an H200).
constexpr double kMergedClusters = 0.58, kMerged = 0.9;
/// Stages of a main loop whose loads are on their way together.
constexpr double kStagesAhead = 2.0;

/// Panels of tiles, each as deep as the product.
PanelFloor panel_floor_of(const GemmWork& work, const Gpu& gpu, const ConvolutionTime& t, double element,
                          double resident, double cold, double hit, double written) {
  const double tm = work.tile_m, tn = work.tile_n, depth = t.steps * work.tile_k * element;
  const double blocks = t.tiles * work.split_k, at_work = std::min(blocks, gpu.sm.count * resident);
  const double merged = work.family == GemmWork::Family::wgmma ? kMergedClusters : kMerged;
  PanelTraffic traffic;
  traffic.cold = cold;
  traffic.first = cold + hit;
  traffic.asked = std::max(traffic.first, merged * blocks * depth * (tm + tn));
  // Tiles at work lie in a square, whose panels come together; those of the next square when all have passed.
  const double square = std::min(traffic.first, 2.0 * std::sqrt(at_work * tm * tn) * depth);
  traffic.footprint = std::min(traffic.first, (tm + tn) * depth);
  traffic.later = std::max(0.0, square * blocks / at_work - traffic.first);
  traffic.between = traffic.first;
  traffic.written = traffic.written_out = written;
  traffic.waits = blocks / at_work * t.steps / kStagesAhead;
  const double shared = gpu.l2.shared_read_bandwidth.value();
  return panel_floor(traffic, gpu, std::max(shared, gpu.l2.read_bandwidth.value()));
}

}  // namespace

ConvolutionTime convolution_law(const GemmWork& work, const Gpu& gpu, double cold_bytes, double hit_bytes,
                                double written_bytes) {
  return convolution_law(work, gpu, cold_bytes, hit_bytes, written_bytes,
                         convolution_constants(convolution_class_of(work)));
}

ConvolutionTime convolution_law(const GemmWork& work, const Gpu& gpu, double cold_bytes, double hit_bytes,
                                double written_bytes, const ConvolutionConstants& c) {
  const Tiling t = tiling_of(work);
  const bool persistent = work.family == GemmWork::Family::wgmma, cuda_cores = work.family == GemmWork::Family::simt;
  const double tm = work.tile_m, tn = work.tile_n, tk = work.tile_k, sms = gpu.sm.count, splits = work.split_k;
  const bool to_images = work.gathering.role == Gathering::Role::scattered_images,
             scattered = to_images || work.gathering.role == Gathering::Role::scattered_filters;
  const double element = cuda_cores ? 4.0 : static_cast<double>(bytes_of(work.type));

  ConvolutionTime result;
  result.tiles = t.tiles;
  result.steps = pieces(t.steps, splits);
  const double math = tm * tn * tk / convolution_rate(work, gpu);
  result.bound = math / c.utilization;
  const Pipe pipe = cuda_cores ? Pipe::fp32 : Pipe::tensor_mma;
  const double full_clock = kernel_clock(gpu, pipe, 0.0).value();
  const double rounds = pieces(t.tiles * splits, sms);
  // What is gathered is stored to shared memory at its bandwidth; a share of it comes from the L2, whose bandwidth the
  // SMs at work divide: as many as the rounds need, at least.
  const double at_work = t.tiles * splits / rounds;
  const double l2_cycles = at_work * full_clock / std::max(gpu.l2.shared_read_bandwidth, gpu.l2.read_bandwidth).value();
  const double share = work.gathering.role == Gathering::Role::weight_gradient ? c.weight_share : c.l2_share;
  const double gathered = tk * element *
                          (tm * (1.0 + c.misaligned_load * pixel_straddling(t.a_channels, element, kPixelLine)) +
                           tn * (1.0 + c.misaligned_load * pixel_straddling(t.b_channels, element, kPixelLine)));
  const double stored_to_shared =
      gathered / gpu.sm.shared_bandwidth.value() + c.row_cycles * work.gathering.scattered_rows;
  const double from_l2 = gathered * share * l2_cycles;
  result.loads = stored_to_shared + from_l2;
  // A k-step waits for loads that stages before it asked for.
  result.latency = std::max(
      0.0, c.latency_cycles + (load_latency(gpu, 0.0, full_clock) - reference_load_latency(0.0)) / kStagesAhead);
  const double stored = splits > 1.0 ? 4.0 : element;
  const double stored_tile =
      (c.epilogue_cycles + tm * tn * stored / c.epilogue_bytes *
                               (1.0 + c.misaligned_store * pixel_straddling(t.out_channels, element, kPixelStore))) *
      (scattered ? c.scatter : 1.0);
  // Additions to images pass the L2 one by one: those of the part of a tile that has results.
  const double additions =
      to_images ? static_cast<double>(work.batch) * static_cast<double>(work.m) * static_cast<double>(work.n) / t.tiles
                : 0.0;
  const double added = c.atomics * gpu.l2.atomic_rate;
  const double epilogue = added > 0.0 ? std::max(stored_tile, additions * at_work * full_clock / added) : stored_tile;
  const double resident = persistent ? 1.0 : std::min(static_cast<double>(std::max(1, work.blocks_per_sm)), rounds);
  // The L2 is a bound of its own to blocks that share an SM: what fewer SMs ask of it, more do at once.
  const auto cycles_with = [&](double l2_cycles_of_step) {
    const double together = result.bound + stored_to_shared;
    const double step =
        (persistent   ? rounded_maximum(result.bound, result.latency, stored_to_shared + l2_cycles_of_step)
         : cuda_cores ? rounded_maximum(resident * (together + l2_cycles_of_step), result.latency + together)
                      : rounded_maximum(resident * together, result.latency + together, resident * l2_cycles_of_step)) *
        (work.gathering.indexed ? c.indexed : 1.0);
    return rounds / resident * result.steps * step + rounds * epilogue;
  };
  const double cycles = cycles_with(from_l2);
  result.math = std::clamp(t.tiles * t.steps * math / sms / cycles, 0.0, 1.0);
  const double clock = kernel_clock(gpu, pipe, result.math).value(), dram = gpu.dram.bandwidth.value();
  result.compute = cycles / clock;
  result.clocked = cycles_with(0.0) / clock;  // the L2 has a clock of its own
  result.memory = (cold_bytes + written_bytes * (to_images ? 2.0 : 1.0)) / (c.dram_share * dram) +
                  hit_bytes / achieved_bandwidth(gpu).l2_read;
  result.fixed = c.fixed_cycles / full_clock;
  if (splits > 1.0) result.fixed += c.split_cycles / clock + 8.0 * splits * t.tiles * tm * tn / (c.split_share * dram);
  result.total = result.fixed + rounded_maximum(result.compute, result.memory);
  result.floor = panel_floor_of(work, gpu, result, element, resident, cold_bytes, hit_bytes, written_bytes);
  result.total = std::max(result.total, result.floor.most());
  return result;
}

KernelTime convolution_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency) {
  return convolution_time(launch, work, gpu, residency, convolution_constants(convolution_class_of(work)));
}

KernelTime convolution_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency,
                            const ConvolutionConstants& constants) {
  double hit = 0.0, read = 0.0;
  for (std::size_t i = 0; i < launch.reads.size(); ++i) {
    read += launch.reads[i].bytes;
    hit += launch.reads[i].bytes * (i < residency.size() ? residency[i] : 0.0);
  }
  const ConvolutionTime part = convolution_law(work, gpu, read - hit, hit, launch.written_bytes(), constants);
  KernelTime result;
  result.time = Seconds{part.total};
  result.clocked = Seconds{part.clocked};
  result.dram_read_bytes = read - hit + part.floor.refetched;
  result.dram_write_bytes = launch.written_bytes();
  const double element = static_cast<double>(bytes_of(work.type));
  result.l2_bytes = part.tiles * part.steps * work.split_k * work.tile_k * element * (work.tile_m + work.tile_n);
  result.l2_hit_rate = std::clamp(1.0 - result.dram_read_bytes / result.l2_bytes, 0.0, 1.0);
  const double resident = std::max(1, work.blocks_per_sm);
  result.waves = part.tiles * work.split_k / (gpu.sm.count * resident);
  result.occupancy = std::min(1.0, resident * launch.threads_per_block / 32.0 / gpu.sm.max_warps);
  result.math_utilization = part.math;
  if (part.floor.l2 >= part.total) result.limiter = Limiter::l2;
  else if (part.floor.dram >= part.total) result.limiter = Limiter::dram;
  else if (part.floor.latency >= part.total) result.limiter = Limiter::latency;
  else if (part.fixed > part.compute && part.fixed > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.latency > part.bound && part.latency > part.loads) result.limiter = Limiter::latency;
  else if (part.loads > part.bound) result.limiter = Limiter::l2;
  else result.limiter = Limiter::compute;
  limit_power(result, launch, gpu);
  return result;
}

}  // namespace ridgeline
