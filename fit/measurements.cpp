#include "fit/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "fit/yaml_fields.h"
#include "sim/study/gzip_lines.h"

namespace ridgeline::fit {
namespace {

using nlohmann::json;

ProfiledKernel kernel_of(const json& row) {
  ProfiledKernel kernel{.name = row["name"], .seconds = row["us"].get<double>() * 1e-6};
  const auto has = [&](const char* key) { return row.contains(key) && !row[key].is_null(); };
  if (has("grid"))
    for (std::size_t i = 0; i < 3; ++i) kernel.grid[i] = row["grid"][i];
  if (has("block"))
    kernel.threads = row["block"][0].get<int>() * row["block"][1].get<int>() * row["block"][2].get<int>();
  if (has("regs")) kernel.registers = row["regs"];
  if (has("smem")) kernel.shared_bytes = row["smem"];
  return kernel;
}

}  // namespace

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return seed;
}

Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops) {
  Measurements result;
  const auto list = config::load_yaml(root / "fit/measurements.yaml");
  for (const config::Node& file : items_of(list, "files")) {
    const std::string machine = text_of(file, "machine"), split = text_of(file, "split");
    auto place = std::find(result.machines.begin(), result.machines.end(), machine);
    if (place == result.machines.end()) place = result.machines.insert(place, machine);
    const int index = static_cast<int>(place - result.machines.begin());
    if (split != "fit" && split != "held-out" && split != "rows")
      throw config::ConfigError(file.origin, "split", fmt::format("\"{}\"; expected fit, held-out or rows", split));
    const bool views = find_flag(file, "attention_on_views");
    for_each_line((root / text_of(file, "path")).string(), [&](std::string_view text) {
      json row = json::parse(text);
      if (!row.contains("kernels") || !row.contains("us")) return;
      Measurement item{.op = row["op"]};
      if (std::find(ops.begin(), ops.end(), item.op) == ops.end()) return;
      json given{{"op", row["op"]}, {"dtype", row["dtype"]}, {"params", row["params"]}};
      item.shape = hash_of(given.dump());
      item.row = hash_of(text);
      if (views && item.op.starts_with("flash")) given["params"]["head_major"] = false;
      if (row.contains("input_sets")) given["input_sets"] = row["input_sets"];
      item.kernel = kernel_case_from(given);
      item.machine = index;
      item.held_out = split == "held-out" || (split == "rows" && row.value("heldout", false));
      for (const json& kernel : row["kernels"]) item.kernels.push_back(kernel_of(kernel));
      result.rows.push_back(std::move(item));
    });
  }
  std::unordered_set<std::uint64_t> unseen;
  for (const Measurement& row : result.rows)
    if (row.held_out) unseen.insert(row.shape);
  result.twins =
      std::erase_if(result.rows, [&](const Measurement& row) { return !row.held_out && unseen.contains(row.shape); });
  return result;
}

}  // namespace ridgeline::fit
