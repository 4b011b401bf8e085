#include "sim/timeline/launch_repeats.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "sim/timeline/step_launches.h"

namespace ridgeline {
namespace {

/// Launches in a row by which an earlier place is recognised.
constexpr std::size_t kRecognised = 4;

class RepeatFinder {
 public:
  explicit RepeatFinder(const StepProgram& program) : program_(program), launches_(launches_before(program)) {
    for (const Action& action : program.steady_step())
      if (action.kind == Action::Kind::launch) launches_.push_back(&action);
    stands_for_.resize(program.storages.size());
  }

  LaunchRepeats find() {
    LaunchRepeats result;
    result.runs.resize(launches_.size());
    std::size_t known_until = 0, usual = 0;  // launches back in the longest run so far
    std::uint32_t longest = 0;
    for (std::size_t at = 0; at < launches_.size(); ++at) {
      const std::size_t recent = back_to_recent(at);
      if (at < known_until) continue;
      LaunchRepeats::Run run = run_of(at, usual);
      if (run.length < kRecognised && recent != usual) {
        const LaunchRepeats::Run other = run_of(at, recent);
        if (other.length > run.length) run = other;
      }
      if (run.length > longest) {
        longest = run.length;
        usual = run.back;
      }
      for (std::uint32_t i = 0; i < run.length; ++i) result.runs[at + i] = {run.back, run.length - i};
      known_until = at + run.length;
    }
    return result;
  }

 private:
  /// How far back the same launches began last; 0: nowhere.
  std::size_t back_to_recent(std::size_t at) {
    if (at + kRecognised > launches_.size()) return 0;
    std::uint64_t hash = 0;
    for (std::size_t i = at; i < at + kRecognised; ++i) hash = (hash ^ launches_[i]->index) * 0x9e3779b97f4a7c15u;
    std::size_t& last = last_[hash];  // counted from 1
    const std::size_t back = last > 0 ? at + 1 - last : 0;
    last = at + 1;
    return back;
  }

  LaunchRepeats::Run run_of(std::size_t at, std::size_t back) {
    if (back == 0 || back > at) return {};
    ++run_;
    std::size_t end = at;
    while (end < launches_.size() && same(*launches_[end - back], *launches_[end])) ++end;
    return {static_cast<std::uint32_t>(back), static_cast<std::uint32_t>(end - at)};
  }

  /// The same launch, on storages that stand for those of the other one in all of the run.
  bool same(const Action& before, const Action& now) {
    if (before.index != now.index || is_on_lists(now)) return false;
    const std::span<const Operand> old = program_.operands_of(before.call), fresh = program_.operands_of(now.call);
    if (old.size() != fresh.size()) return false;
    for (std::size_t i = 0; i < old.size(); ++i) {
      Pair &one = pair_of(old[i].storage), &other = pair_of(fresh[i].storage);
      if (one.later == kNone && other.earlier == kNone) {
        one.later = fresh[i].storage;
        other.earlier = old[i].storage;
      }
      if (one.later != fresh[i].storage || other.earlier != old[i].storage) return false;
    }
    return true;
  }
  /// Of hundreds of tensors, which are those of the whole network.
  [[nodiscard]] bool is_on_lists(const Action& action) const {
    const OpTrace& trace = *program_.trace;
    return std::holds_alternative<MultiTensor>(trace.ops[trace.calls[action.call].op]);
  }

  static constexpr StorageId kNone = UINT32_MAX;
  struct Pair {
    std::uint32_t run = 0;
    StorageId earlier = kNone, later = kNone;  ///< what it stands for, and what stands for it
  };
  Pair& pair_of(StorageId storage) {
    Pair& pair = stands_for_[storage];
    if (pair.run != run_) pair = {run_, kNone, kNone};
    return pair;
  }

  const StepProgram& program_;
  std::vector<const Action*> launches_;
  std::unordered_map<std::uint64_t, std::size_t> last_;
  std::vector<Pair> stands_for_;  ///< in the run at hand, by storage
  std::uint32_t run_ = 0;
};

}  // namespace

LaunchRepeats repeats_of_launches(const StepProgram& program) { return RepeatFinder(program).find(); }

}  // namespace ridgeline
