#include "sim/trace/op_trace/op_text.h"

#include <nlohmann/json.hpp>

#include "sim/trace/op_trace/line_fields.h"
#include "sim/workload/op_fields.h"

namespace ridgeline::trace {
namespace {

using nlohmann::ordered_json;

/// Fields of an op as JSON members.
struct FieldWriter {
  ordered_json& out;
  /// Left out where it is as usual.
  void unless(std::string_view name, const auto& value, const auto& usual) const {
    if (value != usual) (*this)(name, value);
  }
  void operator()(std::string_view name, const std::shared_ptr<const std::vector<std::int64_t>>& value) const {
    put(name, value ? ordered_json(*value) : ordered_json::array());
  }
  void operator()(std::string_view name, DType value) const { put(name, name_of(value)); }
  template <typename Value>
  void operator()(std::string_view name, const Value& value) const {
    if constexpr (std::is_enum_v<Value>) put(name, word_of(value));
    else put(name, value);
  }

 private:
  void put(std::string_view name, ordered_json value) const { out[std::string(name)] = std::move(value); }
};

}  // namespace

void add_op(ordered_json& line, const Op& op) {
  line["kind"] = kKindNames[op.index()];
  for_each_field(op, FieldWriter{line});
}

std::string op_text(const Op& op) {
  ordered_json object = ordered_json::object();
  add_op(object, op);
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<Op> op_from_text(std::string_view text) {
  simdjson::dom::parser parser;
  object line;
  if (parser.parse(text.data(), text.size()).get(line) != simdjson::SUCCESS) return std::nullopt;
  try {
    return read_op(line);
  } catch (const LineError&) {
    return std::nullopt;
  }
}

}  // namespace ridgeline::trace
