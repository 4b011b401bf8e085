// Reads a description whose every number says where it comes from.
//
// A field is `key: {value: 4.8 TB/s, source: "datasheet"}`, with an optional `spread` (relative) and `note`; a bare
// scalar is accepted only from --set, which is its own source. A description is one function over a FieldReader,
//     reader.section("dram", [&] { reader.text("type", d.type); reader.quantity("bandwidth", d.bandwidth); });
// run twice: once to learn the keys, so that an unknown one is reported with its neighbours, once to read.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/value.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

class FieldReader {
 public:
  /// `rows` receives one row a field, in the order of reading, `assumed` one a field that the description leaves out;
  /// both may be null.
  explicit FieldReader(config::Value root, std::vector<SheetRow>* rows = nullptr,
                       std::vector<SheetRow>* assumed = nullptr)
      : root_(std::move(root)), rows_(rows), assumed_(assumed) {}

  /// Runs `fields` over the whole document. `plain_keys` are further top-level keys, not read here.
  void document(const std::function<void()>& fields, const std::vector<std::string>& plain_keys);
  void section(std::string_view key, const std::function<void()>& fields);
  void optional_section(std::string_view key, const std::function<void()>& fields) {
    if (given(key)) section(key, fields);
    else assume(key, "none");
  }
  /// A list whose items `read_item` reads; nothing where the description does not say.
  void optional_list(std::string_view key, const std::function<void(const config::Value&)>& read_item) {
    if (!given(key)) return assume(key, "none");
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
    if (given(key)) quantity(key, out, range);
    else assume(key, to_string(Measure{out.value(), config::kDimensionOf<Q>}));
  }
  template <typename Q>
  void quantities(std::string_view key, std::vector<Q>& out, config::Range range) {
    read(key, [&](const config::Value& value) {
      out.clear();
      for (const config::Value& item : value.list()) out.push_back(item.quantity<Q>(range));
    });
  }
  /// As optional_quantity.
  void optional_number(std::string_view key, double& out, config::Range range) {
    if (given(key)) number(key, out, range);
    else assume(key, fmt::format("{:g}", out));
  }
  template <typename Enum>
  void choice(std::string_view key, Enum& out, config::Choices<Enum> choices) {
    read(key, [&](const config::Value& value) { out = value.choice(choices); });
  }
  /// As optional_quantity.
  void optional_flag(std::string_view key, bool& out) {
    if (given(key)) flag(key, out);
    else assume(key, out ? "true" : "false");
  }
  /// As optional_quantity.
  template <typename Enum>
  void optional_choice(std::string_view key, Enum& out, config::Choices<Enum> choices) {
    if (given(key)) return choice(key, out, choices);
    for (const auto& [name, value] : choices)
      if (value == out) assume(key, std::string(name));
  }

 private:
  /// True while keys are being learned, too.
  [[nodiscard]] bool given(std::string_view key) const { return keys_ || mapping_->has(key); }
  void assume(std::string_view key, std::string value);
  void read(std::string_view key, const std::function<void(const config::Value&)>& use);
  void run(const config::Value& value, const std::function<void()>& fields, const std::vector<std::string>& plain_keys);

  config::Value root_;
  std::vector<SheetRow>* rows_;
  std::vector<SheetRow>* assumed_;
  const config::Mapping* mapping_ = nullptr;  ///< the section being read
  std::vector<std::string>* keys_ = nullptr;  ///< not null while the keys of a section are being learned
};

}  // namespace ridgeline
