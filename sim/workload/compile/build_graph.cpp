#include "sim/workload/compile/build_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "sim/workload/compile/decompose.h"

namespace ridgeline::compile {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(OpTrace& trace, std::uint32_t number, const PartStorages& shared)
      : trace_(trace),
        range_(trace.compiled_ranges[number]),
        number_(number),
        shared_(shared),
        decomposer_(trace, graph_) {
    decomposer_.returns_scores = range_.returns_scores;
    decomposer_.tuned = range_.tuned;
  }

  Graph build() {
    if (range_.is_part()) find_storages_of_part();
    else find_storages_that_leave();
    walk(range_.forward, false);
    walk(range_.backward, true);
    find_inputs_again();
    for (const auto& [storage, value] : current_)
      if (leaves_.contains(storage)) {
        graph_.values[value].leaves = graph_.values[value].stored = true;
        graph_.values[value].ends_here = shared_.ends_in(storage) == number_;
        graph_.values[value].storage = storage;
        graph_.values[value].category = trace_.storages[storage].category;
      } else if (passes_on(storage, value)) {
        graph_.values[value].storage = storage;
        graph_.values[value].stored = true;
      }
    return std::move(graph_);
  }

 private:
  // Storages made inside that the script uses or keeps: the loss and the gradients.
  void find_storages_that_leave() {
    for (std::uint32_t i = range_.forward.begin; i < range_.backward.end; ++i) {
      const Record& record = trace_.records[i];
      const bool inside = i < range_.forward.end || i >= range_.backward.begin;
      if (record.kind == Record::Kind::allocate && inside) {
        leaves_[record.index] = true;
        made_here_.insert(record.index);
      }
      if (record.kind == Record::Kind::free && leaves_.erase(record.index) == 0 && inside)
        graph_.freed_inside.push_back(record.index);
      if (record.kind == Record::Kind::op && !inside) {
        const Call& call = trace_.calls[record.index];
        for (int o = 0; o < call.inputs + call.outputs; ++o)
          used_outside_[trace_.operands[call.operands_begin + static_cast<std::uint32_t>(o)].storage] = true;
      }
    }
    for (std::uint32_t i = range_.forward.begin; i < range_.backward.end; ++i) {
      const Record& record = trace_.records[i];
      const bool inside = i < range_.forward.end || i >= range_.backward.begin;
      if (record.kind == Record::Kind::allocate && inside && used_outside_.contains(record.index))
        leaves_[record.index] = true;
    }
  }

  // The same of a part, whose neighbours use some of what it makes.
  void find_storages_of_part() {
    std::unordered_set<StorageId> freed;
    for (const StepRange part : {range_.forward, range_.backward})
      for (std::uint32_t i = part.begin; i < part.end; ++i) {
        const Record& record = trace_.records[i];
        if (record.kind == Record::Kind::allocate) {
          made_here_.insert(record.index);
          if (shared_.shared(record.index) || shared_.ends_in(record.index) == kNone) leaves_[record.index] = true;
        }
        if (record.kind != Record::Kind::op) continue;
        const Call& call = trace_.calls[record.index];
        for (std::uint32_t o = 0; o < std::uint32_t{call.inputs} + call.outputs; ++o) {
          const StorageId storage = trace_.operands[call.operands_begin + o].storage;
          if (shared_.ends_in(storage) == number_ && !made_here_.contains(storage) && freed.insert(storage).second)
            graph_.freed_inside.push_back(storage);
        }
      }
  }

  /// What another part made and a third one uses too, as the gradient of what all blocks add to: each leaves its sum
  /// where it found it.
  [[nodiscard]] bool passes_on(StorageId storage, ValueId value) const {
    return range_.is_part() && graph_.values[value].producer != kNone && !made_here_.contains(storage) &&
           shared_.shared(storage) && shared_.ends_in(storage) != number_;
  }

  /// Parameters that are gathered anew for the backward pass lie elsewhere then.
  void find_inputs_again() {
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      if (!graph_.values[v].gone) continue;
      const StorageId again = shared_.refilled(graph_.values[v].storage);
      if (again != kNone) graph_.values[v].again = read({again, graph_.values[v].bytes}).value;
    }
  }

  void walk(const StepRange& part, bool backward) {
    bool after = false, sum = false;
    for (std::uint32_t i = part.begin; i < part.end; ++i) {
      const Record& record = trace_.records[i];
      if (record.kind == Record::Kind::host) {
        after = record.host_class == HostClass::accumulate_grad || record.host_class == HostClass::accumulate_grad_add;
        sum = record.host_class == HostClass::fan_in_add;
      }
      if (record.kind != Record::Kind::op) continue;
      const Call& call = trace_.calls[record.index];
      add(call, backward, backward && (after || (sum && adds_to_gradient(call, {i + 1, part.end}))));
    }
  }

  /// Of a parameter that another part uses too: autograd adds both up outside of the graphs. What is left of this part
  /// goes on from a sum that is no parameter's alone (positions of a single sequence).
  [[nodiscard]] bool adds_to_gradient(const Call& call, const StepRange& left) const {
    if (!range_.is_part()) return false;
    const StorageId sum = trace_.operands[call.operands_begin + call.inputs].storage;
    if (made_here_.contains(sum) || trace_.storages[sum].category != Category::gradients) return false;
    for (std::uint32_t i = left.begin; i < left.end; ++i) {
      if (trace_.records[i].kind != Record::Kind::op) continue;
      const Call& later = trace_.calls[trace_.records[i].index];
      for (std::uint32_t read = 0; read < later.inputs; ++read)
        if (trace_.operands[later.operands_begin + read].storage == sum) return false;
    }
    return true;
  }

  void add(const Call call, bool backward, bool after) {
    if (range_.returns_scores && !backward) hold_scores(call);
    std::vector<Use> in, out;
    if (backward)
      if (const std::optional<Use> zeros = gradient_of_scores(call)) in.push_back(*zeros);
    for (std::uint32_t i = 0; i < call.inputs; ++i) in.push_back(read(trace_.operands[call.operands_begin + i]));
    // Equal casts of one activation are one.
    const auto* pointwise = std::get_if<Pointwise>(&trace_.ops[call.op]);
    const bool is_cast = pointwise != nullptr && pointwise->function == PointwiseFunction::cast && !in.empty();
    const Operand* results = trace_.operands.data() + call.operands_begin + call.inputs;
    if (is_cast && !after) {
      const auto [found, fresh] = casts_.try_emplace({call.op, in[0].value, in[0].bytes}, kNone);
      if (!fresh && call.outputs == 1) {
        current_[results[0].storage] = found->second;
        return;
      }
      out.push_back(written(results[0], call, backward));
      found->second = out[0].value;
    } else {
      for (std::uint32_t i = 0; i < call.outputs; ++i) out.push_back(written(results[i], call, backward));
    }
    decomposer_.add(call, std::move(in), std::move(out), backward, after);
  }

  /// What the loss is made of, before it is cast.
  void hold_scores(const Call& call) {
    const auto* softmax = std::get_if<Softmax>(&trace_.ops[call.op]);
    if (softmax == nullptr || !softmax->log) return;
    ValueId scores = read(trace_.operands[call.operands_begin]).value;
    for (NodeId producer = graph_.values[scores].producer;
         producer != kNone && graph_.nodes[producer].kind == Node::Kind::pointwise &&
         graph_.nodes[producer].inputs.size() == 1;
         producer = graph_.values[scores].producer)
      scores = graph_.nodes[producer].inputs.front().value;
    graph_.values[scores].held = graph_.values[scores].producer != kNone;
    const Operand& result = trace_.operands[call.operands_begin + call.inputs];
    scores_of_[result.storage] = scores;
  }

  /// The script got the scores too and does nothing with them: autograd hands their gradient to the backward graph as
  /// zeros, and the graph adds them to the loss's.
  std::optional<Use> gradient_of_scores(const Call& call) {
    const auto* softmax = std::get_if<Softmax>(&trace_.ops[call.op]);
    if (softmax == nullptr || !softmax->log) return std::nullopt;
    const Operand& probabilities = trace_.operands[call.operands_begin + 1];
    const auto found = scores_of_.find(probabilities.storage);
    if (found == scores_of_.end()) return std::nullopt;
    return decomposer_.zeros_like(call, found->second, softmax->rows * softmax->cols);
  }

  Use read(const Operand& operand) {
    const auto [found, fresh] = current_.try_emplace(operand.storage, static_cast<ValueId>(graph_.values.size()));
    if (fresh) {
      Value value;
      value.bytes = trace_.storages[operand.storage].bytes;
      value.storage = operand.storage;
      value.category = trace_.storages[operand.storage].category;
      value.stored = true;
      value.gone = shared_.gone_before(operand.storage, range_.backward.begin);
      graph_.values.push_back(value);
    }
    return {found->second, operand.bytes};
  }

  Use written(const Operand& operand, const Call& call, bool backward) {
    Value value;
    value.bytes = trace_.storages[operand.storage].bytes;
    value.layer = call.layer;
    value.module = call.module;
    value.category = backward ? Category::temporaries : Category::activations;
    // A collective changes what it is given.
    const auto* collective = std::get_if<Collective>(&trace_.ops[call.op]);
    const Operand& input = trace_.operands[call.operands_begin];
    if (collective != nullptr && input.storage == operand.storage) value.in_place_of = current_.at(operand.storage);
    // A write into memory of the script's, as into a gradient that exists, stays there.
    // In use a cache is written that nobody read before.
    const bool trains = range_.backward.begin < range_.backward.end;
    if (!trains && !made_here_.contains(operand.storage)) read(operand);
    const auto before = current_.find(operand.storage);
    if (before != current_.end() && graph_.values[before->second].producer == kNone) {
      value.storage = operand.storage;
      value.stored = true;
    }
    graph_.values.push_back(value);
    current_[operand.storage] = static_cast<ValueId>(graph_.values.size() - 1);
    return {current_[operand.storage], operand.bytes};
  }

  OpTrace& trace_;
  const CompiledRange& range_;
  std::uint32_t number_;
  const PartStorages& shared_;
  Graph graph_;
  Decomposer decomposer_;
  std::map<StorageId, ValueId> current_;
  std::unordered_map<StorageId, bool> leaves_, used_outside_;
  std::unordered_set<StorageId> made_here_;
  std::unordered_map<StorageId, ValueId> scores_of_;  ///< by log-probabilities
  std::map<std::tuple<std::uint32_t, ValueId, std::int64_t>, ValueId> casts_;
};

}  // namespace

Graph build_graph(OpTrace& trace, std::uint32_t number, const PartStorages& shared) {
  return GraphBuilder(trace, number, shared).build();
}

}  // namespace ridgeline::compile
