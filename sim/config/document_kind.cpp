#include "sim/config/document_kind.h"

#include <string>

#include "sim/config/config_error.h"

namespace ridgeline::config {

std::string_view document_kind(const Node& tree) {
  if (tree.kind != Node::Kind::mapping) return "";
  const auto has = [&](std::string_view key) { return tree.find(key) != nullptr; };
  if (has("model_type") || has("_class_name")) return "model";
  if (has("axes") && (has("scenario") || has("goal") || has("sample") || has("constraints"))) return "sweep";
  if (has("training") || has("inference") || (has("model") && has("hardware"))) return "scenario";
  if (has("sm") && (has("dram") || has("clock"))) return "hardware";
  if (has("gpu") && has("interconnect")) return "cluster";
  if (has("family")) return "model";
  return "";
}

void refuse_other_document(const Node& tree, std::string_view expected) {
  const std::string_view kind = document_kind(tree);
  if (kind.empty() || kind == expected) return;
  const std::string file = tree.origin.name ? *tree.origin.name : "FILE";
  const std::string how = kind == "sweep"      ? "is a sweep: ridgeline sweep " + file
                          : kind == "scenario" ? "is a scenario: ridgeline predict " + file
                          : kind == "hardware" ? "describes a GPU: --hardware " + file
                          : kind == "cluster"  ? "describes several GPUs: --cluster " + file
                                               : "describes a network: --model " + file;
  throw ConfigError({tree.origin.name, 0, 0}, "", how);
}

}  // namespace ridgeline::config
