#include "sim/trace/execution_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include "sim/trace/aten/aten_map.h"
#include "sim/trace/json_integers.h"
#include "sim/trace/profiler/profiler_arguments.h"
#include "sim/trace/trace_builder.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

/// "Tensor(c10::Half)" to its type; nothing for what is no tensor.
std::optional<DType> type_of_tensor(std::string_view type) {
  if (!type.starts_with("Tensor(") || !type.ends_with(')')) return std::nullopt;
  return dtype_of_aten(type.substr(7, type.size() - 8));
}

/// [tensor, storage, offset, elements, bytes of one, device] with its shape.
AtenTensor tensor_of(DType type, const element& value, const element* shape, const element* strides,
                     const std::string& place) {
  AtenTensor tensor;
  tensor.type = type;
  if (shape != nullptr && !integers_of(*shape, tensor.sizes)) tensor.sizes.clear();
  check_sizes(tensor.sizes, place);
  if (strides != nullptr && !integers_of(*strides, tensor.strides)) tensor.strides.clear();
  if (tensor.strides.size() != tensor.sizes.size()) tensor.strides.clear();
  array identity;
  if (value.get(identity) != simdjson::SUCCESS) return tensor;
  std::int64_t storage = 0;
  std::string_view device;
  if (identity.at(1).get(storage) == simdjson::SUCCESS && storage > 0) tensor.storage = storage;
  if (identity.at(5).get(device) == simdjson::SUCCESS) tensor.on_host = device == "cpu";
  return tensor;
}

/// A number, flag, word, or list of numbers.
Argument plain_value(const element& value) {
  double number = 0.0;
  bool flag = false;
  std::string_view text;
  array list;
  if (value.get(flag) == simdjson::SUCCESS) return flag ? 1.0 : 0.0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  if (value.get(text) == simdjson::SUCCESS) return text == "<None>" ? Argument{} : value_from_text(text);
  if (value.get(list) != simdjson::SUCCESS) return {};
  Numbers numbers;
  for (const element item : list) {
    if (item.get(flag) == simdjson::SUCCESS) numbers.push_back(flag ? 1.0 : 0.0);
    else if (item.get(number) == simdjson::SUCCESS) numbers.push_back(number);
    else return {};
  }
  return numbers;
}

/// Values, shapes, types and strides of one side of a node, as parallel lists.
struct Side {
  std::vector<element> values, shapes, types, strides;
  [[nodiscard]] static std::vector<element> items(const element& list) {
    std::vector<element> result;
    array own;
    if (list.get(own) == simdjson::SUCCESS)
      for (const element item : own) result.push_back(item);
    return result;
  }
  [[nodiscard]] static const element* at(const std::vector<element>& list, std::size_t i) {
    return i < list.size() ? &list[i] : nullptr;
  }
};

/// Since schema 1.1.0 an object a side; before, lists of their own in the node.
Side side_of(const element& node, const std::string& name) {
  Side side;
  element own;
  if (node[name].get(own) != simdjson::SUCCESS) return side;
  if (own.is_array()) {
    side.values = Side::items(own);
    const std::string singular = name.substr(0, name.size() - 1);
    if (node[singular + "_shapes"].get(own) == simdjson::SUCCESS) side.shapes = Side::items(own);
    if (node[singular + "_types"].get(own) == simdjson::SUCCESS) side.types = Side::items(own);
    return side;
  }
  element list;
  if (own["values"].get(list) == simdjson::SUCCESS) side.values = Side::items(list);
  if (own["shapes"].get(list) == simdjson::SUCCESS) side.shapes = Side::items(list);
  if (own["types"].get(list) == simdjson::SUCCESS) side.types = Side::items(list);
  if (own["strides"].get(list) == simdjson::SUCCESS) side.strides = Side::items(list);
  return side;
}

std::vector<Argument> arguments_of(const Side& side, const std::string& place) {
  std::vector<Argument> result;
  for (std::size_t i = 0; i < side.values.size(); ++i) {
    std::string_view type;
    if (const element* given = Side::at(side.types, i); given != nullptr && given->get(type) != simdjson::SUCCESS)
      type = {};
    const element *shape = Side::at(side.shapes, i), *strides = Side::at(side.strides, i);
    if (const auto one = type_of_tensor(type)) {
      result.emplace_back(tensor_of(*one, side.values[i], shape, strides, place));
      continue;
    }
    constexpr std::string_view kList = "GenericList[";
    if (!type.starts_with("GenericList[Tensor(")) {
      result.push_back(plain_value(side.values[i]));
      continue;
    }
    TensorList list;
    const auto values = Side::items(side.values[i]);
    const auto shapes = shape != nullptr ? Side::items(*shape) : std::vector<element>{};
    const auto all_strides = strides != nullptr ? Side::items(*strides) : std::vector<element>{};
    type.remove_prefix(kList.size());
    for (std::size_t t = 0; t < values.size(); ++t) {
      const std::size_t end = std::min(type.find_first_of(",]"), type.size());
      const auto own = type_of_tensor(type.substr(0, end));
      type.remove_prefix(std::min(end + 1, type.size()));
      if (own) list.push_back(tensor_of(*own, values[t], Side::at(shapes, t), Side::at(all_strides, t), place));
    }
    result.emplace_back(std::move(list));
  }
  return result;
}

/// Operators that call others, or none where there is nothing to do.
bool is_wrapper(std::string_view name) {
  for (const std::string_view wrapper : {"aten::to", "aten::contiguous", "aten::dropout", "aten::type_as"})
    if (name == wrapper) return true;
  return false;
}

void visit_tensors(std::vector<Argument>& arguments, const auto& visit) {
  for (Argument& argument : arguments) {
    if (auto* tensor = std::get_if<AtenTensor>(&argument)) visit(*tensor);
    if (auto* list = std::get_if<TensorList>(&argument))
      for (AtenTensor& tensor : *list) visit(tensor);
  }
}

class ExecutionReplay {
 public:
  ExecutionReplay(std::vector<ExecutionNode> nodes, Defects defects) : nodes_(std::move(nodes)), builder_(result_) {
    result_.format = Format::pytorch_execution_trace;
    result_.memory_known = false;
    result_.defects = std::move(defects);
    builder_.context.cudnn_tf32 = true;  // PyTorch's default; the trace does not say
  }

  Replayable run() {
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [](const ExecutionNode& a, const ExecutionNode& b) { return a.id < b.id; });
    std::unordered_map<std::int64_t, std::size_t> index;
    for (std::size_t i = 0; i < nodes_.size(); ++i) index.emplace(nodes_[i].id, i);
    children_.resize(nodes_.size());
    std::vector<std::size_t> roots;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto parent = index.find(nodes_[i].parent);
      // A parent begins before its children: a link forwards would be a circle.
      if (parent != index.end() && parent->second < i) children_[parent->second].push_back(i);
      else roots.push_back(i);
    }
    any_gpu_ = std::any_of(nodes_.begin(), nodes_.end(), [](const ExecutionNode& n) { return n.on_gpu; });
    if (!any_gpu_) result_.defects.add("recorded on a CPU: its tensors are taken to be the GPU's", 1);
    for (const ExecutionNode& node : nodes_) {
      if (node.name.starts_with("autograd::engine::evaluate_function")) last_backward_ = node.id;
      optimizer_steps_ += node.name.starts_with("Optimizer.step#") ? 1 : 0;
    }
    builder_.begin_step();
    for (const auto& [thread, first] : in_order(roots)) visit(first, Phase::forward, 0);
    const DispatcherHost::Work work = builder_.modelled_host.end_step();
    builder_.host(work.host_class, work.times);
    builder_.end_step();
    result_.measured.which_step = optimizer_steps_ > 1
                                      ? fmt::format("the whole recording, {} steps of an optimizer", optimizer_steps_)
                                      : "the whole recording, taken as one step";
    return std::move(result_);
  }

 private:
  /// The top operators of all threads, in the order in which they began: threads do not work at the same time.
  std::vector<std::pair<std::int64_t, std::size_t>> in_order(const std::vector<std::size_t>& roots) {
    std::vector<std::pair<std::int64_t, std::size_t>> tops;
    std::vector<std::size_t> open(roots.rbegin(), roots.rend());
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (nodes_[i].name.starts_with("[pytorch|profiler|execution_trace"))
        open.insert(open.end(), children_[i].begin(), children_[i].end());
      else tops.emplace_back(nodes_[i].id, i);
    }
    std::sort(tops.begin(), tops.end());
    return tops;
  }

  void visit(std::size_t i, Phase phase, int depth) {
    constexpr int kDeepest = 2000;  // call stacks of people's code stay far below
    ExecutionNode& node = nodes_[i];
    if (depth > kDeepest) return result_.defects.add("operators nested too deeply, left out");
    if (node.name.starts_with("autograd::engine::evaluate_function")) phase = Phase::backward;
    else if (node.name.starts_with("Optimizer.step")) phase = Phase::optimizer;
    else if (node.name.starts_with("Optimizer.zero_grad")) phase = Phase::other;
    else if (phase == Phase::forward && last_backward_ > 0 && node.id > last_backward_) phase = Phase::clipping;
    const bool on_device = node.on_gpu || (!any_gpu_ && node.has_tensors);
    const bool known = is_mapped(node.name);
    if ((known || launches_nothing(node.name)) && node.has_tensors) {
      if (!on_device) return;  // numbers in host memory
      if (add(node, phase)) return;
    }
    if (!children_[i].empty()) {
      for (const std::size_t child : children_[i]) visit(child, phase, depth + 1);
    } else if (on_device && node.name.starts_with("aten::") && !launches_nothing(node.name) && !is_wrapper(node.name)) {
      builder_.unknown(call_of(node, phase));
    }
  }

  AtenCall call_of(const ExecutionNode& node, Phase phase) const {
    AtenCall call;
    call.name = node.name;
    call.inputs = node.inputs;
    call.outputs = node.outputs;
    call.phase = phase;
    return call;
  }

  bool add(ExecutionNode& node, Phase phase) {
    const auto mention = [&](AtenTensor& tensor) {
      if (!any_gpu_) tensor.on_host = false;
      if (!tensor.on_host && tensor.storage != AtenTensor::kNoStorage) builder_.mention(tensor.storage, tensor.bytes());
    };
    visit_tensors(node.inputs, mention);
    for (AtenTensor& tensor : node.outputs) mention(tensor);
    const AtenCall call = call_of(node, phase);
    if (!builder_.call(call)) return false;
    if (call.name == "aten::_local_scalar_dense") builder_.wait();
    return true;
  }

  std::vector<ExecutionNode> nodes_;
  Replayable result_;
  TraceBuilder builder_;
  std::vector<std::vector<std::size_t>> children_;
  bool any_gpu_ = false;
  std::int64_t last_backward_ = 0;
  int optimizer_steps_ = 0;
};

}  // namespace

void ExecutionTraceReader::node(std::string_view text, std::int64_t line) {
  const std::string place = fmt::format("{}:{}", path_, line);
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root); error != simdjson::SUCCESS)
    throw UserError(fmt::format("{}: a node is not valid JSON: {}", place, simdjson::error_message(error)));
  ExecutionNode node;
  std::string_view name;
  if (root["id"].get(node.id) != simdjson::SUCCESS || root["name"].get(name) != simdjson::SUCCESS)
    return defects_.add("nodes without id or name, left out");
  node.name = name;
  if (root["ctrl_deps"].get(node.parent) != simdjson::SUCCESS && root["parent"].get(node.parent) != simdjson::SUCCESS)
    node.parent = 0;
  node.inputs = arguments_of(side_of(root, "inputs"), place);
  auto outputs = arguments_of(side_of(root, "outputs"), place);
  const auto look = [&](const AtenTensor& tensor) {
    node.has_tensors = true;
    node.on_gpu = node.on_gpu || !tensor.on_host;
  };
  visit_tensors(node.inputs, look);
  visit_tensors(outputs, look);
  for (Argument& output : outputs)
    if (auto* tensor = std::get_if<AtenTensor>(&output)) node.outputs.push_back(std::move(*tensor));
  nodes_.push_back(std::move(node));
}

Replayable ExecutionTraceReader::finish() {
  if (!schema_.empty() && schema_.find("\"1.") == schema_.npos)
    defects_.add(fmt::format("schema {} is newer than those known (1.0.1 to 1.1.1)", schema_));
  const bool any = std::any_of(nodes_.begin(), nodes_.end(),
                               [](const ExecutionNode& n) { return n.has_tensors && n.name.starts_with("aten::"); });
  if (!any) throw UserError(fmt::format("{}: the execution trace has no operator with tensors", path_));
  return ExecutionReplay(std::move(nodes_), std::move(defects_)).run();
}

}  // namespace ridgeline::trace
