#include "sim/program/program_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/workload/token_loop.h"

namespace ridgeline {
namespace {

/// A matrix library handle belongs to a host thread: the main thread runs forward, the autograd thread backward.
enum class Thread : std::uint8_t { main, autograd };

/// Of all steps that are written out: about 2 GB of times, timeline and reasons.
constexpr std::size_t kMostLaunches = 4'000'000;

class Assembler {
 public:
  Assembler(const OpTrace& trace, const LayoutKey& key, std::vector<AddedStorage>* added)
      : trace_(trace),
        key_(key),
        storages_(trace.storages),
        added_(added),
        next_call_(trace.calls.empty() ? Action::kNoCall : 0) {
    program_.trace = &trace;
    actions_.reserve(trace.records.size() * 2);
    program_.steps.reserve(trace.steps.size());
  }

  StepProgram assemble() {
    for (const RepeatedRange& range : trace_.repeats) program_.repeats.push_back({{}, range.times});
    const auto end = static_cast<std::uint32_t>(trace_.records.size());
    std::uint32_t i = 0;
    for (const std::uint32_t bound : bounds()) {
      if (bound > end) break;
      for (; i < bound; ++i) add(trace_.records[i]);
      add_bounds(bound);
    }
    for (; i < end; ++i) add(trace_.records[i]);
    program_.storages = std::move(storages_);
    program_.actions = std::move(actions_);
    return std::move(program_);
  }

 private:
  /// Records before which something begins or ends, ascending.
  [[nodiscard]] std::vector<std::uint32_t> bounds() const {
    std::vector<std::uint32_t> all;
    const auto add = [&](const StepRange& range) { all.insert(all.end(), {range.begin, range.end}); };
    for (const StepRange& range : trace_.stage_actions) add(range);
    for (const RepeatedRange& range : trace_.repeats) add(range.records);
    for (const StepRange& range : trace_.steps) add(range);
    if (trace_.tokens != nullptr)
      for (const TokenLoop::Place& place : trace_.tokens->places) add(place.before), add(place.body);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  void add_bounds(std::uint32_t i) {
    add_stage_actions(i);
    if (trace_.tokens != nullptr) add_tokens(i);
    if (repeat_ < trace_.repeats.size()) {
      const StepRange records = trace_.repeats[repeat_].records;
      if (records.begin == i) program_.repeats[repeat_].actions.begin = here();
      if (records.end == i) program_.repeats[repeat_++].actions.end = here();
    }
    // Steps follow each other, but need not touch; those of no record begin and end before the same one.
    for (; step_ < trace_.steps.size(); ++step_) {
      const StepRange& step = trace_.steps[step_];
      if (program_.steps.size() == step_) {
        if (step.begin != i) return;
        program_.steps.push_back({here(), here()});
      }
      if (step.end != i) return;
      program_.steps[step_].end = here();
    }
  }

  void add_tokens(std::uint32_t i) {
    const std::vector<TokenLoop::Place>& places = trace_.tokens->places;
    program_.tokens.resize(places.size());
    for (std::size_t step = 0; step < places.size(); ++step) {
      const TokenLoop::Place& place = places[step];
      TokenActions& made = program_.tokens[step];
      if (place.before.begin == i) made.before.begin = here();
      if (place.before.end == i) made.before.end = here();
      if (place.body.begin == i) made.body.begin = here();
      if (place.body.end == i) made.body.end = here();
    }
  }

  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(actions_.size()); }

  /// Those that begin or end before record `i`. They follow each other; some are empty.
  void add_stage_actions(std::uint32_t i) {
    const std::vector<StepRange>& all = trace_.stage_actions;
    while (program_.stage_actions.size() <= all.size()) {
      const std::size_t next = program_.stage_actions.size();
      if (next > 0 && all[next - 1].end == i) program_.stage_actions.back().end = here();
      if (next == all.size() || all[next].begin != i) return;
      program_.stage_actions.push_back({here(), here()});
    }
  }

  void add(const Record& record) {
    keep_budget_often("the list of kernels and allocations");
    switch (record.kind) {
      case Record::Kind::allocate: push({Action::Kind::allocate, HostClass::other, 0, record.index, next_call_}); break;
      case Record::Kind::free: push({Action::Kind::free, HostClass::other, 0, record.index, next_call_}); break;
      case Record::Kind::host: push({Action::Kind::host, record.host_class, 0, record.index, next_call_}); break;
      case Record::Kind::wait_for_gpu: push({Action::Kind::wait, HostClass::other, 0, 0, next_call_}); break;
      case Record::Kind::record_event: add_event(Action::Kind::record_event, record); break;
      case Record::Kind::wait_event: add_event(Action::Kind::wait_event, record); break;
      case Record::Kind::host_waits_for_event: add_event(Action::Kind::host_waits_for_event, record); break;
      case Record::Kind::op: add_call(record.index); break;
    }
  }

  void add_event(Action::Kind kind, const Record& record) {
    push({kind, HostClass::other, record.stream, record.index, next_call_});
  }

  void add_call(std::uint32_t index) {
    const Call& call = trace_.calls[index];
    const LayoutKey::Operation& op = key_.operations[call.op];
    if (const auto* matmul = std::get_if<Matmul>(&trace_.ops[call.op])) add_workspaces(*matmul, call, index);
    launches_ += op.launches;
    if (launches_ > kMostLaunches)
      throw UserError(
          fmt::format("the steps launch more than {},000,000 kernels, more than a prediction holds: shorter sequences, "
                      "or an attention in one kernel, launch fewer",
                      kMostLaunches / 1'000'000));
    const auto first = static_cast<std::uint32_t>(storages_.size());
    for (std::uint32_t i = 0; i < op.temporaries.size(); ++i)
      allocate(op.temporaries[i], Category::temporaries, call, index, {AddedStorage::Kind::temporary, call.op, i});
    for (std::uint32_t i = 0; i < op.launches; ++i)
      push({Action::Kind::launch, HostClass::other, call.stream, op.first_launch + i, index});
    // Destroyed in reverse order, as C++ does and the recorded histories show.
    for (auto i = static_cast<std::uint32_t>(op.temporaries.size()); i-- > 0;)
      push({Action::Kind::free, HostClass::other, 0, first + i, index});
    next_call_ = index + 1 < trace_.calls.size() ? index + 1 : Action::kNoCall;
  }

  // In the recorded histories the first product of each thread allocates the workspace right after its output, the
  // first one whose epilogue adds a bias a second, smaller one; both stay.
  void add_workspaces(const Matmul& matmul, const Call& call, std::uint32_t index) {
    const auto thread = static_cast<std::size_t>(call.phase == Phase::backward ? Thread::autograd : Thread::main);
    Workspaces& held = workspaces_[call.stream];
    if (!engine_workspace_)
      allocate(key_.engine_workspace, Category::workspaces, call, index, {AddedStorage::Kind::engine_workspace});
    engine_workspace_ = true;
    if (!held.product[thread])
      allocate(key_.workspace, Category::workspaces, call, index, {AddedStorage::Kind::workspace});
    held.product[thread] = true;
    if (!matmul.bias || !key_.fuses_bias) return;
    if (!held.light[thread])
      allocate(key_.light_workspace, Category::workspaces, call, index, {AddedStorage::Kind::light_workspace});
    held.light[thread] = true;
  }

  void allocate(std::int64_t bytes, Category category, const Call& call, std::uint32_t index, AddedStorage added) {
    if (bytes <= 0) return;
    if (added_ != nullptr) added_->push_back(added);
    push({Action::Kind::allocate, HostClass::other, 0, static_cast<std::uint32_t>(storages_.size()), index});
    storages_.push_back({bytes, category, call.layer, call.stream, call.module});
  }

  void push(const Action& action) { actions_.push_back(action); }

  const OpTrace& trace_;
  const LayoutKey& key_;
  std::vector<Storage> storages_;
  std::vector<AddedStorage>* added_;
  std::vector<Action> actions_;
  StepProgram program_;
  std::uint32_t next_call_;
  std::size_t launches_ = 0;
  std::size_t step_ = 0, repeat_ = 0;  ///< that begin or end next
  /// Of a stream, by thread.
  struct Workspaces {
    std::array<bool, 2> product{}, light{};
  };
  std::map<std::uint8_t, Workspaces> workspaces_;
  bool engine_workspace_ = false;  ///< is there
};

}  // namespace

StepProgram lay_out(const OpTrace& trace, const LayoutKey& key, std::vector<AddedStorage>* added) {
  return Assembler(trace, key, added).assemble();
}

LayoutShape::LayoutShape(const OpTrace& trace, const LayoutKey& key)
    : workspace(key.workspace > 0),
      light_workspace(key.light_workspace > 0),
      engine_workspace(key.engine_workspace > 0),
      fuses_bias(key.fuses_bias) {
  operations.reserve(key.operations.size());
  for (std::size_t op = 0; op < key.operations.size(); ++op) {
    const LayoutKey::Operation& one = key.operations[op];
    const auto* matmul = std::get_if<Matmul>(&trace.ops[op]);
    operations.push_back({one.first_launch, one.launches, static_cast<std::uint32_t>(one.temporaries.size()),
                          matmul != nullptr, matmul != nullptr && matmul->bias});
  }
  for (const Call& call : trace.calls) calls = (calls ^ call.op) * 0x9e3779b97f4a7c15u, calls ^= calls >> 29;
}

StepProgram lay_out_like(const StepProgram& like, std::span<const AddedStorage> added, const OpTrace& trace,
                         const LayoutKey& key) {
  StepProgram program = like;
  program.trace = &trace;
  std::vector<Storage> storages;
  storages.reserve(like.storages.size());
  storages = trace.storages;
  for (const AddedStorage& one : added) {
    Storage storage = like.storages[storages.size()];
    switch (one.kind) {
      case AddedStorage::Kind::temporary: storage.bytes = key.operations[one.op].temporaries[one.number]; break;
      case AddedStorage::Kind::workspace: storage.bytes = key.workspace; break;
      case AddedStorage::Kind::light_workspace: storage.bytes = key.light_workspace; break;
      case AddedStorage::Kind::engine_workspace: storage.bytes = key.engine_workspace; break;
    }
    storages.push_back(storage);
  }
  program.storages = std::move(storages);
  return program;
}

}  // namespace ridgeline
