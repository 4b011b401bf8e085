#include "sim/report/schema/program_keys.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/config/data_folder.h"
#include "sim/workload/networks/network_program.h"

namespace ridgeline {
namespace {

using config::Asked;
using networks::Expression;

Asked asked_of(const networks::ProgramSize& size) {
  if (size.otherwise.empty()) return {.kind = Asked::Kind::integer};
  switch (size.otherwise.front().kind) {
    case Expression::Kind::real: return {.kind = Asked::Kind::measure};
    case Expression::Kind::flag: return {.kind = Asked::Kind::flag};
    case Expression::Kind::text: return {.kind = Asked::Kind::text};
    case Expression::Kind::list:
    case Expression::Kind::each: return {.kind = Asked::Kind::list};
    default: return {.kind = Asked::Kind::integer};
  }
}

}  // namespace

std::vector<InputKey> keys_of_programs() {
  std::vector<InputKey> keys{{.path = "program",
                              .asked = {{.kind = Asked::Kind::text}},
                              .meaning = "of family program: its file, here, beside the model or in models/"}};
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(config::data_folder("models") / "blocks", ignored))
    if (entry.path().extension() == ".block") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const networks::ProgramSize& size : networks::parse_network_program(text, file.string()).sizes) {
      const auto known =
          std::find_if(keys.begin(), keys.end(), [&](const InputKey& key) { return key.path == size.name; });
      if (known != keys.end()) continue;
      keys.push_back({.path = size.name,
                      .asked = {asked_of(size)},
                      .meaning = size.meaning.empty() ? "of " + file.filename().string() : size.meaning});
    }
  }
  return keys;
}

}  // namespace ridgeline
