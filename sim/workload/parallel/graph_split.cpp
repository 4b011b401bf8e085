#include "sim/workload/parallel/graph_split.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "sim/workload/parallel/buckets.h"

namespace ridgeline::parallel {
namespace {

/// An operation that Python calls, with the parameters it is given.
struct Operation {
  std::uint32_t begin = 0;
  std::int64_t bytes = 0;
};

class Splitter {
 public:
  Splitter(const OpTrace& trace, StepRange forward, const eager::Parameters& parameters)
      : trace_(trace), forward_(forward) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      in_storage_[parameters[i].value.storage.id()].push_back(i);
      bytes_.push_back(parameters[i].value.bytes());
    }
    used_.assign(parameters.size(), false);
  }

  std::vector<GraphPart> run(std::int64_t bucket_cap) {
    find_operations();
    std::vector<GraphPart> parts;
    std::int64_t held = 0;
    for (auto operation = operations_.rbegin(); operation != operations_.rend(); ++operation) {
      if (held >= (parts.empty() ? std::min(kFirstBucket, bucket_cap) : bucket_cap)) {
        parts.push_back({.begin = std::prev(operation)->begin, .inputs = {}});
        held = 0;
      }
      held += operation->bytes;
    }
    // What comes before the first parameter goes with it.
    if (held == 0 && !parts.empty()) parts.back().begin = forward_.begin;
    else parts.push_back({.begin = forward_.begin, .inputs = {}});
    std::reverse(parts.begin(), parts.end());
    for (std::size_t i = 0; i < parts.size(); ++i)
      find_inputs(parts[i], i + 1 < parts.size() ? parts[i + 1].begin : forward_.end);
    return parts;
  }

 private:
  [[nodiscard]] std::span<const Operand> operands(const Call& call) const {
    return {trace_.operands.data() + call.operands_begin, std::size_t{call.inputs} + call.outputs};
  }
  /// Operations begin with what the host does for them; a parameter's cast belongs to who uses it.
  void find_operations() {
    for (std::uint32_t i = forward_.begin; i < forward_.end; ++i) {
      const Record& record = trace_.records[i];
      if (record.kind == Record::Kind::host || operations_.empty()) operations_.push_back({i, 0});
      if (record.kind != Record::Kind::op) continue;
      const Call& call = trace_.calls[record.index];
      const auto* pointwise = std::get_if<Pointwise>(&trace_.ops[call.op]);
      const bool cast = pointwise != nullptr && pointwise->function == PointwiseFunction::cast;
      std::unordered_set<std::size_t> given;
      for (const Operand& operand : operands(call).first(call.inputs)) {
        const std::optional<std::size_t> parameter = parameter_in(operand);
        if (!parameter) continue;
        parameter_of_operand_[&operand] = *parameter;
        if (cast) parameter_of_cast_[operands(call).back().storage] = *parameter;
        else if (given.insert(*parameter).second) operations_.back().bytes += bytes_.at(*parameter);
      }
    }
  }
  /// Of several in one storage (ZeroRedundancyOptimizer's buckets), which networks use in their order, the next of this
  /// size.
  [[nodiscard]] std::optional<std::size_t> parameter_in(const Operand& operand) {
    if (const auto cast = parameter_of_cast_.find(operand.storage); cast != parameter_of_cast_.end())
      return cast->second;
    const auto found = in_storage_.find(operand.storage);
    if (found == in_storage_.end()) return std::nullopt;
    if (found->second.size() == 1) return found->second.front();
    std::optional<std::size_t> again;
    for (const std::size_t parameter : found->second) {
      if (bytes_[parameter] != operand.bytes) continue;
      if (!used_[parameter]) {
        used_[parameter] = true;
        return parameter;
      }
      if (!again) again = parameter;
    }
    return again;
  }
  void find_inputs(GraphPart& part, std::uint32_t end) {
    std::unordered_set<StorageId> seen;
    for (std::uint32_t i = part.begin; i < end; ++i) {
      const Record& record = trace_.records[i];
      if (record.kind == Record::Kind::allocate) made_.insert(record.index), seen.insert(record.index);
      if (record.kind != Record::Kind::op) continue;
      const Call& call = trace_.calls[record.index];
      const std::span<const Operand> inputs = operands(call).first(call.inputs);
      // A product takes its rows, its weight and its bias in this order, and casts them in another.
      for (const bool of_network : {true, false})
        for (const Operand& operand : inputs) {
          const auto parameter = parameter_of_operand_.find(&operand);
          if (of_network != (parameter == parameter_of_operand_.end())) continue;
          if (of_network) {
            if (made_.contains(operand.storage) && seen.insert(operand.storage).second) {
              std::erase(part.inputs, GraphPart::kEarlier);
              part.inputs.push_back(GraphPart::kEarlier);
            }
          } else if (std::find(part.inputs.begin(), part.inputs.end(), parameter->second) == part.inputs.end() &&
                     !is_cast(call)) {
            part.inputs.push_back(parameter->second);
          }
        }
    }
  }
  [[nodiscard]] bool is_cast(const Call& call) const {
    const auto* pointwise = std::get_if<Pointwise>(&trace_.ops[call.op]);
    return pointwise != nullptr && pointwise->function == PointwiseFunction::cast;
  }

  const OpTrace& trace_;
  StepRange forward_;
  std::unordered_map<StorageId, std::vector<std::size_t>> in_storage_;
  std::vector<std::int64_t> bytes_;  ///< of each parameter
  std::vector<bool> used_;           ///< of those that share a storage, by the operations so far
  std::unordered_map<StorageId, std::size_t> parameter_of_cast_;
  std::unordered_map<const Operand*, std::size_t> parameter_of_operand_;
  std::vector<Operation> operations_;
  std::unordered_set<StorageId> made_;  ///< by the parts so far
};

}  // namespace

std::vector<GraphPart> split_graph(const OpTrace& trace, StepRange forward, const eager::Parameters& parameters,
                                   std::int64_t bucket_cap) {
  return Splitter(trace, forward, parameters).run(bucket_cap);
}

std::vector<std::size_t> order_of_arrival(const GraphPart& part) {
  // Ends of gradients go before any other node and are equal among themselves.
  const auto runs_later = [](std::size_t a, std::size_t b) {
    return a == GraphPart::kEarlier && b != GraphPart::kEarlier;
  };
  std::vector<std::size_t> ready, order;
  for (const std::size_t input : part.inputs) {
    ready.push_back(input);
    std::push_heap(ready.begin(), ready.end(), runs_later);
  }
  while (!ready.empty()) {
    if (ready.front() != GraphPart::kEarlier) order.push_back(ready.front());
    std::pop_heap(ready.begin(), ready.end(), runs_later);
    ready.pop_back();
  }
  return order;
}

}  // namespace ridgeline::parallel
