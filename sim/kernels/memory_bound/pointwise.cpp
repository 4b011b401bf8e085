// Point-wise kernels of PyTorch's TensorIterator: a vectorised kernel where all operands are contiguous and of the
// functor's own types, an unrolled one where a type must be converted on the fly, and one that computes offsets where
// an operand is broadcast or permuted. Geometry read from profiles of PyTorch 2.11; tested by
// tests/kernels/measured_geometry_test.cpp.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/gathered_rows.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/memory_bound/own_kernels.h"
#include "sim/kernels/memory_bound/partial_stores.h"
#include "sim/kernels/memory_bound/strided_access.h"
#include "sim/workload/pointwise_functions.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline {
namespace {

MemoryBoundKernel kernel_of_law(std::string_view law) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(MemoryBoundKernel::count_); ++i)
    if (name_of(static_cast<MemoryBoundKernel>(i)) == law) return static_cast<MemoryBoundKernel>(i);
  return MemoryBoundKernel::unary;  // of functions that have kernels of their own
}
/// Whose constants time a function, of one tensor and of several.
struct PointwiseLaws {
  MemoryBoundKernel of_one, of_several;
};
const PointwiseLaws& laws_of(PointwiseFunction function) {
  static const std::vector<PointwiseLaws> all = [] {
    std::vector<PointwiseLaws> laws;
    for (const PointwiseRow& row : pointwise_rows()) {
      const std::string_view of_one = row.kernel.law_of_one.empty() ? row.kernel.law : row.kernel.law_of_one;
      laws.push_back({kernel_of_law(of_one), kernel_of_law(row.kernel.law)});
    }
    return laws;
  }();
  return all[static_cast<std::size_t>(function)];
}

struct PointwiseTraits {
  MemoryBoundKernel kernel;
  std::string_view name;
  double flops;  ///< an element
  int registers_half, registers_full;
};
PointwiseTraits traits_of(PointwiseFunction function, int inputs) {
  const PointwiseRow::Kernel& row = row_of(function).kernel;
  const bool one = inputs <= 1 && !row.law_of_one.empty();
  return {one ? laws_of(function).of_one : laws_of(function).of_several, row.name, row.flops,
          one ? row.registers_half_of_one : row.registers_half, row.registers_full};
}

bool is_mask(DType type) { return type == DType::boolean || type == DType::uint8; }

bool is_indexed(MemoryBoundKernel kernel) {
  using K = MemoryBoundKernel;
  return kernel == K::index_select || kernel == K::flip || (kernel >= K::index_elements && kernel <= K::scatter_add);
}

constexpr double kBytesOfIndex = 8.0, kUsualPairs = 2.0;  ///< of an index; tensors of them where there are several
/// A sector for each element passes the L2 as slowly as so many bytes. Fitted on transposed copies.
constexpr double kScatteredSectorBytes = 46.0;

/// Elements of a thread of the kernels that compute where an element lies: four side by side, eight one after the other
/// where they go along one dimension.
std::int64_t elements_of_indexed_thread(PointwiseFunction function) {
  using F = PointwiseFunction;
  const bool along = function == F::gather || function == F::scatter_add || function == F::scatter_value;
  return along ? 8 : 4;
}

/// Instructions of an element that a long function has beyond an addition, whose walk over operands does not know it.
double arithmetic_of(MemoryBoundKernel kernel, bool half) {
  if (kernel < MemoryBoundKernel::gelu || kernel > MemoryBoundKernel::special) return 0.0;
  const MemoryBoundConstants &function = constants_of(kernel), &addition = constants_of(MemoryBoundKernel::add);
  return std::max(0.0, half ? function.instructions_half - addition.instructions_half
                            : function.instructions_full - addition.instructions_full);
}

/// Operands whose type is not the functor's are converted while loading: no vector loads then. Casting down has a
/// functor of its own, and masks belong to theirs.
bool converts_on_load(const Pointwise& op) {
  if (op.function == PointwiseFunction::cast)
    return !(op.inputs[0] == DType::fp32 && is_half(op.output)) && op.inputs[0] != op.output;
  if (op.function == PointwiseFunction::equal) return false;
  const auto arithmetic = [](DType type) { return type == DType::tf32 ? DType::fp32 : type; };
  for (int i = 0; i < op.input_count; ++i)
    if (!is_mask(op.inputs[i]) && arithmetic(op.inputs[i]) != arithmetic(op.output)) return true;
  return false;
}

/// Rows or elements that lie where indices say: whole sectors move, from the DRAM too where the L2 does not hold the
/// region, which is taken to be as large as what is read or written of it.
void scatter(const Pointwise& op, double count, const L2Spec& l2, KernelLaunch& launch) {
  using F = PointwiseFunction;
  const bool rows = op.function == F::index || op.function == F::index_pairs || op.function == F::index_copy;
  const bool along = op.function == F::gather || op.function == F::scatter_add || op.function == F::scatter_value;
  if (!rows && !along) return;
  const std::int64_t element = bytes_of(op.output);
  const double bytes = count * static_cast<double>(element);
  const double touched = rows ? sector_bytes(op.cols * element) / static_cast<double>(op.cols * element)
                              : kScatteredSectorBytes / static_cast<double>(element);
  const double missed = beyond_l2(bytes, l2);
  const auto spread = [&](Access& access) {
    access.requested = std::max(access.requested, bytes * touched);
    access.bytes = bytes * (1.0 + (touched - 1.0) * missed);
  };
  const bool stores = rows && op.input_count > 1;
  const double indices = op.function == F::index_pairs ? kUsualPairs : 1.0;
  if (stores) launch.reads.back() = {1, indices * kBytesOfIndex * count / static_cast<double>(op.cols), 0.0};
  if (rows && !stores && launch.reads.empty()) return;  // of a table that no operand is
  if (rows && !stores) {
    spread(launch.reads.front());
    if (op.function == F::index_pairs)
      launch.reads.push_back({Access::kTemporary, indices * kBytesOfIndex * count / static_cast<double>(op.cols)});
  } else if (op.function == F::gather && op.input_count > 1) {
    spread(launch.reads.back());
  } else {
    spread(launch.writes.front());
    if (op.function == F::scatter_value || op.cols == 1) store_scattered(count, launch);
  }
}

/// Bytes that `count` elements read, with those of the operand that is walked by strides.
void add_reads(const Pointwise& op, double count, const StridedAccess* strided, KernelLaunch& launch) {
  for (int i = 0; i < op.input_count; ++i) {
    double distinct = count * static_cast<double>(bytes_of(op.inputs[i]));
    const double requested = distinct;
    if ((i == 1 || op.input_count == 1) && op.walk == Walk::broadcast_row)
      distinct = static_cast<double>(op.cols) * static_cast<double>(bytes_of(op.inputs[i]));
    launch.reads.push_back(
        {op.function == PointwiseFunction::masked_fill && i == 0 ? op.input_count : i, distinct, requested});
  }
  if (strided != nullptr && !launch.reads.empty()) {
    launch.reads.back().bytes = strided->bytes;
    launch.reads.back().requested = strided->requested;
  }
  // A mask or position table repeated over batch (and heads): a square of the contiguous dimension is all that is
  // known of it.
  if (op.walk == Walk::broadcast && op.input_count > 1) {
    const double square = static_cast<double>(op.cols) * static_cast<double>(op.cols) *
                          static_cast<double>(bytes_of(op.inputs[op.input_count - 1]));
    launch.reads.back().bytes = std::min(launch.reads.back().bytes, square);
  }
}

/// The operand that lies otherwise than the result.
StridedAccess access_of(const Pointwise& op, std::int64_t elements, std::int64_t per_block, const ChipShape& chip) {
  const DType type = op.inputs[std::max(1, static_cast<int>(op.input_count)) - 1];
  const SizeList usual =
      op.walk == Walk::transposed ? transposed_matrix(op.rows, op.cols) : whole_rows(op.rows, op.cols);
  return strided_access(op.walked.any() ? op.walked : usual, type, elements, per_block, chip);
}

double largest_operand(const Pointwise& op) {
  std::int64_t widest = bytes_of(op.output);
  for (int i = 0; i < op.input_count; ++i) widest = std::max<std::int64_t>(widest, bytes_of(op.inputs[i]));
  return static_cast<double>(widest) * static_cast<double>(op.elements());
}

MemoryBoundKernel strided_kernel(const Pointwise& op, bool converts) {
  using K = MemoryBoundKernel;
  if (op.walk == Walk::transposed) return K::strided_copy;
  return converts ? K::broadcast_mixed : op.input_count > 1 ? K::broadcast_binary : K::strided_copy;
}

}  // namespace

LoweredOp lower_pointwise(const Pointwise& op, const ChipShape& chip, const Software& /*software*/) {
  const std::int64_t n = op.elements();
  if (n < 1) throw std::invalid_argument("a point-wise op needs at least one element");
  if (op.input_count > 3) throw std::invalid_argument("a point-wise op takes at most three tensors");
  if (has_own_kernel(op.function)) return lower_own_kernel(op, chip);
  PointwiseTraits traits = traits_of(op.function, op.input_count);
  // A single row has nothing to repeat: the iterator sees three contiguous operands.
  const bool strided = op.walk != Walk::contiguous && !(op.walk == Walk::broadcast_row && op.rows == 1);
  const bool indexed = is_indexed(traits.kernel);
  const bool converts = !indexed && converts_on_load(op), unrolled = !strided && converts;
  const std::int64_t output_bytes = bytes_of(op.output);
  const DType type = op.function == PointwiseFunction::cast && is_half(op.inputs[0]) ? op.inputs[0] : op.output;

  std::int64_t per_block = 1024;
  double arithmetic = 0.0;
  Geometry geometry;
  geometry.registers = output_bytes == 2 ? traits.registers_half : traits.registers_full;
  if (indexed) {
    per_block = 128 * elements_of_indexed_thread(op.function);
  } else if (strided) {
    arithmetic = arithmetic_of(traits.kernel, bytes_of(type) == 2);
    per_block = 128 * (output_bytes >= 4 && !converts ? 2 : 4);
    geometry.registers = 18;
    traits.kernel = strided_kernel(op, converts);
  } else if (unrolled) {
    per_block = 512;
    geometry.registers = 32;
    traits.kernel = op.input_count > 1 ? MemoryBoundKernel::unrolled_mixed : MemoryBoundKernel::unrolled_cast;
  } else if (op.function == PointwiseFunction::arange) {
    per_block = geometry.threads = 64;
  }

  LoweredOp result;
  // masked_fill is out of place: the input is cloned by a device-to-device copy, then filled in place.
  const bool clones = op.function == PointwiseFunction::masked_fill;
  const int out = op.input_count;
  if (clones) {
    result.launches.push_back(device_copy_launch(op.output, n, 0, out));
  }
  const int splits = index_splits(largest_operand(op));
  for (int split = 0; split < splits; ++split) {
    const std::int64_t elements = n / splits + (split < n % splits ? 1 : 0);
    const auto count = static_cast<double>(elements);
    geometry.grid_x = ceil_div(elements, per_block);
    const bool vectorized = !strided && !unrolled && !indexed && geometry.threads == 128;
    // Blocks that walk their elements one by one skip the turns beyond the last of them. A turn of an index waits for
    // it and then for the element; a roll computes the place, one element a thread.
    const double turns = op.function == PointwiseFunction::roll ? 0.5
                         : vectorized || geometry.threads != 128
                             ? 1.0
                             : static_cast<double>(ceil_div(std::min(elements, per_block), 128));
    const bool looks_up = strided && !indexed && (op.walk == Walk::transposed || op.walk == Walk::strided);
    StridedAccess access = looks_up ? access_of(op, elements, per_block, chip) : StridedAccess{};
    if (strided && !indexed && !looks_up && op.walked.any()) access.arithmetic = arithmetic_of(op.walked);
    // Besides its elements: the lines of the L1 that a strided operand touches, a mask's offsets (bytes beside halves).
    const double beside = looks_up                                        ? access.lines
                          : op.input_count <= 1                           ? count * lines_in_rows(op.output)
                          : op.function == PointwiseFunction::masked_fill ? count
                                                                          : 0.0;
    KernelLaunch launch = memory_bound_launch(
        traits.kernel, std::string(traits.name),
        op.function == PointwiseFunction::cast ? TimeClass::copy : TimeClass::elementwise, type, geometry,
        {.elements = count,
         .padded_elements = strided && !indexed ? beside : 0.0,
         .arithmetic = arithmetic + access.arithmetic,
         .active_blocks = count / static_cast<double>(per_block),
         .iterations = turns,
         .tail_steps = vectorized ? scalar_steps(elements) : 0.0});
    launch.flops = traits.flops * count;
    add_reads(op, count, looks_up ? &access : nullptr, launch);
    launch.writes = {{out, count * static_cast<double>(output_bytes)}};
    scatter(op, count, chip.l2, launch);
    result.launches.push_back(std::move(launch));
  }
  return result;
}

}  // namespace ridgeline
