#include "sim/timing/repeated_case.h"

#include <algorithm>
#include <cmath>

#include "sim/timing/l2_residency.h"

namespace ridgeline {
namespace {

/// What is read or written until nothing of the start is left in the L2, in capacities of it.
constexpr double kForgotten = 4.0;

/// Launches whose lists of tensors have become operands of their own, behind the op's: they come anew with its inputs.
struct OwnOperands {
  std::vector<KernelLaunch> launches;
  std::vector<bool> rotates;        ///< by operand
  std::vector<std::int64_t> bytes;  ///< by operand
  double touched = 0;               ///< bytes of one repetition

  OwnOperands(std::span<const KernelLaunch> given, int inputs) : launches(given.begin(), given.end()) {
    for (const KernelLaunch& launch : launches)
      for (const auto* accesses : {&launch.reads, &launch.writes})
        for (const Access& access : *accesses) note(access.operand, access.bytes, access.operand < inputs);
    for (KernelLaunch& launch : launches) {
      for (std::size_t i = 0; i < launch.reads.size(); ++i) {
        if (launch.reads[i].operand != Access::kUntracked) continue;
        const int own = static_cast<int>(bytes.size());
        note(own, launch.reads[i].bytes, true);
        launch.reads[i].operand = own;
        for (Access& access : launch.writes)
          if (access.operand == Access::kUntracked && access.list == launch.reads[i].list) access.operand = own;
      }
      // Lists that are written only are the same every time, as other results are.
      for (Access& access : launch.writes) {
        if (access.operand != Access::kUntracked) continue;
        access.operand = static_cast<int>(bytes.size());
        note(access.operand, access.bytes, false);
      }
      touched += launch.read_bytes() + launch.written_bytes();
    }
  }

  void note(int operand, double size, bool anew) {
    if (operand < 0) return;
    const auto index = static_cast<std::size_t>(operand);
    if (index >= bytes.size()) {
      bytes.resize(index + 1);
      rotates.resize(index + 1);
    }
    bytes[index] = std::max(bytes[index], static_cast<std::int64_t>(size));
    rotates[index] = rotates[index] || anew;
  }
};

}  // namespace

std::vector<KernelTime> time_repeated(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                      double partly_used_bytes, const Gpu& gpu, const TimingEngine& engine,
                                      int shared) {
  std::vector<KernelTime> times(launches.size());
  const std::unique_ptr<TimingRun> run = engine.start_run();
  if (!run) {
    const auto residency = repeated_residency(launches, inputs, input_sets, gpu.l2, partly_used_bytes, shared);
    for (std::size_t i = 0; i < launches.size(); ++i)
      times[i] = engine.time(launches[i], residency.empty() ? Residency{} : Residency(residency[i]));
    return times;
  }
  OwnOperands own(launches, inputs);
  if (shared >= 0 && static_cast<std::size_t>(shared) < own.rotates.size())
    own.rotates[static_cast<std::size_t>(shared)] = false;
  const int sets = std::max(1, input_sets);
  const double refill = std::ceil(kForgotten * gpu.l2.capacity.value() /
                                  std::max(1.0, std::max(own.touched, kMadeSince * partly_used_bytes)));
  const int repetitions =
      input_sets <= 0 ? 1 : static_cast<int>(std::clamp(refill, 1.0, 2.0 * sets)) + (input_sets > 0 ? 1 : 0);
  const auto operands = own.bytes.size();
  std::vector<Operand> places(operands);
  // What a set holds besides what is read of it passed through the L2 when the set was made.
  double rotating = 0.0;
  for (std::size_t i = 0; i < operands; ++i) rotating += own.rotates[i] ? static_cast<double>(own.bytes[i]) : 0.0;
  KernelLaunch unread;
  unread.work = FixedWork{.what = FixedWork::What::helper};
  unread.reads = {{Access::kUntracked, kMadeSince * partly_used_bytes - rotating}};
  for (int r = 0; r < repetitions; ++r) {
    if (unread.reads[0].bytes > 0.0 && input_sets > 0) run->next(unread, {});
    for (std::size_t i = 0; i < operands; ++i)
      places[i] = {static_cast<StorageId>(i + (own.rotates[i] ? operands * static_cast<std::size_t>(r % sets) : 0)),
                   own.bytes[i]};
    for (std::size_t i = 0; i < launches.size(); ++i) times[i] = run->next(own.launches[i], places);
  }
  return times;
}

}  // namespace ridgeline
