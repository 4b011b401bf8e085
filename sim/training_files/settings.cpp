#include "sim/training_files/settings.h"

#include <algorithm>
#include <filesystem>

#include "sim/config/parse_yaml.h"
#include "sim/input/text_source.h"
#include "sim/training_files/parse_script.h"
#include "sim/training_files/parse_toml.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::training_files {
namespace {

using config::Node;

void flatten(const Node& node, const std::string& path, std::vector<Setting>& out) {
  const auto below = [&](const std::string& step) { return path.empty() ? step : path + "." + step; };
  if (node.kind == Node::Kind::mapping && !node.entries.empty()) {
    for (const config::Entry& entry : node.entries) flatten(entry.value, below(entry.key), out);
    return;
  }
  const bool deep = std::any_of(node.items.begin(), node.items.end(), [](const Node& item) {
    return item.kind == Node::Kind::mapping || item.kind == Node::Kind::list;
  });
  if (!deep) return out.push_back({path, node});
  for (std::size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], below(std::to_string(i)), out);
}

Form form_of(const std::string& file, std::string_view text) {
  const std::string ending = in_small_letters(std::filesystem::path(file).extension().string());
  if (ending == ".toml") return Form::toml;
  if (ending == ".py") return Form::python;
  if (ending == ".yaml" || ending == ".yml") return Form::yaml;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (ending == ".json" || (first != std::string_view::npos && text[first] == '{')) return Form::json;
  return Form::arguments;
}

Node parse(Form form, std::string_view text, const std::string& file) {
  switch (form) {
    case Form::toml: return parse_toml(text, file);
    case Form::python: return parse_assignments(text, file);
    case Form::arguments: return parse_arguments(text, file);
    case Form::yaml:
    case Form::json: break;
  }
  return config::parse_yaml(text, file);
}

}  // namespace

const Node* Settings::find(std::string_view key) const {
  for (const Setting& one : all)
    if (same_key(one.key, key)) return &one.value;
  return nullptr;
}

Settings read_settings(const std::string& file) {
  const std::string text = read_text(file);
  Settings settings;
  settings.form = form_of(file, text);
  flatten(parse(settings.form, text, file), "", settings.all);
  constexpr int kMostSteps = 4;  // one value may stand for another that stands for a third
  for (int step = 0; step < kMostSteps; ++step)
    for (Setting& one : settings.all) {
      const std::string& text_of = one.value.scalar;
      if (!text_of.starts_with("${") || text_of.find('}') != text_of.size() - 1) continue;
      if (const Node* other = settings.find(text_of.substr(2, text_of.size() - 3));
          other != nullptr && other != &one.value) {
        const config::Origin origin = one.value.origin;
        one.value = Node(*other);
        one.value.origin = origin;
      }
    }
  return settings;
}

std::string word_of(const Node& value) {
  if (value.kind == Node::Kind::null) return "null";
  if (value.kind != Node::Kind::list) return in_small_letters(value.scalar);
  if (value.items.empty()) return "[]";
  std::string text;
  for (const Node& item : value.items) text += (text.empty() ? "" : " ") + in_small_letters(item.scalar);
  return text;
}

}  // namespace ridgeline::training_files
