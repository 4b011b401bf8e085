// Convolutions: each launch is that of the kernel which the profile names, so that the law of times is fitted apart
// from the choice of kernels. Rows whose kernels are of a kind that the lowering does not have are left out.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "fit/law_problem.h"
#include "sim/kernels/convolution/convolution_forms.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/convolution/convolution_law.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/laws.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

using Role = Gathering::Role;
using Family = GemmWork::Family;

const Law<ConvolutionConstants> kLaw{
    {
#include "sim/timing/tables/convolution_fields.inc"
    },
    [](const TimedLaunch& timed, const Gpu& gpu, const ConvolutionConstants& constants) {
      return convolution_time(timed.launch, std::get<GemmWork>(timed.launch.work), gpu, timed.residency, constants)
          .time.value();
    }};

const char* name_of_class(ConvolutionClass kernel_class) {
  switch (kernel_class) {
    case ConvolutionClass::wgmma_half: return "wgmma_half";
    case ConvolutionClass::wgmma_tf32_forward: return "wgmma_tf32_forward";
    case ConvolutionClass::wgmma_tf32: return "wgmma_tf32";
    case ConvolutionClass::mma_half: return "mma_half";
    case ConvolutionClass::mma_tf32: return "mma_tf32";
    case ConvolutionClass::simt: return "simt";
  }
  return "";
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// What a name says of a kernel that convolves.
struct NamedConvolution {
  Role direction = Role::forward, kernel = Role::forward;  ///< scattered ones have a role of their own
  Family family = Family::mma_sync;
  std::array<int, 3> tile{};  ///< zeros: not said
  bool shares_steps = false;  ///< split as the kernel sees fit
};

/// "AxBxC", "AxB_C" at the beginning of `text`.
bool read_tile(std::string_view text, std::array<int, 3>& tile) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < tile.size(); ++i) {
    const auto read = std::from_chars(at, end, tile[i]);
    if (read.ec != std::errc{}) return false;
    at = read.ptr;
    if (i + 1 < tile.size() && (at == end || (*at != 'x' && *at != '_'))) return false;
    ++at;
  }
  return true;
}

std::optional<NamedConvolution> convolution_of_name(std::string_view name) {
  NamedConvolution result;
  if (has(name, "dgrad_engine")) {
    result.direction = Role::input_gradient;
    result.kernel = Role::scattered_images;
    result.family = Family::simt;
    return result;
  }
  if (has(name, "wgrad_alg0_engine")) {
    result.direction = Role::weight_gradient;
    result.kernel = Role::scattered_filters;
    result.family = Family::simt;
    return result;
  }
  if (has(name, "fprop")) result.direction = Role::forward;
  else if (has(name, "dgrad")) result.direction = Role::input_gradient;
  else if (has(name, "wgrad")) result.direction = Role::weight_gradient;
  else return std::nullopt;
  result.kernel = result.direction;
  if (constexpr std::string_view kTile = "tilesize"; has(name, "_xmma_") && has(name, kTile)) {
    if (has(name, "kernel_helper") || !read_tile(name.substr(name.find(kTile) + kTile.size()), result.tile))
      return std::nullopt;
    result.family = has(name, "warpgroupsize") ? Family::wgmma : has(name, "_ffma") ? Family::simt : Family::mma_sync;
    result.shares_steps = has(name, "segment_k_on");
    return result;
  }
  if (!has(name, "cutlass_tensorop")) return std::nullopt;
  // cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8: m x n, k x stages
  for (std::size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1))
    if (read_tile(name.substr(at + 1), result.tile)) return result;
  return std::nullopt;
}

/// Helpers of one kernel: counters and partial sums are cleared before it, or added up behind it.
bool prepares_splits(const ProfiledKernel& kernel) { return has(kernel.name, "init_device_workspace"); }
bool adds_splits(const ProfiledKernel& kernel) {
  return has(kernel.name, "execute_split_k") || has(kernel.name, "ReduceSplitK") || has(kernel.name, "splitKreduce");
}

/// The splits of the sum that the grid shows: of persistent kernels as many as fill it with tiles, of tiled weight
/// gradients the last count of the grid; 0: not recorded.
int splits_of(const NamedConvolution& named, const ProfiledKernel& kernel, double tiles) {
  const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  if (named.shares_steps) return blocks < 1 ? 0 : std::max(1, static_cast<int>(static_cast<double>(blocks) / tiles));
  return named.family == Family::mma_sync ? static_cast<int>(kernel.grid[2]) : 1;
}

/// The form of a convolution that ran.
std::optional<KernelLaunch> form_that_ran(const Convolution& op, const NamedConvolution& named,
                                          const ProfiledKernel& kernel, const Laboratory& laboratory) {
  for (KernelLaunch& launch : convolution_forms(op, named.direction, laboratory.gpu)) {
    auto& work = std::get<GemmWork>(launch.work);
    if (work.family != named.family || work.gathering.role != named.kernel || work.split_k != 1) continue;
    if (named.tile[0] != 0 && std::array{work.tile_m, work.tile_n, work.tile_k} != named.tile) continue;
    work.split_k = splits_of(named, kernel, convolution_law(work, laboratory.gpu, 0.0, 0.0, 0.0).tiles);
    const bool may_split = named.shares_steps || named.kernel == Role::weight_gradient;
    if (work.split_k < 1 || (work.split_k > 1 && !may_split)) return std::nullopt;
    return std::move(launch);
  }
  return std::nullopt;
}

/// What the L2 holds of the operands of the kernel that convolves in a direction, from the lowering.
std::vector<double> residency_of(const LoweredOp& lowered, const std::vector<std::vector<double>>& hits,
                                 const KernelLaunch& launch) {
  for (std::size_t i = 0; i < lowered.launches.size() && i < hits.size(); ++i) {
    const KernelLaunch& other = lowered.launches[i];
    const auto* work = std::get_if<GemmWork>(&other.work);
    if (work == nullptr || other.writes.empty() || other.writes[0].operand != launch.writes[0].operand) continue;
    return hits[i];
  }
  return {};
}

}  // namespace

std::vector<Problem> convolution_problems(const Measurements& measurements, const Laboratory& laboratory) {
  const Lowering lowering(laboratory.gpu, laboratory.software);
  Collected collected;
  for (const Measurement& row : measurements.rows) {
    const auto* op = std::get_if<Convolution>(&row.kernel.op);
    if (op == nullptr) continue;
    const LoweredOp lowered = lowering.lower(row.kernel.op);
    const auto hits = repeated_residency(lowered.launches, rotating_operands(row.kernel.op), row.kernel.input_sets,
                                         laboratory.gpu.l2);
    for (std::size_t i = 0; i < row.kernels.size(); ++i) {
      const auto named = convolution_of_name(row.kernels[i].name);
      if (!named || adds_splits(row.kernels[i]) || (named->direction == Role::forward) == op->backward) continue;
      const auto launch = form_that_ran(*op, *named, row.kernels[i], laboratory);
      if (!launch) continue;
      const auto& work = std::get<GemmWork>(launch->work);
      double seconds = row.kernels[i].seconds;
      if (i > 0 && prepares_splits(row.kernels[i - 1])) seconds += row.kernels[i - 1].seconds;
      if (i + 1 < row.kernels.size() && adds_splits(row.kernels[i + 1])) seconds += row.kernels[i + 1].seconds;
      auto& [cases, timed] = collected[name_of_class(convolution_class_of(work))];
      cases.push_back({seconds, row.machine, row.held_out, row.shape, row.row});
      timed.push_back({*launch, residency_of(lowered, hits, *launch)});
    }
  }
  return problems_of(std::move(collected), kLaw, laboratory.gpu);
}

}  // namespace ridgeline::fit
