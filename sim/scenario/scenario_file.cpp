#include "sim/scenario/scenario_file.h"

#include <filesystem>
#include <string_view>

#include "sim/config/data_folder.h"

namespace ridgeline {

std::string scenario_file(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (given.empty() || given.find('\0') != std::string::npos || fs::path(given).is_absolute() ||
      fs::exists(given, ignored) || given.find("..") != std::string::npos)
    return given;
  constexpr std::string_view kFolder = "scenarios/";
  const std::string name = given.starts_with(kFolder) ? given.substr(kFolder.size()) : given;
  for (const std::string& file : {name, name + ".yaml"})
    if (const fs::path place = config::data_folder("scenarios") / file; fs::is_regular_file(place, ignored))
      return place.string();
  return given;
}

}  // namespace ridgeline
