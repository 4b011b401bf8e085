#include "sim/workload/trace_pattern.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>

#include "sim/workload/training_checks.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kPartLayers = 3;   // the first, the last, and one for all between them
constexpr std::int64_t kLeastLayers = 6;  // of a whole network: fewer gain nothing

/// Storages and calls of one step, phase and block, in the order in which they were made.
struct Group {
  std::vector<std::uint32_t> storages, calls;
};
struct GroupKey {
  std::size_t step = 0;  ///< 0: set-up
  Phase phase = Phase::setup;
  std::int16_t layer = -1;
  bool operator==(const GroupKey&) const = default;
};
struct HashGroupKey {
  std::size_t operator()(const GroupKey& key) const {
    return (key.step << 8 | static_cast<std::size_t>(key.phase)) << 16 | static_cast<std::uint16_t>(key.layer);
  }
};
using Groups = std::unordered_map<GroupKey, Group, HashGroupKey>;

/// A storage belongs to the phase of the call that follows its birth. Nothing where one is never born.
std::optional<Groups> groups_of(const OpTrace& trace) {
  Groups groups;
  std::vector<std::uint32_t> born;
  std::size_t step = 0, seen = 0;
  Phase phase = Phase::setup;
  const auto place = [&] {
    for (const std::uint32_t storage : born)
      groups[{step, phase, trace.storages[storage].layer}].storages.push_back(storage);
    seen += born.size();
    born.clear();
  };
  for (std::uint32_t i = 0; i < trace.records.size(); ++i) {
    if (step < trace.steps.size() && trace.steps[step].begin <= i) {
      place();
      ++step;
    }
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::allocate) born.push_back(record.index);
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    phase = call.phase;
    place();
    groups[{step, phase, call.layer}].calls.push_back(record.index);
  }
  place();
  const auto with_bytes = std::count_if(trace.storages.begin(), trace.storages.end(),
                                        [](const Storage& storage) { return storage.bytes > 0; });
  if (static_cast<std::size_t>(with_bytes) != seen) return std::nullopt;
  return groups;
}

bool same_record(const Record& a, const Record& b) {
  return a.kind == b.kind && a.host_class == b.host_class && a.stream == b.stream && a.index == b.index;
}
/// Their operations and operands aside.
bool same_call(const Call& a, const Call& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && a.phase == b.phase && a.stream == b.stream;
}
bool same_place(const Storage& a, const Storage& b) {
  return a.category == b.category && a.stream == b.stream && (a.bytes > 0) == (b.bytes > 0);
}
bool same_range(const StepRange& a, const StepRange& b) { return a.begin == b.begin && a.end == b.end; }

template <class List, class Same>
bool all_same(const List& a, const List& b, const Same& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// They differ in numbers alone: bytes, and what operations say of themselves.
bool same_structure(const OpTrace& a, const OpTrace& b) {
  return a.events == b.events && a.parameters == b.parameters && a.parameter_tensors == b.parameter_tensors &&
         a.notes == b.notes && a.streams == b.streams && a.refills == b.refills && a.stage_actions.empty() &&
         b.stage_actions.empty() && a.without_gradients == b.without_gradients &&
         a.modules.size() == b.modules.size() && all_same(a.records, b.records, same_record) &&
         all_same(a.steps, b.steps, same_range) &&
         all_same(a.repeats, b.repeats,
                  [](const RepeatedRange& x, const RepeatedRange& y) {
                    return same_range(x.records, y.records) && x.times == y.times;
                  }) &&
         all_same(a.calls, b.calls,
                  [](const Call& x, const Call& y) {
                    return same_call(x, y) && x.operands_begin == y.operands_begin && x.layer == y.layer &&
                           x.module == y.module;
                  }) &&
         all_same(a.storages, b.storages,
                  [](const Storage& x, const Storage& y) {
                    return same_place(x, y) && x.layer == y.layer && x.module == y.module;
                  }) &&
         all_same(a.operands, b.operands, [](const Operand& x, const Operand& y) { return x.storage == y.storage; }) &&
         all_same(a.compiled_ranges, b.compiled_ranges, [](const CompiledRange& x, const CompiledRange& y) {
           return same_range(x.forward, y.forward) && same_range(x.backward, y.backward) &&
                  x.outer_nodes == y.outer_nodes && x.returns_scores == y.returns_scores;
         });
}

std::span<const Operand> operands_of(const OpTrace& trace, const Call& call) {
  return std::span(trace.operands).subspan(call.operands_begin, std::size_t{call.inputs} + call.outputs);
}
bool same_bytes(std::span<const Operand> a, std::span<const Operand> b) {
  return all_same(a, b, [](const Operand& x, const Operand& y) { return x.bytes == y.bytes; });
}

}  // namespace

/// Finds for each entry of a whole trace its like in that of a network of three blocks.
class PatternMaker {
 public:
  explicit PatternMaker(TracePattern& pattern)
      : pattern_(pattern), whole_(*pattern.whole_), part_(pattern.part_), last_layer_(last_layer_of(whole_)) {
    storage_.assign(whole_.storages.size(), TracePattern::kNone);
    operand_.assign(whole_.operands.size(), TracePattern::kNone);
    pattern.call_.assign(whole_.calls.size(), TracePattern::kNone);
    like_.assign(whole_.ops.size(), TracePattern::kNone);
  }

  bool make() {
    const std::optional<Groups> whole = groups_of(whole_), part = groups_of(part_);
    if (!whole || !part) return false;
    std::vector<char> fixed(whole_.ops.size());
    for (const auto& [key, group] : *whole) {
      const auto like = part->find({key.step, key.phase, layer_of_part(key.layer)});
      if (like == part->end()) return false;
      if (alike(group, like->second)) {
        take(group, like->second);
        continue;
      }
      if (key.layer >= 0) return false;
      for (const std::uint32_t call : group.calls) fixed[whole_.calls[call].op] = 1;
      fix(like->second);
    }
    pattern_.storages_ = TracePattern::rows_of(storage_);
    pattern_.operands_ = TracePattern::rows_of(operand_);
    std::vector<std::uint32_t>& likes = pattern_.like_calls_;
    std::copy_if(pattern_.call_.begin(), pattern_.call_.end(), std::back_inserter(likes),
                 [](std::uint32_t call) { return call != TracePattern::kNone; });
    std::sort(likes.begin(), likes.end());
    likes.erase(std::unique(likes.begin(), likes.end()), likes.end());
    for (std::uint32_t op = 0; op < fixed.size(); ++op)
      if (fixed[op] != 0) pattern_.fixed_ops_.push_back({op, hash_of(whole_.ops[op])});
    return true;
  }

 private:
  static std::int16_t last_layer_of(const OpTrace& trace) {
    std::int16_t last = -1;
    for (const Call& call : trace.calls) last = std::max(last, call.layer);
    return last;
  }
  [[nodiscard]] std::int16_t layer_of_part(std::int16_t layer) const {
    if (layer <= 0) return layer;
    return layer == last_layer_ ? std::int16_t{kPartLayers - 1} : std::int16_t{1};
  }

  bool alike(const Group& a, const Group& b) {
    return all_same(a.storages, b.storages,
                    [&](std::uint32_t x, std::uint32_t y) {
                      const Storage &one = whole_.storages[x], &other = part_.storages[y];
                      return one.bytes == other.bytes && same_place(one, other);
                    }) &&
           all_same(a.calls, b.calls, [&](std::uint32_t x, std::uint32_t y) {
             const Call &one = whole_.calls[x], &other = part_.calls[y];
             return same_call(one, other) && same_op(one.op, other.op) &&
                    same_bytes(operands_of(whole_, one), operands_of(part_, other));
           });
  }
  bool same_op(std::uint32_t whole, std::uint32_t part) {
    if (like_[whole] == part) return true;
    if (!(whole_.ops[whole] == part_.ops[part])) return false;
    like_[whole] = part;
    return true;
  }

  void take(const Group& group, const Group& like) {
    for (std::size_t i = 0; i < group.storages.size(); ++i) storage_[group.storages[i]] = like.storages[i];
    for (std::size_t i = 0; i < group.calls.size(); ++i) {
      const Call &call = whole_.calls[group.calls[i]], &other = part_.calls[like.calls[i]];
      pattern_.call_[group.calls[i]] = like.calls[i];
      const std::uint32_t operands = static_cast<std::uint32_t>(call.inputs) + call.outputs;
      for (std::uint32_t k = 0; k < operands; ++k) operand_[call.operands_begin + k] = other.operands_begin + k;
    }
  }
  void fix(const Group& like) {
    pattern_.fixed_storages_.insert(pattern_.fixed_storages_.end(), like.storages.begin(), like.storages.end());
    pattern_.fixed_calls_.insert(pattern_.fixed_calls_.end(), like.calls.begin(), like.calls.end());
  }

  TracePattern& pattern_;
  const OpTrace& whole_;
  const OpTrace& part_;
  std::int16_t last_layer_;
  std::vector<std::uint32_t> storage_, operand_;  ///< of each entry of the whole, its like
  std::vector<std::uint32_t> like_;               ///< operation of the part that equals one of the whole
};

std::vector<TracePattern::Row> TracePattern::rows_of(const std::vector<std::uint32_t>& likes) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < likes.size(); ++i) {
    if (likes[i] == kNone) continue;
    const bool goes_on =
        !rows.empty() && rows.back().whole + rows.back().count == i && rows.back().part + rows.back().count == likes[i];
    if (goes_on) ++rows.back().count;
    else rows.push_back({i, likes[i], 1});
  }
  return rows;
}

bool TracePattern::applies(const ModelDescription& model, const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  return model.family != ModelFamily::composed && model.family != ModelFamily::program &&
         model.layers >= kLeastLayers && training.checkpointed_every == 1 && training.packed_lengths.empty() &&
         training.data_parallel == DataParallel::none && !training.inference && !training.lora && !how.several() &&
         !how.compiled && !how.one_process() && !how.megatron() && !how.deepspeed();
}

OpTrace TracePattern::part_of(const ModelDescription& model, const TrainingDescription& training,
                              AttentionChoice attention) {
  ModelDescription part = model;
  part.layers = kPartLayers;
  return training_run(part, training, attention);
}

std::optional<TracePattern> TracePattern::of(std::shared_ptr<const OpTrace> whole, OpTrace part) {
  TracePattern pattern;
  pattern.whole_ = std::move(whole);
  pattern.part_ = std::move(part);
  if (!PatternMaker(pattern).make()) return std::nullopt;
  return pattern;
}

bool TracePattern::keeps_what_is_fixed(const OpTrace& part) const {
  return std::all_of(fixed_storages_.begin(), fixed_storages_.end(),
                     [&](std::uint32_t i) { return part.storages[i].bytes == part_.storages[i].bytes; }) &&
         std::all_of(fixed_calls_.begin(), fixed_calls_.end(), [&](std::uint32_t i) {
           const Call &call = part.calls[i], &before = part_.calls[i];
           return part.ops[call.op] == part_.ops[before.op] &&
                  same_bytes(operands_of(part, call), operands_of(part_, before));
         });
}

bool TracePattern::keeps_lists(const OpTrace& part) const {
  return std::none_of(like_calls_.begin(), like_calls_.end(), [&](std::uint32_t call) {
    return std::holds_alternative<MultiTensor>(part.ops[part.calls[call].op]) ||
           std::holds_alternative<MultiTensor>(part_.ops[part_.calls[call].op]);
  });
}

bool TracePattern::take_ops(const OpTrace& part, OpTrace& made) const {
  std::unordered_map<std::size_t, std::uint32_t> by_hash;  // operations of `part`
  for (std::uint32_t op = 0; op < part.ops.size(); ++op)
    if (!by_hash.try_emplace(hash_of(part.ops[op]), op).second) return false;
  std::vector<std::uint32_t> of_part(part.ops.size(), kNone), of_whole(made.ops.size(), kNone);
  std::vector<std::uint32_t*> fixed(made.ops.size());  // where the number of one is kept
  for (const FixedOp& one : fixed_ops_) {
    const auto like = by_hash.find(one.hash);
    if (like != by_hash.end() && !(part.ops[like->second] == made.ops[one.op])) return false;
    fixed[one.op] = like != by_hash.end() ? &of_part[like->second] : &of_whole[one.op];
  }
  std::vector<Op> ops;
  ops.reserve(made.ops.size());
  for (std::size_t i = 0; i < made.calls.size(); ++i) {
    std::uint32_t& op = made.calls[i].op;
    const std::uint32_t like = call_[i] != kNone ? part.calls[call_[i]].op : kNone;
    std::uint32_t& number = like != kNone ? of_part[like] : *fixed[op];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(ops.size());
      ops.push_back(like != kNone ? part.ops[like] : made.ops[op]);
    }
    op = number;
  }
  made.ops = std::move(ops);
  return true;
}

std::optional<OpTrace> TracePattern::at(const ModelDescription& model, const TrainingDescription& training,
                                        const OpTrace& part) const {
  if (!same_structure(part, part_) || !keeps_what_is_fixed(part)) return std::nullopt;
  OpTrace made = *whole_;
  if (!take_ops(part, made)) return std::nullopt;
  for (const Row& row : storages_)
    for (std::uint32_t i = 0; i < row.count; ++i)
      made.storages[row.whole + i].bytes = part.storages[row.part + i].bytes;
  for (const Row& row : operands_)
    for (std::uint32_t i = 0; i < row.count; ++i)
      made.operands[row.whole + i].bytes = part.operands[row.part + i].bytes;
  made.model_flops = flops_of_step(model, training);
  return made;
}

}  // namespace ridgeline
