#include "sim/answer/kernel_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/answer/carried_time.h"

namespace ridgeline {
namespace {

/// Kineto's name of a copy that nsys stats calls "[CUDA memcpy Host-to-Device]".
std::string kineto_name(const std::string& name) {
  constexpr std::pair<std::string_view, std::string_view> kCopies[] = {
      {"Host-to-Device", "Memcpy HtoD"}, {"HtoD", "Memcpy HtoD"}, {"Device-to-Host", "Memcpy DtoH"},
      {"DtoH", "Memcpy DtoH"},           {"memset", "Memset"},    {"memcpy", "Memcpy DtoD"}};
  if (!name.starts_with("[CUDA")) return name;
  for (const auto& [part, known] : kCopies)
    if (name.find(part) != name.npos) return std::string(known);
  return name;
}

Limiter limiter_of(const std::string& name, KernelFamily family, Seconds mean, Seconds empty) {
  if (family == KernelFamily::communication || name.starts_with("Memcpy HtoD") || name.starts_with("Memcpy DtoH"))
    return Limiter::link;
  if (mean < empty * kShortKernel) return Limiter::launch;
  const bool of_vectors = name.find("gemv") != name.npos || name.find("splitKreduce") != name.npos;
  const bool multiplies =
      family == KernelFamily::gemm || family == KernelFamily::attention || family == KernelFamily::convolution;
  return multiplies && !of_vectors ? Limiter::compute : Limiter::dram;
}

}  // namespace

KernelTable kernel_table(const trace::ProfileTables& tables, const Gpu* recorded, const Gpu* target) {
  constexpr Seconds kEmpty{2e-6};  // as on most GPUs, where none is named
  KernelTable result;
  result.reports = tables.reports;
  if (recorded != nullptr) result.recorded_on = recorded->name;
  if (target != nullptr) result.hardware = target->name;
  const Seconds empty = recorded != nullptr ? recorded->launch.kernel_fixed : kEmpty;
  std::map<KernelFamily, TableFamily> families;
  for (const trace::TableRow& row : tables.rows) {
    if (row.kind != trace::TableKind::kernels && row.kind != trace::TableKind::copies) {
      result.others.push_back(row);
      continue;
    }
    const double count = std::max(1.0, row.count);
    const std::string name = kineto_name(row.name);
    TableKernel kernel{row.name, family_of_kernel(name), Limiter::dram, Seconds(row.seconds), row.count, {}};
    kernel.limiter = limiter_of(name, kernel.family, kernel.measured / count, empty);
    if (recorded != nullptr && target != nullptr)
      kernel.carried = Seconds(carried_seconds({{name, row.seconds / count}}, *recorded, *target) * count);
    TableFamily& family = families.try_emplace(kernel.family, TableFamily{kernel.family}).first->second;
    family.measured += kernel.measured;
    family.count += kernel.count;
    if (kernel.carried) family.carried = family.carried.value_or(Seconds{}) + *kernel.carried;
    result.measured += kernel.measured;
    result.kernels.push_back(std::move(kernel));
  }
  for (auto& [family, sum] : families) result.families.push_back(std::move(sum));
  std::stable_sort(result.families.begin(), result.families.end(),
                   [](const TableFamily& a, const TableFamily& b) { return a.measured > b.measured; });
  return result;
}

}  // namespace ridgeline
