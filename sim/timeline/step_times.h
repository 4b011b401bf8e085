// The duration of every kernel of the steady step, with the state of the L2 carried from launch to launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "sim/program/step_program.h"
#include "sim/timeline/step_residency.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Times of kernels that programs of one GPU and engine share, by their number in LoweredOps and what they find in the
/// L2. Safe to share between threads.
class KernelTimes {
 public:
  /// Beyond `most` entries all are forgotten.
  explicit KernelTimes(std::size_t most) : most_(most) {}
  std::optional<KernelTime> find(std::uint64_t launch, std::uint64_t residency) const;
  void keep(std::uint64_t launch, std::uint64_t residency, const KernelTime& time);

 private:
  /// Of a hash table at most half full, so that most searches for what nobody timed yet look at one entry.
  struct Entry {
    static constexpr std::uint32_t kEmpty = UINT32_MAX;
    std::uint64_t launch = 0, residency = 0;
    std::uint32_t time = kEmpty;  ///< entry of `times_`
  };
  /// The entry of a kernel, or the one where it belongs.
  [[nodiscard]] std::size_t place_of(std::uint64_t launch, std::uint64_t residency) const;
  void grow();
  std::size_t most_;
  mutable std::shared_mutex mutex_;
  std::vector<Entry> entries_;  ///< a power of two of them
  std::vector<KernelTime> times_;
};

/// The time of a collective alone: links decide it, no engine of one GPU.
using CollectiveTimer = std::function<KernelTime(const Collective&)>;

struct TokenTimes;

/// Times of the launches of a steady step, each different one once.
struct StepTimes {
  std::vector<KernelTime> different;           ///< each of launches of one kernel
  std::vector<std::uint32_t> of_launch;        ///< entry of `different`, of each launch in order
  std::shared_ptr<const TokenTimes> tokens{};  ///< behind which the launches of tokens follow that are not written out
  [[nodiscard]] std::size_t size() const { return of_launch.size(); }
  [[nodiscard]] const KernelTime& operator[](std::size_t launch) const { return different[of_launch[launch]]; }
  /// One entry a launch.
  [[nodiscard]] std::vector<KernelTime> listed() const;
};

/// Of the launches of `program.steady_step()`. Equal kernels that find equal shares of their operands in the L2 (to
/// 1/32) are timed once. Pure: the same input gives the same times on any thread.
/// `shared` remembers times of the same engine on the same GPU, for a program made with the LoweredOps that it belongs
/// to. `residency`: of this program on this GPU, where it is known already.
StepTimes time_step(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu,
                    KernelTimes* shared = nullptr, const CollectiveTimer& collectives = {},
                    const StepResidency* residency = nullptr);
/// The same with one entry a launch.
std::vector<KernelTime> time_kernels(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu,
                                     KernelTimes* shared = nullptr, const CollectiveTimer& collectives = {},
                                     const StepResidency* residency = nullptr);

}  // namespace ridgeline
