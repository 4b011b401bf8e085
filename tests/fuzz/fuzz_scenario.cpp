// Questions: shipped scenarios with changed keys, and whole ones.
#include <memory>

#include "sim/config/override.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_scenario(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = [] {
    std::vector<ShippedTree> trees = shipped_trees("scenarios", "exercises/");
    std::erase_if(trees, [](const ShippedTree& one) { return one.tree.find("training") == nullptr; });
    return trees;
  }();
  // What scenarios share is kept for ever; a fuzzer makes millions.
  static std::unique_ptr<Descriptions> descriptions;
  static int uses = 0;
  if (uses++ % 1000 == 0) descriptions = std::make_unique<Descriptions>();
  try {
    const config::Node tree = changed_tree({reinterpret_cast<const char*>(data), size}, shipped);
    const Scenario scenario = load_shared_scenario(tree, {}, *descriptions).scenario;
    if (scenario.recorded) return {};
    if (scenario.training.micro_batch < 1) return "a batch of nothing";
    if (scenario.training.sequence_length < 1) return "sequences of nothing";
  } catch (const UserError&) {  // says where, as tests of the readers state
  }
  return {};
}

}  // namespace ridgeline
