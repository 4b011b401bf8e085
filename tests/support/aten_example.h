// A dispatcher call on small tensors, and what it becomes in words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/trace/aten/aten_map.h"

namespace ridgeline::trace {

using Sizes = std::vector<std::int64_t>;

inline AtenTensor tensor(Sizes sizes, DType type = DType::fp32, Sizes strides = {}) {
  AtenTensor result;
  result.type = type;
  result.sizes = std::move(sizes);
  result.strides = std::move(strides);
  return result;
}
inline AtenTensor half(Sizes sizes) { return tensor(std::move(sizes), DType::bf16); }
inline AtenTensor indices(Sizes sizes) { return tensor(std::move(sizes), DType::int64); }
inline AtenTensor mask(Sizes sizes) { return tensor(std::move(sizes), DType::boolean); }
inline AtenTensor hosted(AtenTensor x) {
  x.on_host = true;
  return x;
}

struct Example {
  std::string name;
  std::vector<Argument> inputs;
  std::string expected;  ///< "name shape; name shape"
  std::vector<AtenTensor> outputs{};
};

inline std::string full_name(const Example& example) {
  return example.name.find("::") == example.name.npos ? "aten::" + example.name : example.name;
}

inline AtenCall call_of(const Example& example) {
  AtenCall call;
  call.name = full_name(example);
  call.inputs = example.inputs;
  call.outputs = example.outputs;
  return call;
}

inline std::string described(const Example& example, const MapContext& context = {}) {
  const auto ops = map_aten(call_of(example), context);
  if (!ops) return "not understood";
  std::string text;
  for (const MappedOp& mapped : *ops)
    text += (text.empty() ? "" : "; ") + name_of(mapped.op) + " " + shape_of(mapped.op);
  return text.empty() ? "nothing" : text;
}

inline const std::monostate kLeftOut;
inline const AtenTensor kX = tensor({4, 8});
inline const AtenTensor kHeads = half({2, 12, 128, 64}), kImage = tensor({2, 16, 32, 32});

}  // namespace ridgeline::trace
