#include "sim/report/text/model_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "sim/report/text/memory_words.h"
#include "sim/workload/composition_keys.h"
#include "sim/workload/model_keys.h"
#include "sim/workload/networks/program_model.h"

namespace ridgeline {
namespace {

nlohmann::ordered_json as_json(const ModelValue& value) {
  return std::visit([](const auto& given) { return nlohmann::ordered_json(given); }, value);
}
std::string as_text(const ModelValue& value) {
  return std::visit([](const auto& given) { return fmt::format("{}", given); }, value);
}

bool reads(const ModelDescription& model, const ModelKey& key) {
  if (model.composition.given() || model.program.given()) return key.name == "family";
  return !key.only_of || *key.only_of == model.family;
}
nlohmann::ordered_json as_json(const networks::ProgramValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* list = std::get_if<std::shared_ptr<networks::ProgramList>>(&value)) {
    auto items = nlohmann::ordered_json::array();
    for (const networks::ProgramValue& item : (*list)->items) items.push_back(as_json(item));
    return items;
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}
std::string family_of(const ModelDescription& model) { return as_text(model_keys().front().value(model)); }

/// 335143938 as "335,143,938".
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value), out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace

nlohmann::ordered_json model_json(const ModelDescription& m) {
  nlohmann::ordered_json json{{"name", m.name}};
  auto assumed_values = nlohmann::ordered_json::object();
  for (const ModelKey& key : model_keys()) {
    if (!reads(m, key)) continue;
    json[key.name] = as_json(key.value(m));
    if (const auto value = assumed(key, m)) assumed_values[key.name] = as_json(*value);
  }
  if (m.composition.given()) {
    const auto stack_json = [](const Stack& stack) {
      nlohmann::ordered_json keys;
      for (const CompositionKey& key : composition_keys()) keys[key.name] = as_json(key.value(stack));
      return keys;
    };
    json.update(stack_json(m.composition->stack));
    if (m.composition->encoder) json["encoder"] = stack_json(*m.composition->encoder);
  }
  if (m.program.given()) {
    json["program"] = *m.program->program.file;
    for (std::size_t i = 0; i < m.program->sizes.size(); ++i)
      json["sizes"][m.program->program.sizes[i].name] = as_json(m.program->sizes[i]);
  }
  json["parameters"] = parameter_count(m);
  json["defaults"] = std::move(assumed_values);
  return json;
}

std::string model_list(std::span<const ModelDescription> models) {
  std::string out = fmt::format("{:<16} {:<7} {:>6} {:>6} {:>7} {:>7} {:>10} {:>14}\n", "name", "family", "layers",
                                "heads", "hidden", "inner", "vocabulary", "parameters");
  for (const ModelDescription& m : models)
    out += fmt::format("{:<16} {:<7} {:>6} {:>6} {:>7} {:>7} {:>10} {:>14}\n", m.name, family_of(m), m.layers, m.heads,
                       m.hidden, m.feed_forward_width(), m.vocabulary, grouped(parameter_count(m)));
  return out;
}

std::string model_text(const ModelDescription& m) {
  std::string out = fmt::format("{}: {} parameters\n\n", m.name, grouped(parameter_count(m)));
  const auto line = [&](std::string_view key, std::string_view value, std::string_view otherwise,
                        std::string_view meaning) {
    write_wrapped(out, fmt::format("  {:<20}  {:<23}  {:<23}  ", key, value, otherwise), meaning);
  };
  line("key", "value", "if not said", "what");
  for (const ModelKey& key : model_keys()) {
    if (!reads(m, key)) continue;
    const auto otherwise = assumed(key, m);
    line(key.name, as_text(key.value(m)), otherwise ? as_text(*otherwise) : "(must be said)", key.meaning);
  }
  if (m.program.given()) {
    line("program", *m.program->program.file, "(must be said)", "the file of the network");
    for (std::size_t i = 0; i < m.program->sizes.size(); ++i) {
      const networks::ProgramSize& size = m.program->program.sizes[i];
      line(size.name, networks::text_of(m.program->sizes[i]), size.otherwise.empty() ? "(must be said)" : "its default",
           size.meaning);
    }
  }
  if (!m.composition.given()) return out;
  const Stack silent;
  const auto stack_lines = [&](const Stack& stack, const std::string& before) {
    for (const CompositionKey& key : composition_keys())
      if (key.value(stack) != key.value(silent))
        line(before + std::string(key.name), as_text(key.value(stack)), as_text(key.value(silent)), key.meaning);
  };
  stack_lines(m.composition->stack, "");
  if (m.composition->encoder) stack_lines(*m.composition->encoder, "encoder.");
  return out;
}

}  // namespace ridgeline
