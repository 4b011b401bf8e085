// The arguments of an operator as the four parallel lists that PyTorch's profiler writes of them.
#include <fmt/format.h>

#include <utility>

#include "sim/trace/aten/aten_call_of.h"

namespace ridgeline::trace {
namespace {

void append_list(std::string& out, const std::vector<std::int64_t>& numbers) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    const fmt::format_int digits(numbers[i]);
    out.append(digits.data(), digits.size());
  }
  out += ']';
}

/// Strides of a tensor that lies in one piece where it does not say its own.
std::vector<std::int64_t> strides_of(const AtenTensor& x) {
  std::vector<std::int64_t> strides = x.strides;
  if (strides.size() == x.sizes.size()) return strides;
  strides.assign(x.sizes.size(), 1);
  for (std::size_t i = x.sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * x.sizes[i];
  return strides;
}

/// JSON lists with an entry of each argument, written as they grow: lists of tensors have hundreds of sizes.
struct Columns {
  std::string dims = "[", types = "[", strides = "[", values = "[";
  void operator()(std::monostate) { add("", ""); }
  void operator()(const AtenTensor& x) {
    begin(aten_name_of(x.type), "");
    append_list(dims, x.sizes);
    append_list(strides, strides_of(x));
  }
  void operator()(const TensorList& list) {
    begin("TensorList", "");
    dims += '[';
    strides += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) dims += ',', strides += ',';
      append_list(dims, list[i].sizes);
      append_list(strides, strides_of(list[i]));
    }
    dims += ']';
    strides += ']';
  }
  void operator()(double value) { add("Scalar", fmt::format("{}", value)); }
  void operator()(const Numbers& list) { add("ScalarList", fmt::format("[{}]", fmt::join(list, ", "))); }
  void operator()(const std::string& word) { add("", word); }

 private:
  /// An argument without sizes.
  void add(std::string_view type, std::string_view value) {
    begin(type, value);
    dims += "[]";
    strides += "[]";
  }
  void begin(std::string_view type, std::string_view value) {
    if (types.size() > 1)
      for (std::string* column : {&dims, &types, &strides, &values}) *column += ',';
    types.append(1, '"').append(type) += '"';
    values.append(1, '"').append(value) += '"';
  }
};

}  // namespace

ProfiledArguments profiled_arguments(const AtenCall& call) {
  Columns columns;
  for (const Argument& input : call.inputs) std::visit(columns, input);
  for (std::string* column : {&columns.dims, &columns.types, &columns.strides, &columns.values}) *column += ']';
  return {std::move(columns.dims), std::move(columns.types), std::move(columns.strides), std::move(columns.values)};
}

}  // namespace ridgeline::trace
