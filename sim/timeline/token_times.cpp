#include "sim/timeline/token_times.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/program/op_map.h"
#include "sim/timeline/token_stretches.h"
#include "sim/timing/l2_residency.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

using Modules = std::shared_ptr<const std::vector<TokenLaunch::Share>>;

/// Where each kernel of a token stands.
struct KernelsOfShape {
  std::vector<std::uint32_t> kernel_of;
  std::vector<std::uint32_t> place;  ///< of each kernel, the first
  std::vector<std::int64_t> count;
  std::vector<Modules> modules;
  KernelsOfShape(const TokenLaunches& launches, std::size_t shape, std::vector<std::uint32_t> of, std::size_t kernels)
      : kernel_of(std::move(of)), place(kernels), count(kernels), modules(kernels) {
    std::vector<std::map<std::uint16_t, double>> in(kernels);
    const TokenLaunches::Places& places = launches.places(shape);
    for (auto i = static_cast<std::uint32_t>(places.size()); i-- > 0;) {
      const std::uint32_t kernel = kernel_of[i];
      place[kernel] = i;
      ++count[kernel];
      in[kernel][launches.program().trace->calls[launches.call(places[i])].module] += 1.0;
    }
    for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
      auto all = std::make_shared<std::vector<TokenLaunch::Share>>();
      for (const auto& [module, runs] : in[kernel]) all->push_back({module, runs / static_cast<double>(count[kernel])});
      modules[kernel] = std::move(all);
    }
  }
};

/// Kernels that are one launch for whoever asks for times.
struct Together {
  std::int64_t count = 0;
  Modules modules;
  /// Those of which `group_of` has this number.
  Together(const KernelsOfShape& kernels, std::span<const std::uint32_t> group_of, std::uint32_t number) {
    std::map<std::uint16_t, double> in;
    for (std::size_t kernel = 0; kernel < group_of.size(); ++kernel) {
      if (group_of[kernel] != number) continue;
      count += kernels.count[kernel];
      for (const TokenLaunch::Share& one : *kernels.modules[kernel])
        in[one.module] += one.share * static_cast<double>(kernels.count[kernel]);
    }
    auto all = std::make_shared<std::vector<TokenLaunch::Share>>();
    for (const auto& [module, runs] : in) all->push_back({module, runs / static_cast<double>(count)});
    modules = std::move(all);
  }
};

/// Kernels and times of a part of the tokens, as TokenTimes has it of all.
struct Part {
  std::vector<KernelTime> times;
  std::vector<TokenTimes::Launch> launches;
  struct Key {
    std::uint32_t shape = 0, kernel = 0;
    std::uint64_t packed = 0;
  };
  std::vector<Key> keys;  ///< beside `launches`
  std::vector<std::uint32_t> held;
};

/// Tokens of a part in their order: of each, what its kernels find, then what they are in the part.
class PartTimer {
 public:
  PartTimer(const TokenLaunches& launches, const TimingEngine& engine, Part& part)
      : launches_(launches), engine_(engine), part_(part) {}

  /// True for the first of its shape, of which all kernels have to be taken; of others those that differ from the token
  /// before do.
  bool begin(std::int64_t token, std::uint32_t shape, const KernelsOfShape& kernels,
             const TokenLaunches::Places& places) {
    token_ = token;
    kernels_ = &kernels;
    places_ = &places;
    const bool first = std::exchange(shape_, shape) != shape;
    if (first) {
      held_.assign(kernels.place.size(), kNone);
      group_of_ = held_;
      packed_.assign(kernels.place.size(), 0);
      groups_.clear();
    }
    std::swap(groups_, groups_before_);
    groups_.clear();
    return first;
  }

  void take(std::uint32_t kernel, std::vector<double>& found) {
    const TokenLaunches::Place& place = (*places_)[kernels_->place[kernel]];
    const KernelLaunch& launch = launches_.launch(place, token_);
    const std::uint64_t packed = quantise(found);
    if (place.varying != TokenLaunches::kFixed) return take_varying(kernel, launch, packed, found);
    if (held_[kernel] != kNone && packed_[kernel] == packed) return;
    packed_[kernel] = packed;
    const auto next = static_cast<std::uint32_t>(part_.launches.size());
    held_[kernel] = fixed_.try_emplace({shape_, kernel, packed}, next).first->second;
    if (held_[kernel] != next) return;
    part_.launches.push_back(
        {&launch, launches_.call(place), -1, 0, timed(launch, found), 0, kernels_->modules[kernel]});
    part_.keys.push_back({shape_, kernel, packed});
  }

  void end() {
    for (std::uint32_t number = 0; number < groups_.size(); ++number) end_group(number);
    for (std::size_t kernel = 0; kernel < held_.size(); ++kernel) {
      const bool varies = group_of_[kernel] != kNone;
      if (!varies) part_.launches[held_[kernel]].runs += kernels_->count[kernel];
      part_.held.push_back(varies ? groups_[group_of_[kernel]].held : held_[kernel]);
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Kernels of a token whose operation differs from token to token, which do the same and find the same.
  struct Group {
    const KernelLaunch* launch = nullptr;
    std::uint64_t packed = 0, members = 0;  ///< hash of which kernels they are
    std::uint32_t place = 0, time = 0, held = 0;
  };
  static std::vector<Group>::iterator find(std::vector<Group>& groups, const KernelLaunch& launch,
                                           std::uint64_t packed) {
    return std::find_if(groups.begin(), groups.end(),
                        [&](const Group& group) { return group.launch == &launch && group.packed == packed; });
  }
  std::uint32_t timed(const KernelLaunch& launch, const std::vector<double>& found) {
    part_.times.push_back(engine_.time(launch, found));
    return static_cast<std::uint32_t>(part_.times.size() - 1);
  }
  void take_varying(std::uint32_t kernel, const KernelLaunch& launch, std::uint64_t packed,
                    const std::vector<double>& found) {
    auto group = find(groups_, launch, packed);
    if (group == groups_.end()) {
      const auto before = find(groups_before_, launch, packed);
      const std::uint32_t time = before != groups_before_.end() ? before->time : timed(launch, found);
      group = groups_.insert(groups_.end(), {&launch, packed, 0, kernels_->place[kernel], time, 0});
    }
    group->members = (group->members ^ (kernel + 1)) * 0x9e3779b97f4a7c15u;
    group->members ^= group->members >> 29;
    group_of_[kernel] = static_cast<std::uint32_t>(group - groups_.begin());
  }
  void end_group(std::uint32_t number) {
    Group& group = groups_[number];
    auto known = together_.find({shape_, group.members});
    if (known == together_.end())
      known = together_.emplace(std::pair(shape_, group.members), Together(*kernels_, group_of_, number)).first;
    const auto before = find(groups_before_, *group.launch, group.packed);
    if (before != groups_before_.end() && before->members == group.members) {
      group.held = before->held;
    } else {
      const TokenLaunches::Place& place = (*places_)[group.place];
      group.held = static_cast<std::uint32_t>(part_.launches.size());
      part_.launches.push_back(
          {group.launch, launches_.call(place), token_, place.varying, group.time, 0, known->second.modules});
      part_.keys.push_back({});
    }
    part_.launches[group.held].runs += known->second.count;
  }

  const TokenLaunches& launches_;
  const TimingEngine& engine_;
  Part& part_;
  std::int64_t token_ = 0;
  std::uint32_t shape_ = kNone;
  const KernelsOfShape* kernels_ = nullptr;
  const TokenLaunches::Places* places_ = nullptr;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> fixed_;  ///< entries of launches
  std::map<std::pair<std::uint32_t, std::uint64_t>, Together> together_;                    ///< by shape and members
  std::vector<std::uint32_t> held_, group_of_;                                              ///< of each kernel
  std::vector<std::uint64_t> packed_;                                                       ///< likewise
  std::vector<Group> groups_, groups_before_;
};

class TokenTimer {
 public:
  TokenTimer(const StepProgram& program, const TimingEngine& engine, const L2Spec& l2)
      : launches_(program), engine_(engine), l2_(l2) {
    const L2Residency nothing(l2);
    std::vector<Operand> operands;
    for (const TokenLaunches::Place& place : launches_.places(launches_.shape_of(-1))) {
      if (place.varying != TokenLaunches::kFixed) continue;
      launches_.operands(place, 0, operands);
      if (nothing.forgets_before(*place.fixed, operands)) cutting_.push_back(place.fixed);
    }
    std::sort(cutting_.begin(), cutting_.end());
  }

  TokenTimes time() {
    const std::int64_t tokens = launches_.loop().tokens();
    make_shapes();
    std::vector<Part> parts(static_cast<std::size_t>((tokens + kTokensOfPart - 1) / kTokensOfPart));
    if (cutting_.empty()) {
      WholeTokens whole(launches_, l2_);
      visit_before_tokens(whole, launches_, [](const std::vector<double>&) {});
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const std::int64_t begin = static_cast<std::int64_t>(part) * kTokensOfPart;
        time_part(parts[part], begin, std::min(tokens, begin + kTokensOfPart), &whole);
      }
    } else {
      beside_each_other(tokens, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
        time_part(parts[part], begin, end, nullptr);
      });
    }
    return join(std::move(parts));
  }

 private:
  void make_shapes() {
    for (std::int64_t token = 0; token < launches_.loop().tokens(); ++token) {
      const std::pair both{launches_.shape_of(token), launches_.shape_of(token - 1)};
      if (stretches_.contains(both)) continue;
      if (cutting_.empty()) {
        std::vector<std::uint32_t> each(launches_.places(both.first).size());
        for (std::uint32_t i = 0; i < each.size(); ++i) each[i] = i;
        const std::size_t kernels = each.size();
        kernels_.emplace(both, KernelsOfShape(launches_, both.first, std::move(each), kernels));
        stretches_.try_emplace(both);
        continue;
      }
      const auto cuts = [&](const TokenLaunches::Place& place) {
        return place.varying == TokenLaunches::kFixed &&
               std::binary_search(cutting_.begin(), cutting_.end(), place.fixed);
      };
      const StretchesOfShape made(launches_, both.first, both.second, cuts);
      stretches_.emplace(both, made.different());
      kernels_.emplace(both, KernelsOfShape(launches_, both.first, made.kernel_of(), made.kernels()));
    }
    for (const auto& [both, kernels] : kernels_) {
      number_of_[both] = static_cast<std::uint32_t>(times_.shapes.size());
      times_.shapes.push_back({program_of(both.first), kernels.kernel_of, kernels.place.size()});
    }
  }

  /// Two tokens of a shape.
  StepProgram program_of(std::size_t shape) const {
    const StepProgram& whole = launches_.program();
    const OpTrace& trace = *whole.trace;
    StepProgram program;
    program.trace = &trace;
    const TokenLaunches::Places& places = launches_.places(shape);
    std::int64_t token = -1;
    while (launches_.shape_of(token) != shape) ++token;
    for (const TokenLaunches::Place& place : places)
      program.launches.share(whole.token_kernels, std::span(&launches_.launch(place, token), 1));
    std::vector<Action> actions;
    for (int i = 0; i < 2; ++i) {
      std::uint32_t call = 0, at = 0;
      const StepRange body = launches_.loop().places.back().body;
      for (std::uint32_t k = body.begin; k < body.end; ++k) {
        const Record& record = trace.records[k];
        if (record.kind == Record::Kind::host)
          actions.push_back({Action::Kind::host, record.host_class, 0, record.index});
        if (record.kind == Record::Kind::wait_for_gpu) actions.push_back({Action::Kind::wait});
        if (record.kind != Record::Kind::op) continue;
        for (; at < places.size() && places[at].call == call; ++at)
          actions.push_back({Action::Kind::launch, HostClass::other, 0, at, record.index});
        ++call;
      }
    }
    program.steps = {{0, static_cast<std::uint32_t>(actions.size())}};
    program.actions = std::move(actions);
    return program;
  }

  void time_part(Part& part, std::int64_t begin, std::int64_t end, WholeTokens* whole) const {
    PartTimer timer(launches_, engine_, part);
    for (std::int64_t token = begin; token < end; ++token) {
      keep_budget("timing kernels");
      const std::pair both{launches_.shape_of(token), launches_.shape_of(token - 1)};
      const bool first = timer.begin(token, number_of_.at(both), kernels_.at(both), launches_.places(both.first));
      const auto take = [&](std::uint32_t kernel, std::vector<double>& found) { timer.take(kernel, found); };
      if (whole != nullptr)
        whole->visit(token, 0,
                     [&](std::size_t i, std::vector<double>& found) { take(static_cast<std::uint32_t>(i), found); });
      else
        for (const Stretch& stretch : stretches_.at(both))
          if (first || stretch.varies) visit(stretch, both, token, take);
      timer.end();
    }
  }

  template <typename Take>
  void visit(const Stretch& stretch, std::pair<std::uint32_t, std::uint32_t> shapes, std::int64_t token,
             const Take& take) const {
    L2Residency held(l2_);
    held.reserve(stretch.visited.size(), stretch.storages);
    std::vector<double> shares;
    std::uint32_t kernel = stretch.kernel;
    for (std::size_t i = 0; i < stretch.visited.size(); ++i) {
      const Stretch::Visited& one = stretch.visited[i];
      const TokenLaunches::Place& place =
          launches_.places(one.of_token_before ? shapes.second : shapes.first)[one.place];
      held.visit(launches_.launch(place, one.of_token_before ? token - 1 : token), one.operands, shares);
      if (i >= stretch.first) take(kernel++, shares);
    }
  }

  TokenTimes join(std::vector<Part> parts) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> fixed;
    std::int64_t token = 0;
    for (Part& part : parts) {
      std::vector<std::uint32_t> number(part.launches.size()), time_of(part.times.size(), UINT32_MAX);
      for (std::size_t i = 0; i < part.launches.size(); ++i) {
        TokenTimes::Launch& launch = part.launches[i];
        auto entry = static_cast<std::uint32_t>(times_.launches.size());
        const Part::Key& key = part.keys[i];
        if (launch.token < 0) entry = fixed.try_emplace({key.shape, key.kernel, key.packed}, entry).first->second;
        number[i] = entry;
        if (entry < times_.launches.size()) {
          times_.launches[entry].runs += launch.runs;
          continue;
        }
        std::uint32_t& time = time_of[launch.time];
        if (time == UINT32_MAX) {
          time = static_cast<std::uint32_t>(times_.times.size());
          times_.times.push_back(std::move(part.times[launch.time]));
        }
        launch.time = time;
        times_.launches.push_back(std::move(launch));
      }
      const std::int64_t end = std::min(launches_.loop().tokens(), token + kTokensOfPart);
      std::size_t at = 0;
      for (; token < end; ++token) {
        const std::uint32_t shape = number_of_.at({launches_.shape_of(token), launches_.shape_of(token - 1)});
        times_.tokens.push_back({shape, times_.held.size()});
        for (std::size_t k = 0; k < times_.shapes[shape].kernels; ++k) times_.held.push_back(number[part.held[at++]]);
      }
      part = {};
    }
    return std::move(times_);
  }

  TokenLaunches launches_;
  const TimingEngine& engine_;
  const L2Spec& l2_;
  std::vector<const KernelLaunch*> cutting_;  ///< sorted
  /// By shape and that of the token before.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Stretch>> stretches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, KernelsOfShape> kernels_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number_of_;
  TokenTimes times_;
};

}  // namespace

TokenTimes time_tokens(const StepProgram& program, const TimingEngine& engine, const L2Spec& l2) {
  return TokenTimer(program, engine, l2).time();
}

ProgramOfTokens with_token_launches(const StepProgram& program, const TokenTimes& tokens) {
  OpTrace trace = *program.trace;
  const TokenLoop& loop = *trace.tokens;
  ProgramOfTokens made{nullptr, program};
  std::vector<Action> actions(program.actions.begin(), program.actions.end());
  OpMap<std::uint32_t> ops;  // of the trace
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) ops.get(trace.ops[i], hash_of(trace.ops[i]), [&] { return i; });
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint32_t> calls;  // of a token's operation, and call
  std::map<std::uint32_t, std::uint32_t> groups;                          // by call of the body
  for (const TokenTimes::Launch& launch : tokens.launches) {
    std::uint32_t call = launch.call, group = trace.calls[call].op;
    if (launch.token >= 0) {
      const auto [known, fresh] =
          calls.try_emplace({launch.token, launch.call}, static_cast<std::uint32_t>(trace.calls.size()));
      if (fresh) {
        Call own = trace.calls[call];
        Op op = loop.op(launch.varying, loop.first + launch.token);
        const auto number = static_cast<std::uint32_t>(trace.ops.size());
        own.op = ops.get(op, hash_of(op), [&] { return number; });
        if (own.op == number) trace.ops.push_back(std::move(op));
        trace.calls.push_back(own);
      }
      call = known->second;
      group = groups.try_emplace(launch.call, trace.calls[call].op).first->second;
    }
    actions.push_back(
        {Action::Kind::launch, HostClass::other, 0, static_cast<std::uint32_t>(made.program.launches.size()), call});
    made.program.launches.share(program.token_kernels, std::span(launch.launch, 1));
    made.program.token_launches.push_back({launch.runs, group, launch.modules});
  }
  made.program.steps.back().end = static_cast<std::uint32_t>(actions.size());
  made.program.actions = std::move(actions);
  made.program.launch_numbers.clear();
  made.trace = std::make_shared<const OpTrace>(std::move(trace));
  made.program.trace = made.trace.get();
  return made;
}

}  // namespace ridgeline
