// A dispatcher call and all that it becomes, in one notation that is read and written: "bf16[3,5](1,3)#7" is a tensor
// of three by five, with strides, in storage 7; "host:" before it says where it lives.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/aten/aten_map.h"
#include "sim/workload/host_class.h"
#include "sim/workload/op_fields.h"
#include "tests/support/aten_example.h"

namespace ridgeline::trace {

inline std::vector<std::int64_t> whole_numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::from_chars(text.data(), text.data() + end, numbers.emplace_back());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

inline AtenTensor operator""_t(const char* characters, std::size_t size) {
  std::string_view text(characters, size);
  AtenTensor tensor;
  tensor.on_host = text.starts_with("host:");
  if (tensor.on_host) text.remove_prefix(5);
  const std::size_t open = text.find('['), close = text.find(']');
  const auto type = dtype_from(text.substr(0, open));
  if (!type || close == text.npos) throw std::invalid_argument(std::string(text));
  tensor.type = *type;
  tensor.sizes = whole_numbers_of(text.substr(open + 1, close - open - 1));
  text.remove_prefix(close + 1);
  if (text.starts_with('(')) {
    tensor.strides = whole_numbers_of(text.substr(1, text.find(')') - 1));
    text.remove_prefix(text.find(')') + 1);
  }
  if (text.starts_with('#')) std::from_chars(text.data() + 1, text.data() + text.size(), tensor.storage);
  return tensor;
}

inline std::string text_of(const AtenTensor& tensor) {
  std::string text =
      fmt::format("{}{}[{}]", tensor.on_host ? "host:" : "", name_of(tensor.type), fmt::join(tensor.sizes, ","));
  if (!tensor.strides.empty()) text += fmt::format("({})", fmt::join(tensor.strides, ","));
  if (tensor.storage != AtenTensor::kNoStorage) text += fmt::format("#{}", tensor.storage);
  return text;
}

/// Fields of an operation behind one another: names of choices by themselves, flags where they are set, numbers by
/// name.
struct FieldText {
  std::string& out;
  void operator()(std::string_view, DType type) const { out += fmt::format(" {}", name_of(type)); }
  void operator()(std::string_view key, bool set) const { out += set ? fmt::format(" {}", key) : ""; }
  void operator()(std::string_view key, std::int64_t value) const { out += fmt::format(" {}={}", key, value); }
  void operator()(std::string_view key, std::uint8_t value) const { out += fmt::format(" {}={}", key, value); }
  void operator()(std::string_view, const std::string& value) const { out += " " + value; }
  void operator()(std::string_view key, const std::vector<std::int64_t>& list) const {
    out += fmt::format(" {}={}", key, fmt::join(list, ","));
  }
  void operator()(std::string_view key, const std::shared_ptr<const std::vector<std::int64_t>>& list) const {
    if (list) (*this)(key, *list);
  }
  void unless(std::string_view key, const auto& value, const auto& usual) const {
    if (value != usual) (*this)(key, value);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view, Enum value) const { out += fmt::format(" {}", word_of(value)); }
};

/// "mul 3x5 fp32,bf16>fp32 broadcast_row" of a point-wise operation, all fields by name of any other.
inline std::string text_of(const Op& op) {
  const auto* point = std::get_if<Pointwise>(&op);
  if (point == nullptr) {
    std::string text(kKindNames[op.index()]);
    for_each_field(op, FieldText{text});
    return text;
  }
  std::string types, unused;
  for (int i = 0; i < 3; ++i) {
    const DType type = point->inputs[i];
    if (i < point->input_count) types += fmt::format("{}{}", i > 0 ? "," : "", name_of(type));
    else if (type != point->output) unused += fmt::format(" and {} unused", name_of(type));
  }
  return fmt::format("{} {}x{} {}>{} {}{}", word_of(point->function), point->rows, point->cols, types,
                     name_of(point->output), word_of(point->walk), unused);
}

/// "the operation: what it reads > what it writes", and what the host does it as where that is no point-wise operation.
inline std::string text_of(const MappedOp& mapped) {
  std::string text = text_of(mapped.op) + ":";
  for (const AtenTensor& input : mapped.inputs) text += " " + text_of(input);
  text += " >";
  for (const AtenTensor& output : mapped.outputs) text += " " + text_of(output);
  if (mapped.forward != HostClass::pointwise || mapped.backward != HostClass::pointwise_backward)
    text += fmt::format(" | {} {}", host_class_names()[static_cast<std::size_t>(mapped.forward)],
                        host_class_names()[static_cast<std::size_t>(mapped.backward)]);
  return text;
}

using Listing = std::vector<std::string>;
inline const Listing kNothing, kNotUnderstood{"not understood"};

/// A call with everything that a recording says of it, and a line for each operation that it becomes.
struct WorkedCall {
  std::string name;
  std::vector<Argument> inputs;
  Listing expected;
  std::vector<AtenTensor> outputs{};
  std::vector<MeasuredKernel> kernels{};
};

inline Listing operations_of(const WorkedCall& worked, const MapContext& context = {}) {
  AtenCall call;
  call.name = worked.name.find("::") == worked.name.npos ? "aten::" + worked.name : worked.name;
  call.inputs = worked.inputs;
  call.outputs = worked.outputs;
  call.kernels = worked.kernels;
  const auto ops = map_aten(call, context);
  if (!ops) return kNotUnderstood;
  Listing lines;
  for (const MappedOp& mapped : *ops) lines.push_back(text_of(mapped));
  return lines;
}

/// The call as it is written, for what a test says when it fails.
inline std::string text_of(const WorkedCall& worked) {
  std::string text = worked.name + "(";
  for (const Argument& input : worked.inputs) {
    if (const auto* tensor = std::get_if<AtenTensor>(&input)) text += text_of(*tensor) + " ";
    else if (const auto* number = std::get_if<double>(&input)) text += fmt::format("{} ", *number);
    else text += "… ";
  }
  return text + ")";
}

inline MeasuredKernel measured(std::string name, std::int64_t blocks = 0) {
  MeasuredKernel kernel;
  kernel.name = std::move(name);
  kernel.blocks = blocks;
  return kernel;
}

}  // namespace ridgeline::trace
