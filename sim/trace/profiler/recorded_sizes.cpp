#include "sim/trace/profiler/recorded_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/profiler/profiler_arguments.h"

namespace ridgeline::trace {
namespace {

AtenCall call_of(const RecordedOperators& recorded, std::size_t op) {
  Defects counted;  // they are when the operator has its turn
  AtenCall call;
  call.name = recorded.name_of(op);
  call.inputs =
      profiler_arguments(recorded.events.operators[op].arguments, DType::fp32, recorded.place_of(op), counted);
  return call;
}

/// "Sequence number" of an operator's arguments; -1: none.
std::int64_t sequence_number(const std::string& arguments) {
  constexpr std::string_view kKey = "\"Sequence number\":";
  std::size_t at = arguments.find(kKey);
  if (at == arguments.npos) return -1;
  at += kKey.size();
  while (at < arguments.size() && arguments[at] == ' ') ++at;
  std::int64_t number = -1;
  std::from_chars(arguments.data() + at, arguments.data() + arguments.size(), number);
  return number;
}

TensorList tensors_of(const AtenCall& call) {
  TensorList tensors;
  for (const Argument& input : call.inputs)
    if (const auto* tensor = std::get_if<AtenTensor>(&input); tensor != nullptr && tensor->elements() > 0)
      tensors.push_back(*tensor);
  return tensors;
}

/// A tensor in as many parts as a kernel of the concatenation has rows of blocks; else in two, as most have or more.
TensorList parts_of(const AtenTensor& whole, const AtenCall& call) {
  constexpr std::int64_t kMostInputs = 128;  // of a kernel
  std::int64_t parts = 2;
  for (const MeasuredKernel& kernel : call.kernels)
    if (kernel.name.find("CatArray") != kernel.name.npos) parts = std::clamp(kernel.blocks_down, parts, kMostInputs);
  AtenTensor part;
  part.type = whole.type;
  part.sizes = {std::max<std::int64_t>(1, whole.elements() / parts)};
  return TensorList(static_cast<std::size_t>(parts), part);
}

}  // namespace

std::string RecordedOperators::place_of(std::size_t op) const {
  return fmt::format("{}:{}", path, events.operators[op].line);
}

std::vector<std::int64_t> parameter_sizes(const RecordedOperators& recorded, const StepWindow& window,
                                          Defects& defects) {
  const ProfilerEvents& events = recorded.events;
  std::map<std::int64_t, std::int64_t> counts;
  std::vector<std::int64_t> in_order;
  for (std::size_t i = 0; i < events.operators.size(); ++i) {
    const OperatorEvent& op = events.operators[i];
    if (!window.contains(op.begin) || recorded.name_of(i) != "torch::autograd::AccumulateGrad") continue;
    const auto arguments = profiler_arguments(op.arguments, DType::fp32, recorded.place_of(i), defects);
    if (arguments.empty()) continue;
    if (const auto* gradient = std::get_if<AtenTensor>(&arguments.front())) {
      ++counts[gradient->elements()];
      in_order.push_back(gradient->elements());
    }
  }
  if (in_order.empty()) return in_order;
  std::int64_t passes = 0, roots = 0;
  for (const auto& [elements, count] : counts) passes = std::gcd(passes, count);
  for (std::size_t i = 0; i < events.operators.size(); ++i)  // backward() makes the gradient of each loss
    if (recorded.parents[i] == kNoOperator && window.contains(events.operators[i].begin) &&
        recorded.name_of(i) == "aten::ones_like")
      ++roots;
  if (roots > 1 && passes % roots == 0) in_order.resize(in_order.size() / static_cast<std::size_t>(roots));
  return in_order;
}

std::vector<TableLookup> table_lookups(const RecordedOperators& recorded) {
  std::vector<TableLookup> found;
  std::map<std::int64_t, std::vector<std::int64_t>> gradients;  // widths by samples
  for (std::size_t i = 0; i < recorded.events.operators.size(); ++i) {
    const std::string& name = recorded.name_of(i);
    if (name.find("embedding_codegen_lookup_") != name.npos) {
      if (const auto lookup = table_lookup(call_of(recorded, i))) found.push_back(*lookup);
    } else if (name.starts_with("torch::autograd::CppNode<SplitLookupFunction")) {
      const TensorList tensors = tensors_of(call_of(recorded, i));
      if (!tensors.empty() && tensors.front().sizes.size() == 2)
        gradients[tensors.front().sizes[0]].push_back(tensors.front().sizes[1]);
    }
  }
  for (TableLookup& lookup : found) {
    if (lookup.rows > 0) continue;
    // The widths of all tables together; one that can be shared out among them is this lookup's.
    for (const std::int64_t width : gradients[lookup.batch])
      if (lookup.rows == 0 && width >= lookup.tables && width % lookup.tables == 0)
        lookup.rows = std::max<std::int64_t>(1, lookup.elements / (width / lookup.tables));
  }
  return found;
}

JoinsBackward joins_backward(const RecordedOperators& recorded) {
  JoinsBackward found;
  for (std::size_t i = 0; i < recorded.events.operators.size(); ++i) {
    const std::string& name = recorded.name_of(i);
    if (!name.starts_with("CatBackward") && !name.starts_with("StackBackward")) continue;
    if (const std::int64_t number = sequence_number(recorded.events.operators[i].arguments); number >= 0)
      found.emplace(number, i);
  }
  return found;
}

std::optional<TensorList> joined_parts(const RecordedOperators& recorded, const JoinsBackward& backward, std::size_t op,
                                       const AtenCall& call) {
  const std::size_t parent = recorded.parents[op];
  if (parent != kNoOperator && !recorded.name_of(parent).starts_with("aten::")) {
    TensorList parts = tensors_of(call_of(recorded, parent));
    const std::string& name = recorded.name_of(parent);
    const bool of_split = name.starts_with("Split") || name.starts_with("Unbind") || name.starts_with("Unsafe");
    if (parts.size() > 1 && of_split) return parts;
    if (parts.size() == 1) return parts_of(parts.front(), call);
  }
  const auto gradient = backward.find(sequence_number(recorded.events.operators[op].arguments));
  if (gradient == backward.end()) return std::nullopt;
  const TensorList tensors = tensors_of(call_of(recorded, gradient->second));
  return tensors.empty() ? std::nullopt : std::optional(parts_of(tensors.front(), call));
}

}  // namespace ridgeline::trace
