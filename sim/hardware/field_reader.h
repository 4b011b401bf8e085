// Reads a description whose every number says where it comes from.
//
// A field is `key: {value: 4.8 TB/s, source: "datasheet"}`, with an optional `spread` (relative) and `note`; a bare
// scalar is accepted only from --set, which is its own source. A description is one function over a FieldReader,
//     reader.section("dram", [&] { reader.text("type", d.type); reader.quantity("bandwidth", d.bandwidth); });
// run twice: once to learn the keys, so that an unknown one is reported with its neighbours, once to read.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/value.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

class FieldReader {
 public:
  /// `rows` (may be null) receives one row a field, in the order of reading.
  FieldReader(config::Value root, std::vector<SheetRow>* rows) : root_(std::move(root)), rows_(rows) {}

  /// Runs `fields` over the whole document. `plain_keys` are further top-level keys, not read here.
  void document(const std::function<void()>& fields, const std::vector<std::string>& plain_keys);
  void section(std::string_view key, const std::function<void()>& fields);
  void optional_section(std::string_view key, const std::function<void()>& fields) {
    if (keys_ || mapping_->has(key)) section(key, fields);
  }
  /// A list whose items `read_item` reads; nothing where the description does not say.
  void optional_list(std::string_view key, const std::function<void(const config::Value&)>& read_item) {
    if (!keys_ && !mapping_->has(key)) return;
    read(key, [&](const config::Value& value) {
      for (const config::Value& item : value.list()) read_item(item);
    });
  }

  void text(std::string_view key, std::string& out);
  void flag(std::string_view key, bool& out);
  void integer(std::string_view key, int& out, int low, int high);
  void integers(std::string_view key, std::vector<int>& out, std::size_t count, int low, int high);
  void number(std::string_view key, double& out, config::Range range);
  template <typename Q>
  void quantity(std::string_view key, Q& out, config::Range range = config::Range::positive()) {
    read(key, [&](const config::Value& value) { out = value.quantity<Q>(range); });
  }
  /// Keeps what `out` holds where the description does not say.
  template <typename Q>
  void optional_quantity(std::string_view key, Q& out, config::Range range = config::Range::positive()) {
    if (keys_ || mapping_->has(key)) quantity(key, out, range);
  }
  template <typename Q>
  void quantities(std::string_view key, std::vector<Q>& out, config::Range range) {
    read(key, [&](const config::Value& value) {
      out.clear();
      for (const config::Value& item : value.list()) out.push_back(item.quantity<Q>(range));
    });
  }
  template <typename Enum>
  void choice(std::string_view key, Enum& out, config::Choices<Enum> choices) {
    read(key, [&](const config::Value& value) { out = value.choice(choices); });
  }
  /// As optional_quantity.
  template <typename Enum>
  void optional_choice(std::string_view key, Enum& out, config::Choices<Enum> choices) {
    if (keys_ || mapping_->has(key)) choice(key, out, choices);
  }

 private:
  void read(std::string_view key, const std::function<void(const config::Value&)>& use);
  void run(const config::Value& value, const std::function<void()>& fields, const std::vector<std::string>& plain_keys);

  config::Value root_;
  std::vector<SheetRow>* rows_;
  const config::Mapping* mapping_ = nullptr;  ///< the section being read
  std::vector<std::string>* keys_ = nullptr;  ///< not null while the keys of a section are being learned
};

}  // namespace ridgeline
