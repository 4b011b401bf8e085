#include "sim/kernels/products/gemm_launch.h"
#include "sim/units/ceil_div.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

std::string kernel_name(const GemmWork& work, const Gpu& gpu, std::string_view kind) {
  const char* const layout = work.layout == 1   ? "tn"
                             : work.layout == 2 ? "nt"
                             : work.layout == 3 ? "tt"
                                                : "nn";  // column-major, as in the libraries' names
  const std::string_view split = work.split_k > 1 ? "_splitK" : "";
  switch (work.family) {
    case GemmWork::Family::wgmma:
      if (work.scaling != Scaling::none)
        return fmt::format(FMT_COMPILE("nvjet_sm90_fp8_{}x{}_{}x{}{}_{}"), work.tile_n, work.tile_m, 2 * work.tile_k,
                           work.stages, work.scaling == Scaling::rows_fast ? "_ovscale" : "", layout);
      if (work.tensor_memory)
        return fmt::format(FMT_COMPILE("nvjet_sm100_{}_{}x{}_{}x{}{}{}_{}"), name_of(work.type), work.tile_n,
                           work.tile_m, work.tile_k, work.stages, work.paired ? "_2cta" : "", split, layout);
      return fmt::format(FMT_COMPILE("{}_sm90_{}_{}x{}_{}x{}{}_{}"),
                         is_half(work.type) && kind == "gemm" ? "nvjet" : kind, name_of(work.type), work.tile_n,
                         work.tile_m, work.tile_k, work.stages, split, layout);
    case GemmWork::Family::mma_sync:
      return fmt::format(FMT_COMPILE("sm{}{}_tensorop_{}_{}_{}x{}_{}x{}_{}_align{}{}"), gpu.compute_major,
                         gpu.compute_minor, name_of(work.type), kind, work.tile_n, work.tile_m, work.tile_k,
                         work.stages, layout, work.alignment / bytes_of(work.type), split);
    case GemmWork::Family::simt:
      return fmt::format(FMT_COMPILE("sm{}{}_s{}_{}x{}x{}_{}{}"), gpu.compute_major, gpu.compute_minor, kind,
                         work.tile_n, work.tile_m, work.tile_k, layout, split);
  }
  return "gemm";
}

}  // namespace

KernelLaunch counter_memset() {
  KernelLaunch memset;
  memset.name = "Memset";
  memset.time_class = TimeClass::tensor_contraction;
  memset.work = FixedWork{.what = FixedWork::What::memset, .bytes = 4.0};
  return memset;
}

void append_gemm(std::vector<KernelLaunch>& launches, const GemmWork& problem, const Gpu& gpu,
                 const GemmSelection& selection, std::vector<Access> reads, const std::vector<Access>& writes,
                 std::string_view kind) {
  if (selection.choice == nullptr)
    throw std::invalid_argument(fmt::format("no matrix-product kernel fits an SM of {}", gpu.name));
  GemmWork work = problem;
  work.family = selection.family;
  work.tile_m = selection.tile.m;
  work.tile_n = selection.tile.n;
  work.tile_k = selection.tile.k;
  work.stages = selection.tile.stages;
  work.blocks_per_sm = selection.tile.blocks_per_sm;
  work.split_k = selection.splits;
  work.stream_k = selection.tile.stream_k;
  work.first_stages = selection.tile.first_stages;
  work.paired = selection.tile.paired;

  const double batch = static_cast<double>(work.batch), m = static_cast<double>(work.m),
               n = static_cast<double>(work.n), k = static_cast<double>(work.k);
  const std::int64_t rows = ceil_div(work.m, work.tile_m), columns = ceil_div(work.n, work.tile_n);
  const double element = static_cast<double>(bytes_of(work.type));
  const double a_bytes = batch * m * k * element * stored_share(work.sparse == SparseOperand::a),
               b_bytes = batch * n * k * element * stored_share(work.sparse == SparseOperand::b);
  // Every tile asks for whole panels of both operands.
  if (!reads.empty()) reads[0].requested = std::max(reads[0].bytes, static_cast<double>(columns) * a_bytes);
  if (reads.size() > 1) reads[1].requested = std::max(reads[1].bytes, static_cast<double>(rows) * b_bytes);

  KernelLaunch product;
  product.name = kernel_name(work, gpu, kind);
  product.time_class = TimeClass::tensor_contraction;
  if (work.family == GemmWork::Family::wgmma) {
    const std::int64_t tiles = work.stream_k ? gpu.sm.count : rows * columns * work.batch * work.split_k;
    product.grid = {std::min<std::int64_t>(tiles, gpu.sm.count), 1, 1};
  } else {
    product.grid = {rows, columns, work.batch * work.split_k};
  }
  product.threads_per_block = selection.choice->threads;
  product.registers_per_thread = selection.choice->registers;
  product.shared_bytes_per_block = selection.choice->shared_bytes;
  product.pipe = work.family == GemmWork::Family::wgmma      ? Pipe::tensor_wgmma
                 : work.family == GemmWork::Family::mma_sync ? Pipe::tensor_mma
                                                             : Pipe::fp32;
  product.type = work.family == GemmWork::Family::simt ? DType::fp32 : work.type;
  product.flops = gemm_flops(work) * (work.scaling != Scaling::none ? 2.0 : 1.0);
  product.reads = std::move(reads);
  if (selection.clears_counter) launches.push_back(counter_memset());
  if (selection.splits == 1 || work.stream_k) {
    product.writes = writes;
    product.work = work;
    launches.push_back(std::move(product));
    return;
  }
  const double partial_bytes = 4.0 * work.split_k * batch * m * n;
  product.writes = {{.operand = Access::kTemporary, .bytes = partial_bytes}};
  product.work = work;
  launches.push_back(std::move(product));
  launches.push_back(split_reduction(work, writes));
}

KernelLaunch split_reduction(GemmWork work, const std::vector<Access>& writes) {
  const double results = static_cast<double>(work.batch) * static_cast<double>(work.m) * static_cast<double>(work.n);
  KernelLaunch reduction;
  reduction.name = "splitKreduce";
  reduction.time_class = TimeClass::tensor_contraction;
  reduction.grid = {std::max<std::int64_t>(1, ceil_div(work.m * work.n * work.batch, 2048)), 1, 1};
  reduction.threads_per_block = 512;
  reduction.reads = {{.operand = Access::kTemporary, .bytes = 4.0 * work.split_k * results}};
  reduction.writes = writes;
  reduction.pipe = Pipe::none;
  work.reduces_splits = true;
  reduction.work = work;
  reduction.follows_without_gap = true;
  return reduction;
}

}  // namespace ridgeline
