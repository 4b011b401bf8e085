#include "sim/workload/compile/emit.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "sim/units/budget.h"
#include "sim/units/ceil_div.h"

namespace ridgeline::compile {
namespace {

/// A sum over rows is cut into stretches of at least this many rows, as long as that makes no more work than so many
/// sums an SM: PyTorch's compiler reads the number of SMs of the GPU it compiles for (torch/_inductor/choices.py,
/// reduction_split_factor).
constexpr std::int64_t kShortestStretch = 128, kSumsOfSm = 1024;
/// Blocks of a kernel that sums a norm's weight gradients beside the gradient of its input.
constexpr std::int64_t kRowsOfBlock = 16, kMostBlocks = 1024;

std::string name_of_group(const Group& group) {
  std::string name;
  for (const std::string_view part : group.names) {
    if (!name.empty() && part != "_") name += '_';
    name += part;
  }
  return name;
}

}  // namespace

Emitter::Emitter(OpTrace& trace, std::vector<Record>& records, const Graph& graph, const std::vector<Group>& groups,
                 int sms)
    : trace_(trace),
      records_(records),
      graph_(graph),
      groups_(groups),
      sms_(sms),
      last_reader_(graph.values.size(), kNone),
      storage_(graph.values.size(), kNone),
      freed_(graph.values.size(), false),
      becomes_(graph.values.size(), kNone) {
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].leaves && graph.values[v].in_place_of != kNone) becomes_[graph.values[v].in_place_of] = v;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (const Use& use : groups[g].reads) last_reader_[use.value] = g;
    // What must lie where another value lies keeps that one alive.
    for (const Use& use : groups[g].writes)
      if (const ValueId other = graph.values[use.value].in_place_of; other != kNone) last_reader_[other] = g;
  }
  const std::unordered_set<StorageId> dying(graph.freed_inside.begin(), graph.freed_inside.end());
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer != kNone || value.storage == kNone) continue;
    storage_[v] = value.storage;
    if (dying.contains(value.storage)) dies_inside_.push_back(v);
    else freed_[v] = true;  // the script's: never freed here
  }
}

void Emitter::forward(std::int64_t parameters, bool enters) {
  if (enters) records_.push_back({Record::Kind::host, HostClass::compiled_forward, 0, 1});
  records_.push_back({Record::Kind::host, HostClass::per_parameter_compiled_forward, 0,
                      static_cast<std::uint32_t>(std::max<std::int64_t>(1, parameters))});
  for (std::uint32_t g = 0; g < groups_.size(); ++g)
    if (!groups_[g].backward) emit(g);
}

void Emitter::backward(std::int64_t parameters, bool enters) {
  if (enters) records_.push_back({Record::Kind::host, HostClass::compiled_backward, 0, 1});
  for (std::uint32_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].backward) emit(g);
  records_.push_back({Record::Kind::host, HostClass::per_parameter_compiled_backward, 0,
                      static_cast<std::uint32_t>(std::max<std::int64_t>(1, parameters))});
  finish();
}

void Emitter::finish() {
  for (ValueId v = 0; v < graph_.values.size(); ++v)
    if (graph_.values[v].held || graph_.values[v].ends_here) free_value(v);
  for (const std::int64_t value : dies_inside_) free_value(static_cast<ValueId>(value));
}

void Emitter::emit(std::uint32_t number) {
  const Group& group = groups_[number];
  if (group.writes.empty()) return;  // nobody needs it
  place_outputs(group, number);
  if (group.kind == Node::Kind::library) library(group);
  else generated(group);
  release_dying(group, number);
}

StorageId Emitter::allocate(std::int64_t bytes, Category category, std::int16_t layer, std::uint16_t module) {
  const auto id = static_cast<StorageId>(trace_.storages.size());
  trace_.storages.push_back({bytes, category, layer, 0, module});
  if (bytes > 0) records_.push_back({Record::Kind::allocate, HostClass::other, 0, id});
  return id;
}

StorageId Emitter::temporary(std::int64_t bytes, const Group& group) {
  const Node& last = graph_.nodes[group.nodes.back()];
  return allocate(bytes, Category::temporaries, last.layer, last.module);
}

void Emitter::place_outputs(const Group& group, std::uint32_t number) {
  std::vector<ValueId> free_to_take;
  if (group.kind != Node::Kind::library)
    for (const Use& use : group.reads)
      if (last_reader_[use.value] == number && !freed_[use.value] && !graph_.values[use.value].leaves &&
          !graph_.values[use.value].held && !graph_.values[use.value].of_caller)
        free_to_take.push_back(use.value);
  for (const Use& use : group.writes) {
    const Value& value = graph_.values[use.value];
    if (becomes_[use.value] != kNone) {
      storage_[use.value] = graph_.values[becomes_[use.value]].storage;
      freed_[use.value] = true;
      records_.push_back({Record::Kind::allocate, HostClass::other, 0, storage_[use.value]});
      continue;
    }
    if (value.in_place_of != kNone && storage_[value.in_place_of] != kNone) {
      storage_[use.value] = storage_[value.in_place_of];
      freed_[use.value] = freed_[value.in_place_of];
      freed_[value.in_place_of] = true;
      continue;
    }
    if (value.leaves || (value.storage != kNone && value.stored)) {
      storage_[use.value] = value.storage;
      freed_[use.value] = !value.ends_here;  // by the script
      // Written over what dies here: the new content dies in its place.
      const auto below = std::find_if(dies_inside_.begin(), dies_inside_.end(),
                                      [&](ValueId v) { return storage_[v] == value.storage && !freed_[v]; });
      if (below != dies_inside_.end()) {
        freed_[use.value] = false;
        freed_[*below] = true;
      }
      if (value.leaves) records_.push_back({Record::Kind::allocate, HostClass::other, 0, value.storage});
      continue;
    }
    // Rows of padded products are a little longer than those written over them.
    const auto same = std::find_if(free_to_take.begin(), free_to_take.end(), [&](ValueId v) {
      const std::int64_t room = trace_.storages[storage_[v]].bytes;
      return !freed_[v] && room >= value.bytes && room - value.bytes <= room / kPaddingShare;
    });
    if (same != free_to_take.end()) {
      storage_[use.value] = storage_[*same];
      freed_[*same] = true;
    } else {
      const bool kept = !group.backward && value.stored;
      storage_[use.value] =
          allocate(value.bytes, kept ? Category::activations : Category::temporaries, value.layer, value.module);
    }
  }
}

void Emitter::free_value(ValueId value) {
  if (freed_[value] || storage_[value] == kNone) return;
  freed_[value] = true;
  if (trace_.storages[storage_[value]].bytes > 0)
    records_.push_back({Record::Kind::free, HostClass::other, 0, storage_[value]});
}

void Emitter::release_dying(const Group& group, std::uint32_t number) {
  for (const Use& use : group.reads)
    if (last_reader_[use.value] == number && !graph_.values[use.value].held &&
        (!graph_.values[use.value].leaves || (graph_.values[use.value].ends_here && group.backward)))
      free_value(use.value);
  for (const Use& use : group.writes)
    if (last_reader_[use.value] == kNone && !graph_.values[use.value].leaves) free_value(use.value);
}

std::vector<Operand> Emitter::operands(const std::vector<Use>& uses) const {
  std::vector<Operand> out;
  for (const Use& use : uses) out.push_back({storage_[use.value], use.bytes});
  return out;
}

void Emitter::call(std::uint32_t op, const Group& group, const std::vector<Operand>& in,
                   const std::vector<Operand>& out) {
  const Node& node = graph_.nodes[group.nodes.back()];
  Call call;
  call.op = op;
  call.operands_begin = static_cast<std::uint32_t>(trace_.operands.size());
  call.inputs = static_cast<std::uint16_t>(in.size());
  call.outputs = static_cast<std::uint16_t>(out.size());
  call.phase = node.phase;
  call.layer = node.layer;
  call.module = node.module;
  trace_.operands.insert(trace_.operands.end(), in.begin(), in.end());
  trace_.operands.insert(trace_.operands.end(), out.begin(), out.end());
  records_.push_back({Record::Kind::op, HostClass::other, 0, static_cast<std::uint32_t>(trace_.calls.size())});
  trace_.calls.push_back(call);
  keep_budget_often("the list of PyTorch's operations");
}

void Emitter::call(Op op, const Group& group, const std::vector<Operand>& in, const std::vector<Operand>& out) {
  auto& same_hash = ops_[hash_of(op)];
  for (const std::uint32_t known : same_hash)
    if (trace_.ops[known] == op) return call(known, group, in, out);
  same_hash.push_back(static_cast<std::uint32_t>(trace_.ops.size()));
  trace_.ops.push_back(std::move(op));
  call(same_hash.back(), group, in, out);
}

void Emitter::library(const Group& group) {
  const Node& node = graph_.nodes[group.nodes.front()];
  const HostClass host = group.after ? HostClass::accumulate_grad_add : HostClass::compiled_call;
  records_.push_back({Record::Kind::host, host, 0, 1});
  call(node.op, group, operands(group.reads), operands(group.writes));
}

void Emitter::generated(const Group& group) {
  FusedKernel op;
  op.name = name_of_group(group);
  op.rows = group.rows;
  op.cols = group.cols;
  op.type = group.type;
  op.arithmetic = group.arithmetic;
  op.gathers = group.gathers;
  for (const Use& use : group.reads) op.reads.push_back(use.bytes);
  for (const Use& use : group.writes) op.writes.push_back(use.bytes);
  switch (group.kind) {
    case Node::Kind::columns: return column_sums(group, std::move(op));
    case Node::Kind::rows: op.shape = FusedKernel::Shape::rows; break;
    case Node::Kind::long_rows: op.shape = FusedKernel::Shape::long_rows; break;
    default: op.shape = FusedKernel::Shape::pointwise; break;
  }
  if (group.by_block && group.column_results > 0) return block_sums(group, std::move(op));
  records_.push_back({Record::Kind::host, HostClass::generated_kernel, 0, 1});
  call(std::move(op), group, operands(group.reads), operands(group.writes));
}

void Emitter::column_sums(const Group& group, FusedKernel op) {
  op.shape = FusedKernel::Shape::columns;
  op.column_results = group.column_results;
  const std::int64_t stretches = std::clamp<std::int64_t>(kSumsOfSm * sms_ / std::max<std::int64_t>(1, op.cols), 1,
                                                          ceil_div(op.rows, kShortestStretch));
  records_.push_back({Record::Kind::host, HostClass::generated_kernel, 0, 1});
  if (stretches == 1) return call(std::move(op), group, operands(group.reads), operands(group.writes));
  // Partial sums of every stretch, then their sum.
  std::vector<Operand> partial;
  FusedKernel first = op;
  first.writes.clear();
  for (std::size_t i = 0; i < group.writes.size(); ++i) {
    const std::int64_t bytes = 4 * stretches * op.cols;
    partial.push_back({temporary(bytes, group), bytes});
    first.writes.push_back(bytes);
  }
  call(std::move(first), group, operands(group.reads), partial);
  for (std::size_t i = 0; i < group.writes.size(); ++i) {
    FusedKernel sum = op;
    sum.rows = stretches;
    sum.arithmetic = 1;
    sum.type = DType::fp32;
    sum.column_results = 1;
    sum.gathers = false;
    sum.reads = {partial[i].bytes};
    sum.writes = {group.writes[i].bytes};
    records_.push_back({Record::Kind::host, HostClass::generated_kernel, 0, 1});
    call(std::move(sum), group, {partial[i]}, operands({group.writes[i]}));
  }
  for (const Operand& operand : partial) records_.push_back({Record::Kind::free, HostClass::other, 0, operand.storage});
}

void Emitter::block_sums(const Group& group, FusedKernel op) {
  // The sums are the outputs of one row's length; each block leaves its own in a workspace.
  const std::int64_t blocks = std::clamp<std::int64_t>(op.rows / kRowsOfBlock, 1, kMostBlocks), row = 4 * op.cols;
  std::vector<Use> results, sums;
  op.writes.clear();
  for (const Use& use : group.writes) {
    const bool sum = use.bytes <= row && op.rows > 1 && static_cast<std::int64_t>(sums.size()) < group.column_results;
    (sum ? sums : results).push_back(use);
    if (!sum) op.writes.push_back(use.bytes);
  }
  const auto columns = static_cast<std::int64_t>(sums.size());
  const std::int64_t bytes = blocks * row * columns;
  const Operand workspace{temporary(bytes, group), bytes};
  op.column_results = columns;
  op.writes.push_back(bytes);
  std::vector<Operand> out = operands(results);
  out.push_back(workspace);
  const std::int64_t cols = op.cols;
  records_.push_back({Record::Kind::host, HostClass::generated_kernel, 0, 1});
  call(std::move(op), group, operands(group.reads), out);
  for (const Use& sum : sums) {
    records_.push_back({Record::Kind::host, HostClass::compiled_call, 0, 1});
    call(Reduction{ReductionKind::sum_rows, DType::fp32, blocks, cols}, group, {{workspace.storage, bytes / columns}},
         operands({sum}));
  }
  records_.push_back({Record::Kind::free, HostClass::other, 0, workspace.storage});
}

}  // namespace ridgeline::compile
