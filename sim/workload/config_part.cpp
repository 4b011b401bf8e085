#include "sim/workload/config_part.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "sim/config/data_folder.h"
#include "sim/config/make_node.h"
#include "sim/config/parse_yaml.h"

namespace ridgeline {
namespace {

using config::Node;

struct Part {
  std::string key, type;  ///< of the configuration; the model_type that it has where it says none
};

/// The type as the family's table says, else by the names that Transformers uses.
Part part_named(const Node& config, const std::string& part) {
  if (const Node* type = config.find("model_type")) {
    const std::filesystem::path table = config::data_folder("models") / "families" / (type->scalar + ".yaml");
    std::error_code ignored;
    if (type->scalar.find('/') == std::string::npos && std::filesystem::is_regular_file(table, ignored)) {
      const Node tree = config::load_yaml(table);
      if (const Node* said = tree.find(part); said != nullptr && said->items.size() == 2)
        return {said->items[0].scalar, said->items[1].scalar};
    }
  }
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{
      {{"text", "text_config"}, {"text", "llm_config"}, {"text", "language_config"}, {"vision", "vision_config"}}};
  for (const auto& [of, key] : kNames)
    if (part == of && config.find(key) != nullptr) return {std::string(key), ""};
  return {};
}

}  // namespace

Node part_of_config(Node config, const std::string& part) {
  if (part == "both") return config;
  if (part != "text" && part != "vision")
    throw config::ConfigError(config.origin, "part",
                              fmt::format("'{}' is no part: expected text, vision or both", part));
  const Part named = part_named(config, part);
  const Node* found = named.key.empty() ? nullptr : config.find(named.key);
  if (found == nullptr || found->kind != Node::Kind::mapping) {
    if (part == "text") return config;  // it reads nothing else
    throw config::ConfigError(config.origin, "part", "the network has no part for images");
  }
  Node alone = *found;
  if (alone.find("model_type") == nullptr && !named.type.empty())
    alone.entries.push_back({"model_type", alone.origin, config::scalar_node(named.type, alone.origin)});
  std::erase_if(alone.entries, [](const config::Entry& entry) { return entry.key == "architectures"; });
  return alone;
}

}  // namespace ridgeline
