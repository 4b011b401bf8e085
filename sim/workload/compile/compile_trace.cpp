#include "sim/workload/compile/compile_trace.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/workload/compile/build_graph.h"
#include "sim/workload/compile/emit.h"
#include "sim/workload/compile/fuse.h"
#include "sim/workload/compile/partition.h"
#include "sim/workload/compile/reorder.h"

namespace ridgeline::compile {
namespace {

class Compiler {
 public:
  Compiler(OpTrace trace, int sms) : trace_(std::move(trace)), sms_(sms), new_index_(trace_.records.size() + 1, 0) {}

  OpTrace run() {
    PartStorages shared(trace_);
    std::uint32_t next = 0;
    std::unordered_map<std::uint32_t, Compiled> open;  // forward pass emitted, backward pass not yet
    for (const Pass& pass : passes()) {
      const CompiledRange& range = trace_.compiled_ranges[pass.number];
      const std::int64_t parameters = range.is_part() ? range.parameters : trace_.parameter_tensors;
      copy(next, pass.records.begin);
      if (!pass.backward) {
        Compiled& compiled = open[pass.number];
        compiled.graph = build_graph(trace_, pass.number, shared);
        partition(compiled.graph, trace_, range.recomputation);
        save_inputs(compiled.graph);
        if (range.is_part()) keep_for_backward(compiled.graph, pass.number, shared);
        compiled.groups = order_kernels(compiled.graph, fuse(compiled.graph), range.reordered);
        drop_allocations(range);
        compiled.emitter.emplace(trace_, records_, compiled.graph, compiled.groups, sms_);
      }
      mark(pass.records);
      if (pass.backward && range.backward.begin == range.backward.end) {  // nothing is trained
        open.at(pass.number).emitter->finish();
        open.erase(pass.number);
      } else if (pass.backward) {
        open.at(pass.number).emitter->backward(parameters, range.enters_backward);
        open.erase(pass.number);
      } else {
        open.at(pass.number).emitter->forward(parameters, range.enters_forward);
      }
      next = pass.records.end;
    }
    copy(next, static_cast<std::uint32_t>(trace_.records.size()));
    new_index_.back() = static_cast<std::uint32_t>(records_.size());
    for (StepRange& step : trace_.steps) step = {new_index_[step.begin], new_index_[step.end]};
    for (RepeatedRange& repeat : trace_.repeats)
      repeat.records = {new_index_[repeat.records.begin], new_index_[repeat.records.end]};
    trace_.records = std::move(records_);
    trace_.compiled_ranges.clear();
    trace_.refills.clear();
    number_storages();
    share_equal_ops();
    return std::move(trace_);
  }

 private:
  /// One compiled range between its passes.
  struct Compiled {
    Graph graph;
    std::vector<Group> groups;
    std::optional<Emitter> emitter;
  };
  struct Pass {
    std::uint32_t number = 0;  ///< of its compiled range
    bool backward = false;
    StepRange records;
  };
  /// In the order of the records: backward passes of parts run from the last to the first.
  [[nodiscard]] std::vector<Pass> passes() const {
    std::vector<Pass> result;
    for (std::uint32_t i = 0; i < trace_.compiled_ranges.size(); ++i) {
      result.push_back({i, false, trace_.compiled_ranges[i].forward});
      result.push_back({i, true, trace_.compiled_ranges[i].backward});
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Pass& a, const Pass& b) { return a.records.begin < b.records.begin; });
    return result;
  }
  /// A step that begins with what is replaced begins with its replacement.
  void mark(const StepRange& part) {
    for (std::uint32_t i = part.begin; i < part.end; ++i) new_index_[i] = static_cast<std::uint32_t>(records_.size());
  }
  void copy(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      new_index_[i] = static_cast<std::uint32_t>(records_.size());
      const Record& record = trace_.records[i];
      // What the graphs no longer allocate is not freed either.
      if (record.kind == Record::Kind::free && dropped_.contains(record.index) && !born(record.index)) continue;
      if (record.kind == Record::Kind::free && saved_.contains(record.index)) continue;
      // The class of a compiled graph has it.
      if (record.kind == Record::Kind::host && record.host_class == HostClass::backward_first) continue;
      records_.push_back(record);
    }
  }
  /// Of several graphs that saved an input the first one's backward pass is the last to run.
  void save_inputs(Graph& graph) {
    for (const StorageId storage : graph.saved_inputs)
      if (saved_.insert(storage).second) graph.freed_inside.push_back(storage);
  }
  /// A backward graph may read what the eager pass does not: the input of a cast instead of its result. Backward passes
  /// run from the last part to the first, so that it goes with the first part that does so.
  static void keep_for_backward(Graph& graph, std::uint32_t number, PartStorages& shared) {
    for (const Node& node : graph.nodes) {
      if (!node.backward) continue;
      for (const Use& use : node.inputs) {
        Value& value = graph.values[use.value];
        const bool of_forward = value.producer == kNone || !graph.nodes[value.producer].backward;
        if (!of_forward || value.storage == kNone) continue;
        const std::uint32_t ends = shared.ends_in(value.storage);
        if (ends == kNone || ends <= number) continue;
        shared.end_in(value.storage, number);
        if (value.leaves) value.ends_here = true;
        else graph.freed_inside.push_back(value.storage);
      }
    }
  }
  void drop_allocations(const CompiledRange& range) {
    for (const StepRange part : {range.forward, range.backward})
      for (std::uint32_t i = part.begin; i < part.end; ++i)
        if (trace_.records[i].kind == Record::Kind::allocate) dropped_.insert(trace_.records[i].index);
  }
  bool born(StorageId storage) {
    for (; seen_ < records_.size(); ++seen_)
      if (records_[seen_].kind == Record::Kind::allocate) born_.insert(records_[seen_].index);
    return born_.contains(storage);
  }

  /// Storages are numbered in the order they are allocated; those that never are go last.
  void number_storages() {
    constexpr StorageId kUnnumbered = kNone;
    std::vector<StorageId> number(trace_.storages.size(), kUnnumbered);
    std::vector<Storage> storages;
    const auto give = [&](StorageId id) {
      if (number[id] != kUnnumbered) return;
      number[id] = static_cast<StorageId>(storages.size());
      storages.push_back(trace_.storages[id]);
    };
    for (const Record& record : trace_.records)
      if (record.kind == Record::Kind::allocate) give(record.index);
    for (StorageId id = 0; id < trace_.storages.size(); ++id) give(id);
    for (Record& record : trace_.records)
      if (record.kind == Record::Kind::allocate || record.kind == Record::Kind::free)
        record.index = number[record.index];
    for (Operand& operand : trace_.operands) operand.storage = number[operand.storage];
    trace_.storages = std::move(storages);
  }

  /// Each graph made its own.
  void share_equal_ops() {
    std::unordered_map<std::size_t, std::vector<std::uint32_t>> known;  // by hash
    std::vector<Op> ops;
    std::vector<std::uint32_t> shared;
    shared.reserve(trace_.ops.size());
    for (Op& op : trace_.ops) {
      auto& same_hash = known[hash_of(op)];
      const auto found =
          std::find_if(same_hash.begin(), same_hash.end(), [&](std::uint32_t i) { return ops[i] == op; });
      shared.push_back(found != same_hash.end() ? *found : static_cast<std::uint32_t>(ops.size()));
      if (found != same_hash.end()) continue;
      same_hash.push_back(shared.back());
      ops.push_back(std::move(op));
    }
    for (Call& call : trace_.calls) call.op = shared[call.op];
    trace_.ops = std::move(ops);
  }

  OpTrace trace_;
  int sms_;
  std::vector<std::uint32_t> new_index_;
  std::vector<Record> records_;
  std::unordered_set<StorageId> dropped_, born_;
  std::unordered_set<StorageId> saved_;  ///< inputs that a backward graph frees
  std::size_t seen_ = 0;
};

}  // namespace

OpTrace compile_trace(OpTrace eager, int sms) { return Compiler(std::move(eager), sms).run(); }

}  // namespace ridgeline::compile
