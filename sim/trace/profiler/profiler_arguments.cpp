#include "sim/trace/profiler/profiler_arguments.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/trace/aten/aten_map.h"
#include "sim/trace/json_integers.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

/// More elements than any device holds; products of sizes below it do not overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 46;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<double> number_from(std::string_view text) {
  if (text == "True" || text == "true") return 1.0;
  if (text == "False" || text == "false") return 0.0;
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

AtenTensor tensor_of(DType type, const element* dims, const element* strides, const std::string& place) {
  AtenTensor tensor;
  tensor.type = type;
  if (dims != nullptr && !integers_of(*dims, tensor.sizes)) tensor.sizes.clear();
  check_sizes(tensor.sizes, place);
  if (strides != nullptr && !integers_of(*strides, tensor.strides)) tensor.strides.clear();
  if (tensor.strides.size() != tensor.sizes.size()) tensor.strides.clear();
  return tensor;
}

/// One of the four parallel lists: null where it is absent or shorter.
class Column {
 public:
  Column(const element& arguments, const char* name, const char* older_name) {
    known_ = arguments[name].get(list_) == simdjson::SUCCESS || arguments[older_name].get(list_) == simdjson::SUCCESS;
    if (known_)
      for (const element item : list_) items_.push_back(item);
  }
  [[nodiscard]] const element* at(std::size_t i) const { return i < items_.size() ? &items_[i] : nullptr; }
  [[nodiscard]] std::string_view word(std::size_t i) const {
    std::string_view text;
    if (i >= items_.size() || items_[i].get(text) != simdjson::SUCCESS) return {};
    return text;
  }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

 private:
  array list_;
  bool known_ = false;
  std::vector<element> items_;
};

TensorList tensor_list_of(const element* dims, const element* strides, DType type, const std::string& place) {
  TensorList tensors;
  array sizes_of_each;
  if (dims == nullptr || dims->get(sizes_of_each) != simdjson::SUCCESS) return tensors;
  array strides_of_each;
  const bool with_strides = strides != nullptr && strides->get(strides_of_each) == simdjson::SUCCESS &&
                            strides_of_each.size() == sizes_of_each.size();
  std::size_t i = 0;
  for (const element sizes : sizes_of_each) {
    if (!sizes.is_array()) return {};
    element own_strides;
    if (with_strides) own_strides = strides_of_each.at(i).value_unsafe();
    tensors.push_back(tensor_of(type, &sizes, with_strides ? &own_strides : nullptr, place));
    ++i;
  }
  return tensors;
}

}  // namespace

void check_sizes(const std::vector<std::int64_t>& sizes, const std::string& place) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw UserError(fmt::format("{}: a tensor has the size {}", place, size));
    if (size > kMostElements || (size > 0 && elements > kMostElements / size))
      throw UserError(fmt::format("{}: a tensor of {} has more elements than any device holds", place,
                                  fmt::format("[{}]", fmt::join(sizes, ", "))));
    elements *= size > 0 ? size : 1;
  }
}

Argument value_from_text(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text == "None") return {};
  if (const auto number = number_from(text)) return *number;
  if (text.front() != '[' || text.back() != ']') return std::string(text);
  Numbers numbers;
  text = text.substr(1, text.size() - 2);
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto number = number_from(trimmed(text.substr(0, comma)));
    if (!number) return {};
    numbers.push_back(*number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

void read_storages(const std::string& json, AtenCall& call) {
  if (json.find("\"Storages\"") == json.npos) return;
  simdjson::dom::parser parser;
  element root, storages;
  if (parser.parse(json).get(root) != simdjson::SUCCESS || root["Storages"].get(storages) != simdjson::SUCCESS) return;
  const auto read = [&](const char* key, std::vector<NamedOperand>& into) {
    array all;
    if (storages[key].get(all) != simdjson::SUCCESS) return;
    for (const element one : all) {
      std::vector<std::int64_t> numbers;
      const bool good =
          integers_of(one, numbers) && numbers.size() == 3 && numbers[0] >= 0 &&
          std::all_of(numbers.begin() + 1, numbers.end(), [](std::int64_t n) { return n >= 0 && n <= kMostElements; });
      if (good) into.push_back({numbers[0], numbers[1], numbers[2]});
    }
  };
  read("reads", call.reads);
  read("writes", call.writes);
}

std::vector<Argument> profiler_arguments(const std::string& json, DType type_in_lists, const std::string& place,
                                         Defects& defects) {
  std::vector<Argument> result;
  if (json.empty()) return result;
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json).get(root) != simdjson::SUCCESS) {
    defects.add("operators whose arguments are not valid JSON");
    return result;
  }
  const Column dims(root, "Input Dims", "Input dims"), types(root, "Input type", "Input types"),
      strides(root, "Input Strides", "Input strides"), values(root, "Concrete Inputs", "Concrete inputs");
  for (std::size_t i = 0; i < std::max(dims.size(), types.size()); ++i) {
    const std::string_view type = types.word(i);
    if (type == "TensorList" || type.starts_with("GenericList")) {
      result.emplace_back(tensor_list_of(dims.at(i), strides.at(i), type_in_lists, place));
    } else if (type.empty() || type == "Scalar" || type == "ScalarList") {
      result.push_back(value_from_text(values.word(i)));
    } else if (const auto known = dtype_of_aten(type)) {
      result.emplace_back(tensor_of(*known, dims.at(i), strides.at(i), place));
    } else {
      defects.add(fmt::format("arguments of the unknown type '{}'", type));
      result.emplace_back();
    }
  }
  return result;
}

}  // namespace ridgeline::trace
