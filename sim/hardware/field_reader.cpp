#include "sim/hardware/field_reader.h"

namespace ridgeline {

SheetRow read_described(const config::Value& field, const std::function<void(const config::Value&)>& use) {
  const config::Node& node = field.node();
  SheetRow row;
  row.key = field.path();
  const bool from_command_line = field.origin().line == 0;
  if (from_command_line && !field.is_mapping()) {
    use(field);
    split_unit(row, node);
    row.source = field.origin().to_string();
    return row;
  }
  if (!field.is_mapping())
    field.fail("expected {value: ..., source: ...}, got " + node.describe() +
               "; or give the whole file a source: of its own");
  const config::Mapping parts(field, {"value", "source", "spread", "note"});
  use(parts.has("value") ? parts["value"].called(field.path()) : parts["value"]);
  split_unit(row, parts["value"].node());
  row.source = parts["source"].text();
  if (row.source.empty()) parts["source"].fail("empty; say where the value comes from");
  if (parts.has("note")) row.note = parts["note"].text();
  if (parts.has("spread")) row.spread = parts["spread"].number({0.0, 1.0});
  return row;
}

void FieldReader::document(const std::function<void()>& fields, const std::vector<std::string>& plain_keys) {
  run(root_, fields, plain_keys);
}

void FieldReader::section(std::string_view key, const std::function<void()>& fields) {
  if (keys_) {
    keys_->emplace_back(key);
    return;
  }
  run((*mapping_)[key], fields, {});
}

void FieldReader::run(const config::Value& value, const std::function<void()>& fields,
                      const std::vector<std::string>& plain_keys) {
  std::vector<std::string> keys = plain_keys;
  keys_ = &keys;
  fields();
  keys_ = nullptr;
  const config::Mapping* outer = mapping_;
  const config::Mapping mapping(value, keys);
  mapping_ = &mapping;
  fields();
  mapping_ = outer;
}

void FieldReader::read(std::string_view key, const std::function<void(const config::Value&)>& use) {
  if (keys_) keys_->emplace_back(key);
  else (void)read_described((*mapping_)[key], use);
}

void FieldReader::text(std::string_view key, std::string& out) {
  read(key, [&](const config::Value& value) { out = value.text(); });
}
void FieldReader::flag(std::string_view key, bool& out) {
  read(key, [&](const config::Value& value) { out = value.boolean(); });
}
void FieldReader::integer(std::string_view key, int& out, int low, int high) {
  read(key, [&](const config::Value& value) { out = static_cast<int>(value.integer({low, high})); });
}
void FieldReader::integers(std::string_view key, std::vector<int>& out, std::size_t count, int low, int high) {
  read(key, [&](const config::Value& value) {
    out.clear();
    for (const config::Value& item : value.list()) out.push_back(static_cast<int>(item.integer({low, high})));
    if (out.size() != count)
      value.fail("expected " + std::to_string(count) + " numbers, got " + std::to_string(out.size()));
  });
}
void FieldReader::number(std::string_view key, double& out, config::Range range) {
  read(key, [&](const config::Value& value) { out = value.number(range); });
}

}  // namespace ridgeline
