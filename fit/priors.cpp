#include "fit/priors.h"

#include "fit/yaml_fields.h"

namespace ridgeline::fit {
namespace {

using config::ConfigError;
using config::Entry;
using config::Node;

void expect_reason(const Entry& entry) {
  if (text_of(entry.value, "reason").size() < 8)
    throw ConfigError(entry.value.origin, entry.key, "the reason says nothing");
}

Fitted fitted_of(const Entry& entry) {
  expect_keys(entry.value, {"from", "to", "centre", "spread", "reason"});
  expect_reason(entry);
  const Fitted fitted{number_of(entry.value, "from"), number_of(entry.value, "to"), number_of(entry.value, "centre"),
                      number_of(entry.value, "spread")};
  if (!(fitted.from < fitted.to) || fitted.centre < fitted.from || fitted.centre > fitted.to)
    throw ConfigError(entry.value.origin, entry.key, "expected from <= centre <= to");
  if (fitted.spread <= (fitted.logarithmic() ? 1.0 : 0.0))
    throw ConfigError(entry.value.origin, entry.key,
                      "the spread must be above 1 (a factor), or above 0 where from is not");
  return fitted;
}

/// The prior of `name`: of its class, of the table, or of its last part there.
Fitted prior_of(const Node& scalar, const Node& of_class, const Node& root) {
  const std::string& name = scalar.scalar;
  for (const auto* entries : {&entries_of(of_class, "priors"), &entries_of(root, "priors")})
    for (const std::string& wanted : {name, name.substr(name.rfind('.') + 1)})
      for (const Entry& entry : *entries)
        if (entry.key == wanted) return fitted_of(entry);
  throw ConfigError(scalar.origin, name, "has no prior");
}

ClassPriors class_of(const Node& node, const Node& root) {
  expect_keys(node, {"fit", "frozen", "ties", "kept", "priors"});
  ClassPriors result;
  if (node.find("fit") != nullptr)
    for (const Node& name : items_of(node, "fit")) result.fitted[name.scalar] = prior_of(name, node, root);
  for (const Entry& entry : entries_of(node, "frozen")) {
    expect_keys(entry.value, {"at", "reason"});
    expect_reason(entry);
    result.frozen[entry.key] = number_of(entry.value, "at");
  }
  for (const Entry& entry : entries_of(node, "ties")) {
    expect_keys(entry.value, {"to", "times", "factor", "reason"});
    expect_reason(entry);
    Tie tie{.to = text_of(entry.value, "to"), .times = find_number(entry.value, "times").value_or(1.0)};
    if (entry.value.find("factor") != nullptr) tie.factor = text_of(entry.value, "factor");
    result.ties[entry.key] = tie;
  }
  for (const Entry& entry : entries_of(node, "kept")) {
    expect_keys(entry.value, {"reason"});
    expect_reason(entry);
    result.kept.push_back(entry.key);
  }
  return result;
}

}  // namespace

const ClassPriors* Priors::find(const std::string& name) const {
  for (const auto& [known, priors] : classes)
    if (known == name) return &priors;
  return nullptr;
}

Priors read_priors(const std::filesystem::path& path) {
  const Node root = config::load_yaml(path);
  expect_keys(root, {"table", "scale", "machine_spread", "priors", "classes"});
  Priors result{.scale = number_of(root, "scale"), .machine_spread = number_of(root, "machine_spread")};
  for (const Entry& entry : entries_of(root, "priors")) (void)fitted_of(entry);
  for (const Entry& entry : entries_of(root, "classes"))
    result.classes.emplace_back(entry.key, class_of(entry.value, root));
  return result;
}

}  // namespace ridgeline::fit
