#include "fit/law_table.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <fstream>
#include <sstream>

#include "fit/measurements.h"
#include "fit/yaml_fields.h"
#include "sim/output/write_file.h"

namespace ridgeline::fit {
namespace {

Errors errors_of(const config::Node& node) {
  expect_keys(node, {"kernels", "median", "mean"});
  return {static_cast<std::size_t>(number_of(node, "kernels")), number_of(node, "median"), number_of(node, "mean")};
}

FitRecord record_of(const config::Node& node) {
  expect_keys(node, {"in_sample", "cross_validated", "held_out", "loss", "machines", "data"});
  FitRecord record{.in_sample = errors_of(field_of(node, "in_sample")),
                   .cross_validated = errors_of(field_of(node, "cross_validated")),
                   .held_out = errors_of(field_of(node, "held_out")),
                   .loss = number_of(node, "loss"),
                   .data = text_of(node, "data")};
  for (const config::Entry& machine : entries_of(node, "machines"))
    record.machines[machine.key] = number_of(machine.value);
  return record;
}

LawConstant constant_of(const config::Entry& entry) {
  expect_keys(entry.value, {"value", "sd", "note"});
  LawConstant constant{.name = entry.key,
                       .value = number_of(entry.value, "value"),
                       .text = text_of(entry.value, "value"),
                       .sd = find_number(entry.value, "sd")};
  if (entry.value.find("note") != nullptr) constant.note = text_of(entry.value, "note");
  return constant;
}

std::string comment_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string comment;
  for (std::string line; std::getline(file, line) && line.starts_with('#');) comment += line + '\n';
  return comment;
}

/// Breaks a text into lines of a folded block.
void print_about(std::ostream& out, const std::string& about) {
  if (about.empty()) return;
  fmt::print(out, "    about: >-\n");
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) fmt::print(out, "      {}\n", line);
    line.clear();
  };
  for (std::size_t from = 0; from < about.size();) {
    const std::size_t to = std::min(about.find(' ', from), about.size());
    const std::string word = about.substr(from, to - from);
    if (line.size() + word.size() > 112) flush();
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    from = to + 1;
  }
  flush();
}

void print_errors(std::ostream& out, const char* name, const Errors& errors) {
  fmt::print(out, "      {}: {{kernels: {}, median: {:.2f}, mean: {:.2f}}}\n", name, errors.kernels, errors.median,
             errors.mean);
}

void print_fit(std::ostream& out, const FitRecord& fit) {
  fmt::print(out, "    fit:\n");
  print_errors(out, "in_sample", fit.in_sample);
  print_errors(out, "cross_validated", fit.cross_validated);
  print_errors(out, "held_out", fit.held_out);
  fmt::print(out, "      loss: {:.6g}\n", fit.loss);
  if (!fit.machines.empty()) {
    fmt::print(out, "      machines: {{");
    const char* comma = "";
    for (const auto& [name, percent] : fit.machines) {
      fmt::print(out, "{}{}: {:.2f}", comma, name, percent);
      comma = ", ";
    }
    fmt::print(out, "}}\n");
  }
  fmt::print(out, "      data: x{}\n", fit.data.substr(fit.data.starts_with('x') ? 1 : 0));
}

}  // namespace

Values LawClass::values() const {
  Values result;
  for (const LawConstant& constant : constants) result[constant.name] = constant.value;
  return result;
}

std::string LawClass::hash() const {
  std::uint64_t hash = hash_of(name);
  for (const LawConstant& constant : constants) hash = hash_of(constant.name + '=' + constant.text + ';', hash);
  return fmt::format("x{:016x}", hash);
}

LawClass* LawTable::find(std::string_view name_of_class) {
  for (LawClass& one : classes)
    if (one.name == name_of_class) return &one;
  return nullptr;
}

LawTable read_table(const std::filesystem::path& path) {
  const config::Node root = config::load_yaml(path);
  expect_keys(root, {"table", "struct", "header", "units", "classes"});
  LawTable table{.comment = comment_of(path),
                 .name = text_of(root, "table"),
                 .type = text_of(root, "struct"),
                 .header = text_of(root, "header")};
  for (const config::Entry& unit : entries_of(root, "units")) table.units.emplace_back(unit.key, unit.value.scalar);
  for (const config::Entry& entry : entries_of(root, "classes")) {
    expect_keys(entry.value, {"about", "fit", "numbers", "constants"});
    LawClass one{.name = entry.key};
    if (entry.value.find("about") != nullptr) one.about = text_of(entry.value, "about");
    if (const config::Node* fit = entry.value.find("fit")) one.fit = record_of(*fit);
    if (entry.value.find("numbers") != nullptr) one.numbers = text_of(entry.value, "numbers");
    for (const config::Entry& constant : entries_of(entry.value, "constants"))
      one.constants.push_back(constant_of(constant));
    table.classes.push_back(std::move(one));
  }
  return table;
}

void write_table(const LawTable& table, const std::filesystem::path& path) {
  std::ostringstream out;
  out << table.comment;
  fmt::print(out, "table: {}\nstruct: {}\nheader: {}\nunits:\n", table.name, table.type, table.header);
  for (const auto& [name, unit] : table.units) fmt::print(out, "  {}: \"{}\"\n", name, unit);
  fmt::print(out, "classes:\n");
  for (const LawClass& one : table.classes) {
    fmt::print(out, "  {}:\n", one.name);
    print_about(out, one.about);
    if (one.fit) print_fit(out, *one.fit);
    if (!one.numbers.empty()) fmt::print(out, "    numbers: {}\n", one.hash());
    fmt::print(out, "    constants:\n");
    for (const LawConstant& constant : one.constants) {
      fmt::print(out, "      {}: {{value: {}", constant.name, constant.text);
      if (constant.sd) fmt::print(out, ", sd: {:.2g}", *constant.sd);
      if (!constant.note.empty()) fmt::print(out, ", note: {}", constant.note);
      fmt::print(out, "}}\n");
    }
  }
  write_file(path.string(), out.str());
}

std::string constant_text(double value) { return fmt::format("{:.4g}", value); }

}  // namespace ridgeline::fit
