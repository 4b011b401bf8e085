#include "sim/scenario/named_kind.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "sim/config/data_folder.h"
#include "sim/config/shipped_names.h"
#include "sim/hardware/hardware_file.h"
#include "sim/workload/load_model.h"

namespace ridgeline {

std::string key_of_name(std::string_view name) {
  if (name.empty() || name.find('\0') != name.npos || names_a_path(name)) return "";
  const std::filesystem::path hw = config::data_folder("hw");
  std::error_code ignored;
  const std::string file = std::string(name) + ".yaml";
  for (const auto& [key, folder] : {std::pair("hardware", hw), std::pair("cluster", hw / "clusters"),
                                    std::pair("model", config::data_folder("models"))})
    if (std::filesystem::is_regular_file(folder / file, ignored)) return key;
  const std::vector<config::ShippedName> gpus = config::shipped_names(hw),
                                         clusters = config::shipped_names(hw / "clusters");
  if (!config::name_spelled(name, gpus, hardware_spelling()).empty()) return "hardware";
  if (!config::name_spelled(name, clusters, hardware_spelling()).empty()) return "cluster";
  for (const auto& folder : {config::data_folder("models"), config::data_folder("models") / "blocks"})
    if (!config::name_spelled(name, config::shipped_names(folder), model_spelling()).empty()) return "model";
  // "a100" shortens several names of one kind.
  if (!config::names_meant(name, gpus, hardware_spelling()).empty()) return "hardware";
  return "";
}

std::string_view kind_words(std::string_view key) {
  return key == "hardware" ? "a GPU" : key == "cluster" ? "several GPUs" : "a network";
}

std::string other_kind(std::string_view key, std::string_view name) {
  const std::string its = key_of_name(name);
  if (its.empty() || its == key) return "";
  const std::string quoted = name.find(' ') == name.npos ? std::string(name) : fmt::format("\"{}\"", name);
  return fmt::format("{} is {}: {}: {}, or --{} {}", name, kind_words(its), its, name, its, quoted);
}

std::string no_file_but(const std::string& word) {
  std::error_code ignored;
  if (word.ends_with(".py"))
    return fmt::format("{} is a Python script: ridgeline predict --record {} --hardware h100 records its step", word,
                       word);
  if (std::filesystem::exists(word, ignored)) return "";
  for (const std::string_view truth : {"true", "false", "yes", "no", "on", "off"})
    if (word == truth) return fmt::format("{}: flags such as --compile take no value: leave {} out", word, word);
  return other_kind("", word);
}

}  // namespace ridgeline
