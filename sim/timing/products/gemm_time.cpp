// One launch of a product: its law and the board's power limit.
#include <algorithm>
#include <limits>

#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {

double GemmLaw::seconds(const GemmTile& tile, int splits, double give_up, double count) const {
  const Compute work = compute(tile, splits, count);
  const double helpers = helper_seconds(tile, splits, count);
  // Compute alone is a bound from below.
  if (helpers + share_of_few(blocks_of(tile, work.tiles)) * (fixed_ + work.cycles / clock_of(work)) >= give_up)
    return std::numeric_limits<double>::infinity();
  const GemmTime product = time_of(work, tile, splits);
  if (product.total + helpers >= give_up) return std::numeric_limits<double>::infinity();  // the board only adds to it
  const Pipe pipe = cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  return power_limited(gpu_, pipe, type_, flops_, product.dram_read + product.dram_write, Seconds{product.total},
                       Seconds{product.clocked})
             .time.value() +
         helpers;
}

GemmMisses gemm_misses(const KernelLaunch& launch, std::span<const double> residency) {
  const auto missing = [&](const std::vector<Access>& accesses, std::size_t place) {
    double wanted = 0.0, missed = 0.0;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      wanted += accesses[i].bytes;
      missed += accesses[i].bytes * (1.0 - (place + i < residency.size() ? residency[place + i] : 0.0));
    }
    return wanted > 0.0 ? missed / wanted : 1.0;
  };
  return {missing(launch.reads, 0), missing(launch.writes, launch.reads.size())};
}

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency) {
  return gemm_time(launch, work, gpu, residency, gemm_constants(gemm_class_of(work, gpu)));
}

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency,
                     const GemmConstants& constants) {
  KernelTime result;
  if (work.reduces_splits) {
    const GemmLaw law(work, gpu, constants);
    result.time = Seconds{std::max(law.split_reduction(tile_of(work), work.split_k),
                                   launch.written_bytes() / gpu.dram.bandwidth.value())};
    result.limiter =
        launch.read_bytes() / gpu.dram.bandwidth.value() > 0.5 * result.time.value() ? Limiter::l2 : Limiter::latency;
    result.l2_bytes = launch.read_bytes() + launch.written_bytes();
    result.l2_hit_rate = 1.0;
    result.dram_write_bytes = launch.written_bytes();
    return result;
  }
  const GemmMisses missed = gemm_misses(launch, residency);
  const GemmLaw law(work, gpu, constants, missed.read, missed.write);
  const GemmTile tile = tile_of(work);
  const GemmTime part = law.time(tile, work.split_k);
  result.time = Seconds{part.total};
  result.clocked = Seconds{part.clocked};
  result.dram_read_bytes = part.dram_read;
  result.dram_write_bytes = part.dram_write;
  result.l2_bytes = part.l2_bytes;
  result.l2_hit_rate = part.l2_bytes > 0.0 ? std::clamp(1.0 - part.dram_read / part.l2_bytes, 0.0, 1.0) : 0.0;
  const double resident = gpu.sm.count * std::max(1, work.blocks_per_sm);
  result.waves = launch.blocks() / resident;
  result.occupancy =
      std::min(1.0, std::max(1, work.blocks_per_sm) * launch.threads_per_block / 32.0 / gpu.sm.max_warps);
  result.math_utilization = part.activity;
  const double start = part.fixed + part.fill;
  if (start > part.compute && start > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.latency > part.math && part.latency > part.shared) result.limiter = Limiter::latency;
  else if (part.shared > part.math) result.limiter = Limiter::shared_memory;
  else if (part.math < 0.5 * part.compute) result.limiter = Limiter::latency;
  else result.limiter = Limiter::compute;
  limit_power(result, launch, gpu);
  return result;
}

}  // namespace ridgeline
