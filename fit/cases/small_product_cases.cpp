#include "fit/cases/small_product_cases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "fit/kernel_name.h"
#include "fit/other_boards.h"
#include "sim/kernels/products/few_vectors.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/scaled_product.h"
#include "sim/kernels/products/small_tiles.h"
#include "sim/kernels/products/vector_product.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

using K = MemoryBoundKernel;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

double blocks_of(const ProfiledKernel& kernel) {
  return static_cast<double>(kernel.grid[0]) * static_cast<double>(kernel.grid[1]) *
         static_cast<double>(kernel.grid[2]);
}

/// cutlass_80_wmma_tensorop_s161616gemm_bf16_32x32_64x1_tn_align2: m x n, k x buffers.
std::optional<NamedGemm> wmma_of_name(std::string_view name) {
  std::size_t at = name.find("wmma_tensorop");
  if (at == std::string_view::npos) return std::nullopt;
  for (at = name.find("gemm_", at); at < name.size(); at = name.find('_', at + 1)) {
    std::array<int, 4> tile{};
    std::size_t count = 0;
    const char* next = name.data() + at + 1;
    const char* const end = name.data() + name.size();
    while (count < tile.size() && next < end) {
      const auto read = std::from_chars(next, end, tile[count]);
      if (read.ec != std::errc{}) break;
      ++count;
      if (read.ptr == end || (*read.ptr != 'x' && *read.ptr != '_')) break;
      next = read.ptr + 1;
    }
    if (count == tile.size()) return NamedGemm{.m = tile[0], .n = tile[1], .k = tile[2]};
  }
  return std::nullopt;
}

/// Operands of a product and its result.
struct Operands {
  std::vector<Access> reads, writes;
};
Operands operands_of(const Matmul& op) {
  const double element = static_cast<double>(bytes_of(op.type)), batch = static_cast<double>(op.batch),
               m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  Operands result{{{.operand = 0, .bytes = batch * m * k * element}, {.operand = 1, .bytes = batch * n * k * element}},
                  {{.operand = operand_counts(Op{op}).inputs, .bytes = batch * m * n * element}}};
  if (op.bias && op.n > 1 && op.k > 1) result.reads.push_back({.operand = 2, .bytes = n * element});
  return result;
}

/// The sequences of launches of which one ran, by the name of the product's kernel.
std::vector<ProductWay> ways_of(const Matmul& op, const ProfiledKernel& kernel, const Gpu& gpu) {
  const auto [reads, writes] = operands_of(op);
  const std::string& name = kernel.name;
  if (has(name, "gemvx") || has(name, "gemv2") || has(name, "gemvNSP") || has(name, "dot_kernel"))
    return is_vector_product(op, gpu) ? vector_product_ways(op, reads, writes) : std::vector<ProductWay>{};
  if (has(name, "gemmSN_TN") || has(name, "gemmSN_NN")) {
    if (has(name, "gemmSN_TN") != (op.layout == Layout::nt)) return {};
    return {{few_vectors_launch(op, reads, writes)}};
  }
  if (has(name, "sgemm_largek")) {
    if (!is_scaled_first(op, gpu)) return {};
    ProductWay way;
    append_scaled_first(way, op, reads, writes);
    return {way};
  }
  auto named = wmma_of_name(name);
  if (!named) named = gemm_of_name(name);
  if (!named) return {};
  GemmWork problem = gemm_problem(op, gpu);
  problem.bias = reads.size() > 2;
  SmallTileRun run{named->m, named->n, named->k};
  const std::int64_t tiles = ceil_div(op.m, run.m) * ceil_div(op.n, run.n) * op.batch;
  run.splits = static_cast<int>(blocks_of(kernel) / static_cast<double>(tiles));
  if (kernel.grid[2] >= op.batch && kernel.grid[2] % op.batch == 0)
    run.splits = std::min(run.splits, static_cast<int>(kernel.grid[2] / op.batch));
  return run.splits < 1 ? std::vector<ProductWay>{} : small_tile_ways(problem, gpu, reads, writes, &run);
}

/// Launches of a way that stand for a profiled kernel, whose class is a memory-bound one.
bool is_product(K kernel) { return kernel >= K::vector_rows && kernel <= K::largek; }

const MemoryBoundWork* product_work(const KernelLaunch& launch) {
  const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
  return work != nullptr && is_product(static_cast<K>(work->kernel_class)) ? work : nullptr;
}

/// Whether the kernel's grid is the launch's. CUTLASS lays tiles out in columns of up to eight: blocks beyond the last
/// tile end at once.
bool is_grid_of(const KernelLaunch& launch, const ProfiledKernel& kernel) {
  constexpr double kMostPadding = 1.34;
  const double blocks = blocks_of(kernel);
  return has(kernel.name, "cutlass") ? blocks >= launch.blocks() && blocks <= kMostPadding * launch.blocks()
                                     : blocks == launch.blocks();
}

/// A product of a vector as others timed it on a board whose libraries run it by vectors: one launch, the fastest.
void add_published_vector(const Measurement& row, const Matmul& op, const Software& software, Collected& collected) {
  const OtherBoard& board = other_board(row.file->machine.hardware, software);
  if (!is_vector_product(op, board.gpu)) return;
  const auto [reads, writes] = operands_of(op);
  TimedLaunch timed;
  timed.gpu = &board.gpu;
  const std::vector<ProductWay> ways = vector_product_ways(op, reads, writes);
  for (const ProductWay& way : ways) {
    if (way.size() != 1 || static_cast<K>(product_work(way.front())->kernel_class) != K::vector_rows_half) return;
    if (&way != &ways.front()) timed.others.push_back(way.front());
  }
  timed.launch = ways.front().front();
  const auto residency = repeated_residency(ways.front(), rotating_operands(row.kernel.op), row.kernel.input_sets,
                                            board.gpu.l2, partly_used_bytes(row.kernel.op), row.kernel.shared_operand);
  if (!residency.empty()) timed.residency = residency.front();
  const Seconds between = between_kernels(row, 1, board.gpu);
  auto& [cases, launches] = collected["vector_rows_half"];
  cases.push_back({(row.time - between).value(), 0, row.held_out, row.shape, row.row});
  launches.push_back(std::move(timed));
}

}  // namespace

void add_small_products(const Measurements& measurements, const Laboratory& laboratory, Collected& collected) {
  for (const Measurement& row : measurements.rows) {
    const auto* op = std::get_if<Matmul>(&row.kernel.op);
    if (op == nullptr || op->scaling != Scaling::none) continue;
    if (is_published_product(*row.file)) {
      add_published_vector(row, *op, laboratory.software, collected);
      continue;
    }
    for (const ProfiledKernel& kernel : row.kernels) {
      if (!kernel.has_geometry && kernel.grid[0] == 0) continue;
      const bool sums = has(kernel.name, "reduce_1Block");
      // Sums follow their dots: the same ways have both.
      ProfiledKernel asked = kernel;
      if (sums) asked.name = "dot_kernel";
      TimedLaunch timed;
      std::string name;
      for (const ProductWay& way : ways_of(*op, asked, laboratory.gpu)) {
        const auto launch = std::find_if(way.begin(), way.end(), [&](const KernelLaunch& one) {
          const MemoryBoundWork* work = product_work(one);
          return work != nullptr && is_grid_of(one, kernel) &&
                 (static_cast<K>(work->kernel_class) == K::vector_sums) == sums;
        });
        if (launch == way.end()) continue;
        if (!name.empty()) {
          timed.others.push_back(*launch);
          continue;
        }
        name = name_of(static_cast<K>(product_work(*launch)->kernel_class));
        timed.launch = *launch;
        const auto residency =
            repeated_residency(way, rotating_operands(row.kernel.op), row.kernel.input_sets, laboratory.gpu.l2,
                               partly_used_bytes(row.kernel.op), row.kernel.shared_operand);
        if (!residency.empty()) timed.residency = residency[static_cast<std::size_t>(launch - way.begin())];
      }
      if (name.empty()) continue;
      auto& [cases, launches] = collected[name];
      cases.push_back({kernel.seconds, row.machine, row.held_out, row.shape, row.row});
      launches.push_back(std::move(timed));
    }
  }
}

}  // namespace ridgeline::fit
