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

/// Hands the value of a field to `use`, which throws config::ConfigError where it makes no sense, and returns value,
/// unit, source, spread and note as a row of a sheet.
SheetRow read_described(const config::Value& field, const std::function<void(const config::Value&)>& use);

class FieldReader {
 public:
  explicit FieldReader(config::Value root) : root_(std::move(root)) {}

  /// Runs `fields` over the whole document. `plain_keys` are further top-level keys, not read here.
  void document(const std::function<void()>& fields, const std::vector<std::string>& plain_keys);
  void section(std::string_view key, const std::function<void()>& fields);

  void text(std::string_view key, std::string& out);
  void flag(std::string_view key, bool& out);
  void integer(std::string_view key, int& out, int low, int high);
  void integers(std::string_view key, std::vector<int>& out, std::size_t count, int low, int high);
  void number(std::string_view key, double& out, config::Range range);
  template <typename Q>
  void quantity(std::string_view key, Q& out, config::Range range = config::Range::positive()) {
    read(key, [&](const config::Value& value) { out = value.quantity<Q>(range); });
  }
  /// These two keep what `out` holds where the description does not say.
  void optional_number(std::string_view key, double& out, config::Range range) {
    if (given(key)) number(key, out, range);
  }
  /// Keeps what the section's fields hold where the description has no such section.
  void optional_section(std::string_view key, const std::function<void()>& fields) {
    if (given(key)) section(key, fields);
  }
  void optional_flag(std::string_view key, bool& out) {
    if (given(key)) flag(key, out);
  }

 private:
  /// True while keys are being learned, too.
  [[nodiscard]] bool given(std::string_view key) const { return keys_ || mapping_->has(key); }
  void read(std::string_view key, const std::function<void(const config::Value&)>& use);
  void run(const config::Value& value, const std::function<void()>& fields, const std::vector<std::string>& plain_keys);

  config::Value root_;
  const config::Mapping* mapping_ = nullptr;  ///< the section being read
  std::vector<std::string>* keys_ = nullptr;  ///< not null while the keys of a section are being learned
};

}  // namespace ridgeline
