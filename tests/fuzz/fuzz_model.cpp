// Networks: those of models/ by their sizes, those put together of parts, and config.json of HuggingFace.
#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/input/lines.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

std::string read_changed_model(const std::uint8_t* data, std::size_t size, const std::vector<ShippedTree>& shipped) {
  try {
    const config::Node tree = changed_tree({reinterpret_cast<const char*>(data), size}, shipped);
    const ModelDescription model = load_model(config::Value(tree, "model"));
    // Compositions and programs say their layers block by block, not as sizes of the whole.
    const bool sized = model.family != ModelFamily::composed && model.family != ModelFamily::program;
    if (sized && (model.layers < 1 || model.hidden < 1)) return "a model of nothing";
  } catch (const UserError&) {  // says where, as tests of the readers state
  }
  return {};
}

/// Configurations of networks that were measured, by model_type and number.
std::vector<ShippedTree> configurations() {
  std::vector<ShippedTree> trees;
  for (const char* file : {"networks.jsonl.gz", "counts.jsonl.gz"})
    for_each_line((config::data_folder("measurements") / "networks" / file).string(), [&](std::string_view line) {
      const config::Node row = config::parse_yaml(line, file);  // JSON is YAML
      const config::Node* configuration = row.find("config");
      const config::Node* type = configuration ? configuration->find("model_type") : nullptr;
      if (type) trees.push_back({type->scalar + "-" + std::to_string(trees.size()), *configuration});
    });
  return trees;
}

std::vector<ShippedTree> composed(bool wanted) {
  std::vector<ShippedTree> trees = shipped_trees("models", "families/");
  std::erase_if(trees, [&](const ShippedTree& shipped) {
    const config::Node* family = shipped.tree.find("family");
    return (family && family->scalar == "composed") != wanted;
  });
  return trees;
}

}  // namespace

std::string fuzz_model(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = composed(false);
  return read_changed_model(data, size, shipped);
}

std::string fuzz_network(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = composed(true);
  return read_changed_model(data, size, shipped);
}

std::string fuzz_huggingface(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = configurations();
  return read_changed_model(data, size, shipped);
}

}  // namespace ridgeline
