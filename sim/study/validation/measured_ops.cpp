#include "sim/study/validation/measured_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "sim/input/lines.h"

namespace ridgeline {
namespace {

using nlohmann::json;

MeasuredKernel profiled_kernel(const json& row) {
  MeasuredKernel kernel{.name = row["name"], .seconds = row["us"].get<double>() * 1e-6};
  const auto has = [&](const char* key) { return row.contains(key) && !row[key].is_null(); };
  kernel.has_geometry = has("grid");
  if (kernel.has_geometry)
    for (std::size_t i = 0; i < 3; ++i) kernel.grid[i] = row["grid"][i];
  if (has("block"))
    kernel.threads = row["block"][0].get<int>() * row["block"][1].get<int>() * row["block"][2].get<int>();
  if (has("regs")) kernel.registers = row["regs"];
  if (has("smem")) kernel.shared_bytes = row["smem"];
  return kernel;
}

/// Op, type and parameters alone.
json case_of(const json& row) { return {{"op", row["op"]}, {"dtype", row["dtype"]}, {"params", row["params"]}}; }

bool held_out(const MeasuredFile& file, const json& row, std::uint64_t shape) {
  switch (file.split) {
    case Split::fit: return false;
    case Split::held_out: return true;
    case Split::by_row: return row.value("heldout", false);
    case Split::by_shape: return held_out_by_shape(shape);
  }
  return true;
}

MeasuredOp measured_op(const MeasuredFile& file, std::string_view text, const json& row) {
  json given = case_of(row);
  MeasuredOp item{.op = row["op"],
                  .dtype = row["dtype"],
                  .time = microseconds(row["us"].get<double>()),
                  .file = &file,
                  .row = hash_of(text)};
  if (file.attention_on_views && item.op.starts_with("flash")) given["params"]["head_major"] = false;
  for (const char* key : {"input_sets", "shared_operand"})
    if (row.contains(key)) given[key] = row[key];
  item.kernel = kernel_case_from(given);
  item.back_to_back = std::max(1, row.value("back_to_back", 1));
  if (row.contains("kernels"))
    for (const json& kernel : row["kernels"]) item.kernels.push_back(profiled_kernel(kernel));
  return item;
}

}  // namespace

Seconds between_kernels(const MeasuredOp& row, std::size_t launches, const Gpu& gpu) {
  if (row.file->machine.graph_of == 0) return Seconds{0};
  return gpu.launch.graph_gap * static_cast<double>(launches) +
         kGraphLaunch / static_cast<double>(row.file->machine.graph_of);
}

std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return seed;
}

bool held_out_by_shape(std::uint64_t shape) {
  shape ^= shape >> 33;  // the last bits of FNV-1a alone are poorly mixed
  shape *= 0xff51afd7ed558ccdull;
  return (shape >> 33) % 3 == 0;
}

MeasuredOps load_measured_ops(const MeasurementIndex& index, const WantedOps& wanted) {
  MeasuredOps result;
  std::unordered_set<std::uint64_t> unseen;
  std::vector<const MeasuredFile*> files = index.of_kind("kernels");
  for (const MeasuredFile* file : index.of_kind("published-ops")) files.push_back(file);
  for (const MeasuredFile* file : files) {
    const bool rows = wanted.files(*file) && !(wanted.held_out_only && file->split == Split::fit);
    if (!rows && (wanted.held_out_only || file->split == Split::fit)) continue;  // nor shapes that are held out
    int machine = -1;
    if (rows) {
      auto place = std::find_if(result.machines.begin(), result.machines.end(),
                                [&](const MeasuringMachine& known) { return known.name == file->machine.name; });
      if (place == result.machines.end()) place = result.machines.insert(place, file->machine);
      machine = static_cast<int>(place - result.machines.begin());
    }
    std::size_t number = 0;
    for_each_line(file->path.string(), [&](std::string_view text) {
      ++number;
      try {
        const json row = json::parse(text);
        if (!row.contains("us")) return;  // an error in its place
        const std::uint64_t shape = hash_of(case_of(row).dump());
        const bool unseen_row = held_out(*file, row, shape);
        if (unseen_row) unseen.insert(shape);
        if (!rows || (wanted.held_out_only && !unseen_row)) return;
        if (!wanted.ops.empty() && std::find(wanted.ops.begin(), wanted.ops.end(),
                                             row["op"].get_ref<const std::string&>()) == wanted.ops.end())
          return;
        MeasuredOp& added = result.rows.emplace_back(measured_op(*file, text, row));
        added.machine = machine;
        added.line = number;
        added.shape = shape;
        added.held_out = unseen_row;
      } catch (const json::exception& e) {
        throw UserError(fmt::format("{}:{}: {}", file->path.string(), number, e.what()));
      } catch (const KernelCaseError& e) {
        throw UserError(fmt::format("{}:{}: {}", file->path.string(), number, e.what()));
      }
    });
  }
  result.twins =
      std::erase_if(result.rows, [&](const MeasuredOp& row) { return !row.held_out && unseen.contains(row.shape); });
  return result;
}

}  // namespace ridgeline
