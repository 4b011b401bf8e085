#include "sim/study/validation/cited_sources.h"

#include <fmt/format.h>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"

namespace ridgeline {
namespace {

void collect(const config::Node& node, std::set<std::string, std::less<>>& texts) {
  for (const config::Entry& entry : node.entries) {
    if (entry.key == "source") texts.insert(entry.value.scalar);
    collect(entry.value, texts);
  }
  for (const config::Node& item : node.items) collect(item, texts);
}

}  // namespace

std::string project_of(std::string_view source) {
  const std::size_t at = source.find('@');
  if (at == std::string_view::npos) return "";
  const std::string_view path = source.substr(0, at);
  return std::string(path.substr(path.rfind('/') + 1));
}

CitedSources::CitedSources(const std::string& hardware) : file_(hardware) {
  collect(config::load_yaml(config::data_folder("hw") / (hardware + ".yaml")), texts_);
}

std::string CitedSources::seen_by(std::string_view source, std::string_view family) const {
  const std::string project = project_of(source);
  for (const std::string& text : texts_) {
    const bool named = !project.empty() && text.find(project) != std::string::npos;
    const bool unnamed = family == "gemm" && (text.find("public GEMM") != std::string::npos ||
                                              text.find("public runs") != std::string::npos);
    if (named || unnamed) return fmt::format("hw/{}.yaml", file_);
  }
  return "";
}

}  // namespace ridgeline
