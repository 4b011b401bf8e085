#include "sim/study/validation/stated_software.h"

#include <cstdlib>
#include <limits>
#include <optional>
#include <regex>

#include "sim/hardware/load_host.h"

namespace ridgeline {
namespace {

struct Version {
  int major = 0, minor = 0;
};

std::optional<Version> version_in(std::string_view words) {
  static const std::regex kStated("(?:[Tt]orch[ -]|-pt)([0-9])\\.([0-9]+)");
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(words.begin(), words.end(), found, kStated)) return std::nullopt;
  return Version{std::stoi(found[1].str()), std::stoi(found[2].str())};
}

}  // namespace

std::string software_stated_in(std::string_view words, std::string_view otherwise) {
  const std::optional<Version> stated = version_in(words);
  if (!stated) return std::string(otherwise);
  std::string nearest(otherwise);
  int least = std::numeric_limits<int>::max();
  bool newer = false;
  for (const std::string& name : software_names()) {
    const std::optional<Version> profile = version_in(name);
    if (!profile || profile->major != stated->major || name.find("cuda") != std::string::npos) continue;
    const int away = std::abs(profile->minor - stated->minor);
    if (away > least || (away == least && !newer)) continue;
    least = away;
    newer = profile->minor > stated->minor;
    nearest = name;
  }
  return nearest;
}

}  // namespace ridgeline
