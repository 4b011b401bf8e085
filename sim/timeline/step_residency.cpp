#include "sim/timeline/step_residency.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/timeline/step_launches.h"
#include "sim/timing/l2_residency.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

constexpr double kResidencySteps = 32.0;

class Hash {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(const KernelLaunch& launch) {
    for (const auto* accesses : {&launch.reads, &launch.writes}) {
      add(static_cast<std::uint64_t>(accesses->size()));
      for (const Access& access : *accesses) {
        add(static_cast<std::uint64_t>(access.operand) << 32 ^ static_cast<std::uint32_t>(access.list));
        add(access.from), add(access.to), add(access.bytes);
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
};

/// Launches that decide what the steady step finds, in order: some before it, from the last after which nothing is left
/// of those in front of it, then its own.
struct DecidingLaunches {
  std::vector<const Action*> launches;
  std::size_t before = 0;   ///< of them, those before the step
  std::size_t skipped = 0;  ///< launches in front of all
};
DecidingLaunches deciding_launches(const StepProgram& program, const L2Spec& l2) {
  DecidingLaunches result;
  const L2Residency held(l2);
  const std::vector<const Action*> before = launches_before(program);
  const auto last = std::find_if(before.rbegin(), before.rend(), [&](const Action* action) {
    return held.forgets_before(program.launches[action->index], program.operands_of(action->call));
  });
  result.skipped = last == before.rend() ? 0 : static_cast<std::size_t>(before.rend() - last) - 1;
  result.before = before.size() - result.skipped;
  const std::span<const Action> step = program.steady_step();
  const auto is_launch = [](const Action& action) { return action.kind == Action::Kind::launch; };
  result.launches.reserve(result.before + static_cast<std::size_t>(std::count_if(step.begin(), step.end(), is_launch)));
  result.launches.assign(before.begin() + static_cast<std::ptrdiff_t>(result.skipped), before.end());
  for (const Action& action : step)
    if (is_launch(action)) result.launches.push_back(&action);
  return result;
}

/// Of a step that holds a repeated micro-batch once: each launch of each further run is visited.
StepResidency residency_of_repeated_step(const StepProgram& program, const L2Spec& l2) {
  StepResidency result;
  L2Residency held(l2);
  FurtherRuns further(program, l2);
  std::vector<double> shares;
  const DecidingLaunches deciding = deciding_launches(program, l2);
  const std::size_t launches = deciding.launches.size() - deciding.before;
  held.reserve(deciding.skipped + deciding.launches.size(), program.storages.size());
  result.packed.reserve(launches);
  result.begin.reserve(launches + 1);
  held.pass_over(deciding.skipped);
  for (const Action* action : std::span(deciding.launches).first(deciding.before))
    held.visit(program.launches[action->index], program.operands_of(action->call), shares);
  for (const Action& action : program.steady_step()) {
    keep_budget_often("timing kernels");
    if (further.begin_at(action))
      further.visit(
          [&](const KernelLaunch& launch, std::span<const Operand> operands) { held.visit(launch, operands, shares); });
    if (action.kind != Action::Kind::launch) continue;
    held.visit(program.launches[action.index], program.operands_of(action.call), shares);
    result.packed.push_back(quantise(shares));
    result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
    result.shares.insert(result.shares.end(), shares.begin(), shares.end());
  }
  result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
  return result;
}

/// Cuts the launches into stretches and works out what is found in those that are not known. A stretch begins with a
/// launch after which nothing older is left, and ends with the next such launch, which belongs to both: what it finds
/// itself is of the first. Storages are numbered within the stretch, as their names decide nothing.
class ResidencyStretches {
 public:
  /// `launches`: of the program, in order, from number `first` of `repeats` on.
  ResidencyStretches(const StepProgram& program, const L2Spec& l2, const ResidencyInputs& inputs, KnownStretches& known,
                     std::span<const Action* const> launches, std::size_t first)
      : program_(program),
        l2_(l2),
        nothing_(l2),
        inputs_(inputs),
        known_(known),
        launches_(launches),
        first_(first),
        starting_at_(launches.size()) {
    numbers_.resize(program.storages.size() + 1);
  }

  /// Of the launches [begin, end]; `end` is set.
  const StretchResidency& next(std::size_t begin, std::size_t& end) {
    const StretchResidency* stretch = as_before(begin);
    if (stretch != nullptr) end = begin + stretch->packed.size() - 1;
    else stretch = &looked_up(begin, end);
    if (!on_lists_) starting_at_[begin] = stretch;
    return *stretch;
  }

 private:
  /// A stretch of this program that comes again here; null where none is known.
  [[nodiscard]] const StretchResidency* as_before(std::size_t begin) {
    on_lists_ = false;
    if (inputs_.repeats == nullptr) return nullptr;
    const LaunchRepeats::Run& run = inputs_.repeats->runs[first_ + begin];
    if (run.length == 0 || run.back > begin) return nullptr;
    const StretchResidency* before = starting_at_[begin - run.back];
    return before != nullptr && before->packed.size() <= run.length ? before : nullptr;
  }

  const StretchResidency& looked_up(std::size_t begin, std::size_t& end) {
    const std::uint64_t key = read(begin, end);
    std::shared_ptr<const StretchResidency> found = known_.find(key);
    if (found == nullptr || found->packed.size() != end + 1 - begin) {
      found = visit(launches_.subspan(begin, end + 1 - begin));
      known_.keep(key, found);
    }
    held_.push_back(std::move(found));
    return *held_.back();
  }

  /// Finds the end of a stretch; a hash of what it touches.
  std::uint64_t read(std::size_t begin, std::size_t& end) {
    const auto key = read_as(Storages::numbered, begin, end);
    on_lists_ = !key;
    return key ? *key : *read_as(Storages::named, begin, end);
  }
  enum class Storages : std::uint8_t {
    numbered,  ///< in the order in which the stretch touches them
    named      ///< as the trace does
  };
  /// Nothing where the stretch touches lists, whose storages ListOperands names.
  std::optional<std::uint64_t> read_as(Storages as, std::size_t begin, std::size_t& end) {
    ++stretch_;
    count_ = 0;
    half_swept_.clear();
    Hash all;
    all.add(static_cast<std::uint64_t>(as));
    for (end = begin;; ++end) {
      const Action& action = *launches_[end];
      const KernelLaunch& launch = program_.launches[action.index];
      const std::span<const Operand> operands = program_.operands_of(action.call);
      all.add(inputs_.accesses[action.index]);
      const bool cuts = half_swept_.empty();
      double read_once = 0.0;
      if (const ListOperands::OfCall* lists = inputs_.lists.of(action.call)) {
        if (as == Storages::numbered) return std::nullopt;
        all.add(lists->hash);
        read_once = bytes_read_once(*lists, launch);
        for (const auto* accesses : {&launch.reads, &launch.writes})
          for (const Access& access : *accesses) note_half_swept(launch, access, operands);
      } else {
        read_once = touch(launch, operands, as, all);
      }
      const bool is_last = end + 1 == launches_.size();
      if (is_last || (end > begin && cuts && nothing_.forgets_before(launch, read_once))) return all.value();
    }
  }

  /// Adds what a launch touches. The bytes that it reads; 0 where it reads some twice, or nobody knows of what.
  double touch(const KernelLaunch& launch, std::span<const Operand> operands, Storages as, Hash& all) {
    ++launch_;
    double bytes = 0.0;
    bool once = true;
    const auto number_of_operand = [&](const Access& access) -> Number& {
      const auto operand = static_cast<std::size_t>(std::max(access.operand, 0));
      const bool known = access.operand >= 0 && operand < operands.size();
      once = once && (known || access.operand == Access::kTemporary);
      const std::size_t slot = known ? std::size_t{operands[operand].storage} + 1 : 0;
      Number& number = number_of(slot);
      all.add(as == Storages::named ? static_cast<std::uint64_t>(slot) : std::uint64_t{number.number});
      return number;
    };
    for (const Access& access : launch.reads) {
      once = std::exchange(number_of_operand(access).read_by, launch_) != launch_ && once;
      bytes += access.bytes;
    }
    for (const Access& access : launch.writes) number_of_operand(access);
    return once ? bytes : 0.0;
  }

  struct Number {
    std::uint32_t stretch = 0, number = 0, read_by = 0;
  };
  Number& number_of(std::size_t slot) {
    Number& number = numbers_[slot];
    if (number.stretch != stretch_) number = {stretch_, count_++, 0};
    return number;
  }

  /// Of a list of tensors, the one that a launch leaves in its middle: the next launch of its operation goes on there.
  void note_half_swept(const KernelLaunch& launch, const Access& access, std::span<const Operand> operands) {
    const double first = std::floor(access.from), last = std::floor(access.to);
    if (access.list < 0 || (first == access.from && last == access.to)) return;
    const std::size_t tensors = operands.size() / lists_of(launch);
    if (std::ceil(access.to) > static_cast<double>(tensors)) return;  // it does not say which tensors its lists hold
    const auto tensor = [&](double at) {
      const std::size_t place = static_cast<std::size_t>(access.list) * tensors + static_cast<std::size_t>(at);
      return std::pair(access.list, operands[place].storage);
    };
    if (first < access.from && last > first) std::erase(half_swept_, tensor(first));
    if (last < access.to) half_swept_.push_back(tensor(last));
  }

  [[nodiscard]] std::shared_ptr<const StretchResidency> visit(std::span<const Action* const> launches) {
    auto found = std::make_shared<StretchResidency>();
    found->packed.reserve(launches.size());
    found->begin.reserve(launches.size() + 1);
    L2Residency held(l2_);
    held.reserve(launches.size(), count_);
    std::vector<double> shares;
    std::vector<Operand> numbered;
    std::uint32_t call = Action::kNoCall;
    for (const Action* action : launches) {
      keep_budget_often("timing kernels");
      if (action->call != std::exchange(call, action->call) || numbered.empty()) {
        numbered.clear();
        for (const Operand& operand : program_.operands_of(action->call))
          numbered.push_back({number_of(std::size_t{operand.storage} + 1).number, operand.bytes});
      }
      held.visit(program_.launches[action->index], numbered, shares);
      found->packed.push_back(quantise(shares));
      found->begin.push_back(static_cast<std::uint32_t>(found->shares.size()));
      found->shares.insert(found->shares.end(), shares.begin(), shares.end());
    }
    found->begin.push_back(static_cast<std::uint32_t>(found->shares.size()));
    return found;
  }

  const StepProgram& program_;
  const L2Spec& l2_;
  const L2Residency nothing_;
  const ResidencyInputs& inputs_;
  KnownStretches& known_;
  std::span<const Action* const> launches_;
  std::size_t first_;
  std::vector<const StretchResidency*> starting_at_;           ///< by launch; null of those on lists of tensors too
  std::vector<std::shared_ptr<const StretchResidency>> held_;  ///< those of `starting_at_`
  bool on_lists_ = false;                                      ///< the stretch at hand
  std::vector<Number> numbers_;  ///< in the stretch at hand, of storages; the first of memory internal to operations
  std::uint32_t stretch_ = 0, count_ = 0, launch_ = 0;
  Hash numbered_, named_;                              ///< of the stretch at hand
  std::vector<std::pair<int, StorageId>> half_swept_;  ///< by list
};

}  // namespace

void StepResidency::append(const StretchResidency& stretch, std::size_t from, std::size_t until) {
  packed.insert(packed.end(), &stretch.packed[from], stretch.packed.data() + until);
  const std::uint32_t first = stretch.begin[from], moved = static_cast<std::uint32_t>(shares.size()) - first;
  begin.resize(begin.size() + until - from);
  std::uint32_t* const added = &begin[begin.size() - (until - from)];
  for (std::size_t i = from; i < until; ++i) added[i - from] = stretch.begin[i] + moved;
  shares.insert(shares.end(), stretch.shares.data() + first, stretch.shares.data() + stretch.begin[until]);
}

std::uint64_t quantise(std::vector<double>& shares) {
  std::uint64_t packed = shares.size();
  for (double& share : shares) {
    const double steps = std::round(share * kResidencySteps);
    share = steps / kResidencySteps;
    packed = packed * 0x100000001b3u + static_cast<std::uint64_t>(steps) + 1;
  }
  return packed;
}

std::vector<std::uint64_t> accesses_of_launches(const StepProgram& program) {
  std::vector<std::uint64_t> accesses;
  accesses.reserve(program.launches.size());
  for (const KernelLaunch& launch : program.launches) {
    Hash hash;
    hash.add(launch);
    accesses.push_back(hash.value());
  }
  return accesses;
}

StepResidency residency_of_step(const StepProgram& program, const L2Spec& l2) {
  KnownStretches own;
  const ListOperands lists(*program.trace);
  const std::vector<std::uint64_t> accesses = accesses_of_launches(program);
  return residency_of_step(program, l2, {accesses, lists}, own);
}

StepResidency residency_of_step(const StepProgram& program, const L2Spec& l2, const ResidencyInputs& inputs,
                                KnownStretches& known) {
  if (program.repeat_of_steady_step().times > 1) return residency_of_repeated_step(program, l2);
  StepResidency result;
  const DecidingLaunches deciding = deciding_launches(program, l2);
  const std::span<const Action* const> all = deciding.launches;
  result.packed.reserve(all.size() - deciding.before);
  result.begin.reserve(all.size() - deciding.before + 1);
  ResidencyStretches stretches(program, l2, inputs, known, all, deciding.skipped);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const StretchResidency& found = stretches.next(begin, end);
    // What the first launch finds is of the stretch before; in front of all there is none.
    const std::size_t from = std::max(begin == 0 ? 0 : begin + 1, deciding.before);
    if (from <= end) result.append(found, from - begin, end + 1 - begin);
    if (end + 1 == all.size()) break;
  }
  result.begin.push_back(static_cast<std::uint32_t>(result.shares.size()));
  return result;
}

std::uint64_t sequence_of_launches(const StepProgram& program) {
  Hash all;
  const auto add = [&](const Action& action) {
    all.add(static_cast<std::uint64_t>(action.index));
    all.add(static_cast<std::uint64_t>(action.call));
  };
  for (const Action* action : launches_before(program)) add(*action);
  for (const Action& action : program.steady_step())
    if (action.kind == Action::Kind::launch) add(action);
  const RepeatedActions repeat = program.repeat_of_steady_step();
  all.add(static_cast<std::uint64_t>(repeat.times));
  if (repeat.times > 1)
    for (std::uint32_t i = repeat.actions.begin; i < repeat.actions.end; ++i) {
      const Action& action = program.actions[i];
      all.add(static_cast<std::uint64_t>(action.kind));
      if (action.kind == Action::Kind::allocate) all.add(static_cast<std::uint64_t>(action.index));
      if (action.kind == Action::Kind::allocate)
        all.add(static_cast<std::uint64_t>(program.storages[action.index].bytes));
    }
  return all.value();
}

ResidencyKey residency_key(std::span<const std::uint64_t> accesses, std::uint64_t sequence, const L2Spec& l2) {
  Hash all;
  all.add(sequence);
  all.add(static_cast<std::uint64_t>(accesses.size()));
  for (const std::uint64_t launch : accesses) all.add(launch);
  return {all.value(), l2.capacity.value(), l2.resident_full, l2.resident_none};
}

}  // namespace ridgeline
