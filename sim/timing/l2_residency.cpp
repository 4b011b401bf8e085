#include "sim/timing/l2_residency.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ridgeline {
namespace {

/// When a kernel swept a storage: bytes touched by all kernels before it began and after it ended.
struct Sweep {
  double begin = 0.0, end = 0.0;
};

/// The ramp integrated from distance 0 to `distance`.
double ramp_integral(const L2Spec& l2, double distance) {
  const double full = l2.resident_full * l2.capacity.value(), none = l2.resident_none * l2.capacity.value();
  if (distance <= full) return distance;
  const double end = std::min(distance, none);
  const double span = std::max(none - full, 1.0);
  return full + (end - full) - 0.5 * (end - full) * (end - full) / span;
}

/// Mean hit share when sweep `now` follows sweep `then` over the same bytes in the same order: the reuse distance
/// changes linearly from the first byte to the last.
double mean_hit(const L2Spec& l2, Sweep then, Sweep now) {
  const double first = std::max(0.0, now.begin - then.begin), last = std::max(0.0, now.end - then.end);
  const double low = std::min(first, last), high = std::max(first, last);
  if (high - low > 1.0) return std::clamp((ramp_integral(l2, high) - ramp_integral(l2, low)) / (high - low), 0.0, 1.0);
  const double full = l2.resident_full * l2.capacity.value(), none = l2.resident_none * l2.capacity.value();
  return std::clamp((none - low) / std::max(none - full, 1.0), 0.0, 1.0);
}

/// A line that is dirty outlives a clean one: rewriting an output buffer finds it in the L2 at this much longer
/// distances. Fitted on point-wise kernels whose output goes to one buffer again and again (full up to 0.70, none
/// from 1.17 of the capacity; the read ramp ends at 0.56 and 0.83).
constexpr double kDirtyOutlives = 1.35;

/// Calls until a list of tensors comes again: of the eight of an AdamW step, in which parameters, gradients, two states
/// and a temporary take turns, 2.5 on average.
constexpr double kListCalls = 3.0;

Sweep closer(Sweep sweep, double factor) { return {sweep.begin / factor, sweep.end / factor}; }

double touched(const KernelLaunch& launch) { return launch.read_bytes() + launch.written_bytes(); }

}  // namespace

L2Residency::L2Residency(const L2Spec& l2) : l2_(l2) {}

double L2Residency::hit_share(double distance) const { return mean_hit(l2_, {0.0, 0.0}, {distance, distance}); }

void L2Residency::visit(const KernelLaunch& launch, std::span<const Operand> operands, std::vector<double>& out) {
  out.clear();
  const Sweep now{clock_, clock_ + touched(launch)};
  const auto slot_of = [&](const Access& access) -> std::size_t {
    if (access.operand == Access::kTemporary) return 0;
    if (access.operand < 0 || static_cast<std::size_t>(access.operand) >= operands.size()) return kNowhere;
    return static_cast<std::size_t>(operands[static_cast<std::size_t>(access.operand)].storage) + 1;
  };
  const auto is_list = [](const Access& access) { return access.operand == Access::kUntracked; };
  if (std::any_of(launch.reads.begin(), launch.reads.end(), is_list) && launch.name != list_call_) {
    list_turn_ = list_begin_ >= 0.0 ? now.begin - list_begin_ : -1.0;
    list_begin_ = now.begin;
    list_call_ = launch.name;
  }
  for (const auto* accesses : {&launch.reads, &launch.writes}) {
    for (const Access& access : *accesses) {
      if (is_list(access)) {
        out.push_back(list_turn_ >= 0.0 ? hit_share(kListCalls * list_turn_) : 0.0);
        continue;
      }
      const std::size_t slot = slot_of(access);
      const bool known = slot != kNowhere && slot < last_begin_.size() && last_begin_[slot] >= 0.0;
      const double factor = accesses == &launch.writes ? kDirtyOutlives : 1.0;
      out.push_back(known ? mean_hit(l2_, closer({last_begin_[slot], last_end_[slot]}, factor), closer(now, factor))
                          : 0.0);
    }
  }
  clock_ = now.end;
  for (const auto* accesses : {&launch.reads, &launch.writes}) {
    for (const Access& access : *accesses) {
      const std::size_t slot = slot_of(access);
      if (slot == kNowhere) continue;
      if (slot >= last_begin_.size()) {
        last_begin_.resize(std::max(slot + 1, 2 * last_begin_.size()), -1.0);
        last_end_.resize(last_begin_.size(), -1.0);
      }
      last_begin_[slot] = now.begin;
      last_end_[slot] = now.end;
    }
  }
}

std::vector<std::vector<double>> repeated_residency(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                                    const L2Spec& l2, double partly_used) {
  // Buffers: inputs come anew with every repetition until all sets were used; outputs and temporaries are the same each
  // time. An untracked access is a list of tensors of its own, part of the inputs.
  struct Buffer {
    int operand = 0;
    bool rotates = false;
    double bytes = 0.0;
    bool seen = false;
    Sweep last{};  // within one repetition
  };
  std::vector<Buffer> buffers;
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
        if (!untracked) place = place_of(access.operand);
        else if (accesses == &launch.writes && i < reads && launch.reads[i].operand == Access::kUntracked)
          place = row[i];
        else buffers.push_back({.operand = Access::kUntracked});
        Buffer& buffer = buffers[static_cast<std::size_t>(place)];
        buffer.rotates = untracked || (access.operand >= 0 && access.operand < inputs);
        buffer.bytes = std::max(buffer.bytes, access.bytes);
        row.push_back(place);
      }
      reads = row.size();
    }
  }
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
        share = mean_hit(l2, closer(buffer.last, factor), closer(now, factor));
      } else if (!cold) {
        const double distance = (buffer.rotates ? cycle : own) / factor;
        share = mean_hit(l2, {0.0, 0.0}, {distance, distance});
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
