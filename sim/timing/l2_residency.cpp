#include "sim/timing/l2_residency.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ridgeline {
namespace {

using Sweep = L2Residency::Swept;

/// The ramp integrated from distance 0 to `distance`.
double ramp_integral(const L2Spec& l2, double distance) {
  const double full = l2.resident_full * l2.capacity.value(), none = l2.resident_none * l2.capacity.value();
  if (distance <= full) return distance;
  const double end = std::min(distance, none);
  const double span = std::max(none - full, 1.0);
  return full + (end - full) - 0.5 * (end - full) * (end - full) / span;
}

/// Mean hit share of a sweep whose reuse distance changes linearly from that of the first byte to that of the last.
double mean_hit(const L2Spec& l2, double first, double last) {
  first = std::max(0.0, first);
  last = std::max(0.0, last);
  const double low = std::min(first, last), high = std::max(first, last);
  const double full = l2.resident_full * l2.capacity.value(), none = l2.resident_none * l2.capacity.value();
  if (high - low > 1.0) {
    // Most sweeps lie on one side of the ramp.
    if (high <= full) return 1.0;
    if (low >= none && low > full) return 0.0;
    return std::clamp((ramp_integral(l2, high) - ramp_integral(l2, low)) / (high - low), 0.0, 1.0);
  }
  return std::clamp((none - low) / std::max(none - full, 1.0), 0.0, 1.0);
}

/// A line that is dirty outlives a clean one: rewriting an output buffer finds it in the L2 at this much longer
/// distances. Fitted on point-wise kernels whose output goes to one buffer again and again (full up to 0.70, none
/// from 1.17 of the capacity; the read ramp ends at 0.56 and 0.83).
constexpr double kDirtyOutlives = 1.35;

/// Distinct bytes that a launch touches, but for storages that it reads and writes: those count twice. Lists that are
/// written where they are read count once.
double touched(const KernelLaunch& launch) {
  double bytes = launch.read_bytes();
  for (const Access& write : launch.writes) {
    const bool in_place =
        write.list >= 0 && std::any_of(launch.reads.begin(), launch.reads.end(), [&](const Access& r) {
          return r.operand == Access::kUntracked && r.list == write.list;
        });
    if (!in_place) bytes += write.bytes;
  }
  return bytes;
}

}  // namespace

std::size_t lists_of(const KernelLaunch& launch) {
  std::size_t lists = 0;
  for (const auto* accesses : {&launch.reads, &launch.writes})
    for (const Access& access : *accesses) lists = std::max(lists, static_cast<std::size_t>(access.list + 1));
  return lists;
}

L2Residency::L2Residency(const L2Spec& l2)
    : l2_(l2),
      // A little farther than the end of the ramp, so that rounding decides nothing.
      all_gone_(1.001 * kDirtyOutlives * std::max(l2.resident_full, l2.resident_none) * l2.capacity.value() + 8.0) {}

void L2Residency::reserve(std::size_t launches, std::size_t storages) {
  for (int level = 0; level < kLevels; ++level)
    latest_[static_cast<std::size_t>(level)].reserve((launches >> kShift * level) + 1);
  gone_.reserve(launches);
  if (places_.size() <= storages) places_.resize(storages + 1);
}

double L2Residency::hit_share(double distance) const { return mean_hit(l2_, distance, distance); }

/// Calls `visit(slot, part of the storage, sweep, bytes)` for every storage that an access goes over, in its order.
/// Where sweeps are not asked for, that of the whole access stands for those of a list's tensors.
template <bool sweeps, typename Visit>
void L2Residency::for_each_part(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now,
                                Visit visit) {
  constexpr Swept kWhole{0.0, 1.0};
  const auto slot_of = [](const Operand& operand) { return static_cast<std::size_t>(operand.storage) + 1; };
  if (access.operand == Access::kTemporary) return visit(0, kWhole, now, access.bytes);
  if (access.operand >= 0) {
    const auto index = static_cast<std::size_t>(access.operand);
    if (index < operands.size()) visit(slot_of(operands[index]), kWhole, now, access.bytes);
    return;
  }
  const std::size_t tensors = lists > 0 ? operands.size() / lists : 0;
  if (access.list < 0 || tensors == 0) return;
  const std::span<const Operand> list = operands.subspan(static_cast<std::size_t>(access.list) * tensors, tensors);
  const auto first = static_cast<std::size_t>(access.from);
  std::size_t last = first;
  while (last < tensors && static_cast<double>(last) < access.to) ++last;
  // All between the first and the last are swept whole.
  const auto part_of = [&](std::size_t i) {
    if (i > first && i + 1 < last) return kWhole;
    const double tensor = static_cast<double>(i);
    return Swept{std::clamp(access.from - tensor, 0.0, 1.0), std::clamp(access.to - tensor, 0.0, 1.0)};
  };
  double all = 0.0, before = 0.0;
  if (sweeps)
    for (std::size_t i = first; i < last; ++i) {
      const Swept part = part_of(i);
      all += static_cast<double>(list[i].bytes) * (part.end - part.begin);
    }
  const double span = now.end - now.begin;
  Swept sweep = now;
  if (sweeps) sweep.end = now.begin;
  for (std::size_t i = first; i < last; ++i) {
    const Swept part = part_of(i);
    const double bytes = static_cast<double>(list[i].bytes) * (part.end - part.begin);
    if (bytes <= 0.0) continue;
    if (sweeps) {
      before += bytes;
      sweep = {sweep.end, now.begin + span * before / all};
    }
    visit(slot_of(list[i]), part, sweep, bytes);
  }
}

/// Moves `bytes` of what was last touched by launch `then` (negative: by none) to the launch at hand.
void L2Residency::move(std::int64_t then, double bytes) {
  const auto change = [&](std::vector<double>& sums, int shift) {
    if (then >= 0) sums[static_cast<std::size_t>(then >> shift)] -= bytes;
    sums[static_cast<std::size_t>(launch_ >> shift)] += bytes;
  };
  static_assert(kLevels == 3);
  change(latest_[0], 0);
  change(latest_[1], kShift);
  change(latest_[2], 2 * kShift);
}

/// Bytes last touched by launches after `then`, the one at hand aside.
double L2Residency::touched_after(std::int64_t then) const { return touched_between(then + 1, launch_); }

std::vector<L2Residency::Held> L2Residency::held() const {
  std::vector<Held> result;
  for (std::size_t slot = 1; slot < places_.size(); ++slot) {
    const Place& place = places_[slot];
    if (place.launch < 0) continue;
    const double since = touched_between(place.launch + 1, launch_ + 1);
    const double share = mean_hit(l2_, place.after.begin + since, place.after.end + since);
    if (share > 0.0) result.push_back({static_cast<StorageId>(slot - 1), share, place.bytes});
  }
  return result;
}

/// Bytes last touched by launches from `first` to before `last`.
double L2Residency::touched_between(std::int64_t first, std::int64_t last) const {
  if (first >= last) return 0.0;
  auto begin = static_cast<std::size_t>(first), end = static_cast<std::size_t>(last);
  constexpr std::size_t kRow = std::size_t{1} << kShift;
  double sum = 0.0;
  for (int level = 0;; ++level) {
    const double* sums = latest_[static_cast<std::size_t>(level)].data();
    if (level + 1 == kLevels || end - begin < 2 * kRow) {
      for (; begin < end; ++begin) sum += sums[begin];
      return std::max(0.0, sum);
    }
    // Up to whole rows, which the next level has the sums of.
    for (; begin % kRow != 0; ++begin) sum += sums[begin];
    for (; end % kRow != 0; --end) sum += sums[end - 1];
    begin >>= kShift;
    end >>= kShift;
  }
}

void L2Residency::pass_over(std::size_t launches) {
  launch_ += static_cast<std::int64_t>(launches);
  gone_.resize(gone_.size() + launches, 1);
}

bool L2Residency::forgets_before(const KernelLaunch& launch, double bytes_read_once) const {
  const auto whole = [](const Access& access) { return access.from == std::floor(access.from); };
  return bytes_read_once >= all_gone_ && launch.read_bytes() >= all_gone_ &&
         std::all_of(launch.reads.begin(), launch.reads.end(), whole) &&
         std::all_of(launch.writes.begin(), launch.writes.end(), whole);
}

bool L2Residency::forgets_before(const KernelLaunch& launch, std::span<const Operand> operands) const {
  if (launch.read_bytes() < all_gone_) return false;
  // An operand that is read twice counts once.
  std::vector<std::size_t> seen;
  double bytes = 0.0;
  const std::size_t lists = lists_of(launch);
  for (const Access& access : launch.reads)
    for_each_part<false>(access, operands, lists, {}, [&](std::size_t slot, Swept, Swept, double part) {
      seen.push_back(slot);
      bytes += part;
    });
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end() && forgets_before(launch, bytes);
}

/// The share of an access that hits.
double L2Residency::hits(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now,
                         double factor) {
  double hit = 0.0, all = 0.0;
  std::int64_t known = -1;  // the launch since which `between` bytes were touched
  double between = 0.0;
  /// What came after it in its own launch, in those between, and before it in this one; none where all is gone.
  const auto find = [&](std::size_t slot) -> const Place* {
    const Place& place = place_of(slot);
    if (place.launch < 0 || gone_[static_cast<std::size_t>(place.launch)] != 0) return nullptr;
    if (place.launch != known) between = touched_after(known = place.launch);
    if (between < all_gone_) return &place;
    gone_[static_cast<std::size_t>(place.launch)] = 1;  // what was touched since a launch only grows
    return nullptr;
  };
  const auto add = [&](std::size_t slot, Swept part, Swept sweep, double bytes) {
    all += bytes;
    const Place* place = find(slot);
    if (place == nullptr) return;
    const auto distance = [&](double share, double before) {
      const double since = place->after.begin + share * (place->after.end - place->after.begin) + between + before;
      return factor == 1.0 ? since : since / factor;
    };
    hit += bytes * mean_hit(l2_, distance(part.begin, sweep.begin), distance(part.end, sweep.end));
  };
  if (access.operand == Access::kUntracked) {
    // Most lists are gone as a whole: then nobody asks when each of their tensors is swept.
    bool any = false;
    for_each_part<false>(access, operands, lists, now,
                         [&](std::size_t slot, Swept, Swept, double) { any = any || find(slot) != nullptr; });
    if (!any) return 0.0;
  }
  for_each_part<true>(access, operands, lists, now, add);
  return all > 0.0 ? hit / all : 0.0;
}

/// Makes the launch at hand the last that touched what an access goes over.
void L2Residency::mark(const Access& access, std::span<const Operand> operands, std::size_t lists, Swept now) {
  for_each_part<true>(access, operands, lists, now, [&](std::size_t slot, Swept part, Swept sweep, double bytes) {
    Place& place = place_of(slot);
    if (place.launch != launch_) move(place.launch, bytes);
    if (part.begin <= 0.0) place.begun = now.end - sweep.begin;
    // What an earlier launch left of a tensor: the whole of it counts as swept when its end is.
    if (part.end >= 1.0) {
      place.after = {place.begun, now.end - sweep.end};
      place.launch = launch_;
      place.bytes = bytes;
    }
  });
}

void L2Residency::visit(const KernelLaunch& launch, std::span<const Operand> operands, std::vector<double>& out) {
  out.clear();
  ++launch_;
  for (int level = 0; level < kLevels; ++level) {
    std::vector<double>& sums = latest_[static_cast<std::size_t>(level)];
    const std::size_t rows = static_cast<std::size_t>(launch_ >> kShift * level) + 1;
    sums.resize(rows, 0.0);
  }
  gone_.push_back(0);
  const Swept now{0.0, touched(launch)};
  const std::size_t lists = lists_of(launch);
  for (const auto* accesses : {&launch.reads, &launch.writes})
    for (const Access& access : *accesses)
      out.push_back(hits(access, operands, lists, now, accesses == &launch.writes ? kDirtyOutlives : 1.0));
  for (const auto* accesses : {&launch.reads, &launch.writes})
    for (const Access& access : *accesses) mark(access, operands, lists, now);
}

namespace {

/// Inputs come anew with every repetition until all sets were used; outputs and temporaries are the same each time. An
/// untracked access is a list of tensors of its own, part of the inputs.
struct Buffer {
  int operand = 0;
  bool rotates = false;
  double bytes = 0.0;
  bool seen = false;
  Sweep last{};  ///< within one repetition
};

/// Of every access of every launch, the buffer it goes to, which is added to `buffers` where it is new.
std::vector<std::vector<int>> buffers_of(std::span<const KernelLaunch> launches, int inputs,
                                         std::vector<Buffer>& buffers) {
  // An op has a handful of operands: a list of them is quicker than a table.
  std::vector<int> operands;
  const auto place_of = [&](int operand) {
    for (const int place : operands)
      if (buffers[static_cast<std::size_t>(place)].operand == operand) return place;
    operands.push_back(static_cast<int>(buffers.size()));
    buffers.push_back({.operand = operand});
    return operands.back();
  };
  std::vector<std::vector<int>> keys;
  keys.reserve(launches.size());
  for (const KernelLaunch& launch : launches) {
    auto& row = keys.emplace_back();
    row.reserve(launch.reads.size() + launch.writes.size());
    std::size_t reads = 0;
    for (const auto* accesses : {&launch.reads, &launch.writes}) {
      for (std::size_t i = 0; i < accesses->size(); ++i) {
        const Access& access = (*accesses)[i];
        const bool untracked = access.operand == Access::kUntracked;
        int place = static_cast<int>(buffers.size());
        bool written_only = false;
        if (untracked && accesses == &launch.writes) {
          written_only = true;
          for (std::size_t r = 0; r < reads; ++r)
            if (launch.reads[r].operand == Access::kUntracked && launch.reads[r].list == access.list) {
              place = row[r];
              written_only = false;
            }
        }
        if (!untracked) place = place_of(access.operand);
        else if (place == static_cast<int>(buffers.size())) buffers.push_back({.operand = Access::kUntracked});
        Buffer& buffer = buffers[static_cast<std::size_t>(place)];
        buffer.rotates = untracked ? !written_only : access.operand >= 0 && access.operand < inputs;
        buffer.bytes = std::max(buffer.bytes, access.bytes);
        row.push_back(place);
      }
      reads = row.size();
    }
  }
  return keys;
}

}  // namespace

std::vector<std::vector<double>> repeated_residency(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                                    const L2Spec& l2, double partly_used, int shared) {
  std::vector<Buffer> buffers;
  const std::vector<std::vector<int>> keys = buffers_of(launches, inputs, buffers);
  if (shared >= 0)
    for (Buffer& buffer : buffers) buffer.rotates = buffer.rotates && buffer.operand != shared;
  double rotating = 0.0, fixed = 0.0;
  for (const Buffer& buffer : buffers) (buffer.rotates ? rotating : fixed) += buffer.bytes;
  const bool cold = input_sets <= 0;
  // Distinct bytes until an input set comes again; what it does not read of its inputs was written when they were made.
  const double cycle = std::max(rotating, kMadeSince * partly_used) * std::max(1, input_sets) + fixed;
  const double own = rotating + fixed;  // until an output buffer does

  std::vector<std::vector<double>> result;
  result.reserve(launches.size());
  double clock = 0.0;
  const double clean_room = l2.dirty_fraction * l2.capacity.value();
  double written = 0.0;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    const KernelLaunch& launch = launches[l];
    const Sweep now{clock, clock + touched(launch)};
    clock = now.end;
    auto& shares = result.emplace_back();
    shares.reserve(keys[l].size());
    for (std::size_t i = 0; i < keys[l].size(); ++i) {
      const Buffer& buffer = buffers[static_cast<std::size_t>(keys[l][i])];
      double share = 0.0;
      const double factor = i < launch.reads.size() ? 1.0 : kDirtyOutlives;
      if (buffer.seen) {
        share = mean_hit(l2, (now.begin - buffer.last.begin) / factor, (now.end - buffer.last.end) / factor);
      } else if (!cold) {
        const double distance = (buffer.rotates ? cycle : own) / factor;
        share = mean_hit(l2, distance, distance);
      } else if (i >= launch.reads.size() && buffer.bytes > 0.0) {
        share = std::clamp((clean_room - written) / buffer.bytes, 0.0,
                           1.0);  // a clean L2 takes writes until it is full of them
        written += buffer.bytes;
      }
      shares.push_back(share);
    }
    for (const int place : keys[l]) {
      buffers[static_cast<std::size_t>(place)].seen = true;
      buffers[static_cast<std::size_t>(place)].last = now;
    }
  }
  return result;
}

}  // namespace ridgeline
