// The thread blocks of a fused attention kernel: the tiles each walks over, and the cycles of a tile.
#include <algorithm>
#include <cmath>
#include <span>

#include "sim/timing/attention/attention_law.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op.h"

namespace ridgeline {
namespace {

/// Random bits of dropout, four numbers of 32 bits from a run of Philox. Set on cuDNN's kernels of four whole steps on
/// an H200 (without it 0.52 to 0.64 of the time they took forward, 0.73 to 0.88 backward; with it 0.93 to 1.10); the
/// four shapes of h200/more/steps.jsonl.gz, looked at after that, 0.90 to 1.04, CUTLASS' kernels in fp32 0.92 and 0.98.
constexpr double kDropoutOperations = 27.0;
/// FlashAttention makes 16 numbers of 8 bits from one run. Not measured.
constexpr double kFlashDropoutOperations = 6.0;
/// Thread operations a score that read, convert and add a mask, forward and backward; the backward kernel walks the
/// mask against its layout. cuDNN's kernels have fewer registers left for its loads the wider their heads are. Set on
/// the kernels of h200/attention_backends.jsonl.gz that are not held out, the one of other backends on one shape (batch
/// 4, 16 heads, 1024 positions, 64 wide).
struct MaskOperations {
  double forward, backward;
};
constexpr MaskOperations kMaskOfOthers{15.0, 39.0}, kMaskUpTo64{15.0, 50.0}, kMaskUpTo128{39.0, 112.0},
    kMaskBeyond{117.0, 225.0};
MaskOperations mask_operations(const AttentionWork& work) {
  const bool one_query = work.seq_q == 1;  // cuDNN runs a smaller kernel of wmma then
  if (static_cast<AttentionBackend>(work.backend) != AttentionBackend::cudnn || one_query) return kMaskOfOthers;
  return work.head_dim <= 64 ? kMaskUpTo64 : work.head_dim <= 128 ? kMaskUpTo128 : kMaskBeyond;
}

/// Short sequences: up to this many positions blocks have idle warps and rows.
constexpr std::int64_t kShort = 64;
/// What the tile cycles of large head dimensions are stated at.
constexpr double kLargeHead = 192.0;

/// What the schedule takes a block for that leaves at once, in tiles: its prologue and epilogue count as one.
constexpr double kLeavingUnits = 0.1;

AttentionBackend backend_of(const AttentionWork& work) { return static_cast<AttentionBackend>(work.backend); }

/// Multiply-adds of a score. CUTLASS' products that have the head dimension as a side work on 64 or 128 of it, except
/// in the 16-bit backward kernels, which exist for more sizes.
double depth_of(const AttentionWork& work, bool backward) {
  const auto d = static_cast<double>(work.head_dim);
  const bool sides = backend_of(work) == AttentionBackend::efficient && !(backward && is_half(work.type));
  const double side = !sides ? d : d <= 64.0 ? 64.0 : 128.0 * ceil_div(d, 128.0);
  return backward ? 2.0 * d + 3.0 * side : d + side;
}

/// Tiles that block `i` of a head walks over under a causal mask, in one part of the keys; `shift`: keys before the
/// first query.
double causal_length(const AttentionWork& work, double i, double split, double steps, double shift) {
  const bool backward = work.part == AttentionWork::Part::backward;
  const double owned = backward ? work.tile_k : work.tile_q, walked = backward ? work.tile_q : work.tile_k;
  if (backward) {
    const double first = std::max(0.0, std::floor((i * owned - shift) / walked));
    return std::max(0.0, steps - first);
  }
  const double length = std::min(steps, ceil_div(std::max(0.0, (i + 1.0) * owned + shift), walked));
  const double share = ceil_div(steps, work.splits);
  return std::clamp(length - split * share, 0.0, share);
}

/// Rows of a tile that a warp owns: 32, but for FlashAttention's forward kernels of 64 queries or long heads.
double rows_of_warp(const AttentionWork& work) {
  if (backend_of(work) != AttentionBackend::flash || work.part == AttentionWork::Part::backward) return 32.0;
  return static_cast<double>(work.tile_q) / flash_forward_warps(work.tile_q, work.head_dim);
}

/// The blocks of a head in launch order, each with the tiles it walks over and those of them that are masked.
class BlockList {
 public:
  BlockList(const AttentionWork& work, const AttentionConstants& constants)
      : work_(work),
        backward_(work.part == AttentionWork::Part::backward),
        flash_(backend_of(work) == AttentionBackend::flash),
        large_(&constants.width(static_cast<double>(work.head_dim)) == &constants.large),
        constants_(constants),
        owned_(backward_ ? work.tile_k : work.tile_q),
        walked_(backward_ ? work.tile_q : work.tile_k) {}

  /// Kernels without checks of sequences exist for FlashAttention where the head dimension is the kernel's, up to 128,
  /// and not for packed sequences.
  [[nodiscard]] bool uneven() const {
    return work_.lengths.any() || work_.seq_q % work_.tile_q != 0 || work_.seq_k % work_.tile_k != 0 ||
           (flash_ && (work_.padded_head || large_));
  }

  void count(AttentionBlocks& result, const Gpu& gpu) const {
    const double heads = static_cast<double>(work_.batch * work_.heads);
    const double longest = ceil_div(static_cast<double>(longest_of(work_, backward_)), owned_);
    double sequences = 1.0;
    result.working = 0.0;
    if (work_.lengths.any()) {
      sequences = static_cast<double>(work_.lengths.list->size());
      for (const std::int64_t length : *work_.lengths.list)
        result.working += ceil_div(static_cast<double>(length), owned_) * heads;
    } else {
      result.working = longest * heads * work_.splits;
    }
    result.count = longest * sequences * heads * work_.splits;
    result.resident = static_cast<int>(
        std::clamp(ceil_div(result.count, gpu.sm.count), 1.0, static_cast<double>(work_.blocks_per_sm)));
  }

  void list(AttentionBlocks& result, const Gpu& gpu) const {
    // FlashAttention's forward loop checks the tile over the end of the keys like those on the diagonal, and in most of
    // its causal kernels for uneven sequences has no registers left for it: the worse the more the blocks that share an
    // SM are in different places of the code.
    const bool checks_end = flash_ && !backward_ && uneven();
    const bool spills = checks_end && work_.causal && work_.head_dim != 96 && rows_of_warp(work_) > 16.0;
    const double apart = 1.0 - std::min(1.0, gpu.sm.count * work_.blocks_per_sm / result.working);
    const double in_step = spills ? constants_.spilled_masked : constants_.further_masked;
    const double drift = constants_.width(static_cast<double>(work_.head_dim)).drift;
    const Masks masks{.count = work_.causal ? ceil_div(owned_, walked_) + (spills ? 1.0 : 0.0)
                               : checks_end ? 1.0
                                            : 0.0,
                      .further = spills ? in_step * (1.0 + drift * apart) : in_step,
                      .in_step = in_step,
                      .on_to_unmasked = work_.lengths.any() && spills
                                            ? constants_.unmasked_cycles / result.tile(work_.blocks_per_sm)
                                            : 0.0};
    if (!work_.lengths.any() && !work_.causal) {
      const double length = ceil_div(steps_of(backward_ ? work_.seq_q : work_.seq_k), work_.splits);
      result.tiles.push_back(with_masks(length, masks.count, 0.0));
      result.repeats = result.count;
      result.products = length * result.count;
      return;
    }
    result.repeats = static_cast<double>(work_.batch * work_.heads);
    const double blocks = ceil_div(static_cast<double>(longest_of(work_, backward_)), owned_);
    if (work_.lengths.any())
      for (const std::int64_t length : *work_.lengths.list) add_sequence(result, masks, length, length, blocks);
    else add_sequence(result, masks, work_.seq_q, work_.seq_k, blocks);
  }

 private:
  struct Masks {
    double count = 0;           ///< of a block's tiles, so many are masked
    double further = 0;         ///< what each but the first of them costs more, in tiles …
    double in_step = 0;         ///< … and what the schedule takes it for
    double on_to_unmasked = 0;  ///< tiles it costs a block to go on to those that are not masked
  };

  [[nodiscard]] double steps_of(std::int64_t walk_length) const {
    return ceil_div(static_cast<double>(walk_length), walked_);
  }
  [[nodiscard]] double with_masks(double length, double masked, double each_further) const {
    return length + std::min(masked, 1.0) * constants_.first_masked + std::max(masked - 1.0, 0.0) * each_further;
  }

  /// Blocks beyond the end of a sequence leave at once.
  void add_sequence(AttentionBlocks& result, const Masks& masks, std::int64_t queries, std::int64_t keys,
                    double blocks) const {
    const double steps = steps_of(backward_ ? queries : keys);
    const double own = ceil_div(static_cast<double>(backward_ ? keys : queries), owned_);
    for (double split = 0; split < work_.splits; ++split)
      for (double i = 0; i < blocks; ++i) {
        if (i >= own) {
          result.tiles.push_back(AttentionBlocks::kLeaves);
          result.units.push_back(kLeavingUnits);
          continue;
        }
        const double length = work_.causal ? causal_length(work_, i, split, steps, static_cast<double>(keys - queries))
                                           : ceil_div(steps, work_.splits);
        const double masked = std::min(length, masks.count);
        result.products += length * result.repeats;
        result.tiles.push_back(with_masks(length, masked, masks.further) +
                               (length > masked ? masks.on_to_unmasked : 0.0));
        result.units.push_back(with_masks(length, masked, masks.in_step) + 1.0);
      }
  }

  const AttentionWork& work_;
  bool backward_, flash_, large_;
  const AttentionConstants& constants_;
  double owned_, walked_;
};

}  // namespace

std::int64_t longest_of(const AttentionWork& work, bool keys) {
  if (work.lengths.any()) return *std::max_element(work.lengths.list->begin(), work.lengths.list->end());
  return keys ? work.seq_k : work.seq_q;
}

AttentionBlocks attention_blocks(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants) {
  const bool backward = work.part == AttentionWork::Part::backward;
  const bool flash = backend_of(work) == AttentionBackend::flash;
  // CUTLASS' fused kernels stop at the end of a short sequence; the others compute whole tiles.
  const bool stops = backend_of(work) == AttentionBackend::efficient;
  const auto used = [stops](int tile, std::int64_t length) {
    return static_cast<double>(stops ? std::min<std::int64_t>(tile, (length + 63) / 64 * 64) : tile);
  };
  const double scores = used(work.tile_q, work.seq_q) * used(work.tile_k, work.seq_k);
  const AttentionWidth& width = constants.width(static_cast<double>(work.head_dim));
  AttentionBlocks result;
  result.math = scores * depth_of(work, backward) / attention_rate(work, gpu);
  double operations = constants.softmax_operations;
  if (work.dropout) operations += flash ? kFlashDropoutOperations : kDropoutOperations;
  if (work.bias) operations += backward ? mask_operations(work).backward : mask_operations(work).forward;
  result.softmax = scores * (1.0 / gpu.sm.rates.special + operations / gpu.sm.rates.fp32);
  // Every warp reads the operand it does not own, for its own rows.
  const double operand_bytes =
      (backward ? 5.0 : 2.0) * scores * static_cast<double>(work.head_dim * bytes_of(work.type)) / rows_of_warp(work);
  const double loads = operand_bytes / gpu.sm.shared_bandwidth.value() * width.operand_loads;
  const double products = result.math / width.utilization;
  const double math = products + loads;
  const bool large = &width == &constants.large;
  result.latency =
      width.tile_cycles * (large ? static_cast<double>(work.head_dim) / kLargeHead : 1.0) * work.tiles_together;
  const BlockList blocks(work, constants);
  const double edges = !blocks.uneven() ? 1.0 : work.causal ? width.uneven_causal : constants.uneven;
  const double checked = edges * (work.padded_head ? width.padded : 1.0);
  result.overlap = constants.tile_overlap;
  // Exponentials are hidden as long as products and loads take longer.
  result.busy = checked * (products + std::max(0.0, result.softmax - math));
  result.waits = checked * (loads + constants.exposed * std::min(math, result.softmax));
  for (double* part : {&result.math, &result.softmax, &result.latency, &result.busy, &result.waits})
    *part *= work.tile_time;
  const double hertz = kernel_clock(gpu, attention_pipe(work, gpu), 0.0).value();
  const bool is_short = std::max(longest_of(work, false), longest_of(work, true)) <= kShort;
  result.block = width.block_cycles * (is_short ? constants.short_block : 1.0) + load_latency(gpu, 1.0, hertz) -
                 reference_load_latency(1.0) + load_latency(gpu, 0.0, hertz) - reference_load_latency(0.0);
  result.unclocked = std::max(0.0, std::min(result.block, load_latency(gpu, 1.0, hertz) - gpu.l2.latency.value()));
  result.leaving = constants.leaving_cycles;
  blocks.count(result, gpu);
  blocks.list(result, gpu);
  return result;
}

}  // namespace ridgeline
