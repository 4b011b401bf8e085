#include "sim/study/validation/accuracy_overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ridgeline {
namespace {

constexpr std::size_t kFewest = 5;  // cases of a row: an error of fewer says little

/// "nvidia-a100-pcie-80gb (public)" is "A100", "nvidia-rtx-3090" is "RTX 3090".
std::string chip_of(std::string_view hardware) {
  if (hardware.starts_with("nvidia-")) hardware.remove_prefix(7);
  const bool two_words = hardware.starts_with("rtx-");
  std::string chip(hardware.substr(0, hardware.find_first_of("- (", two_words ? 4 : 0)));
  std::transform(chip.begin(), chip.end(), chip.begin(),
                 [](unsigned char c) { return c == '-' ? ' ' : static_cast<char>(std::toupper(c)); });
  return chip;
}

std::string_view kernels_of(std::string_view family) {
  if (family == "gemm") return "products";
  if (family == "pointwise") return "point-wise kernels";
  if (family == "reduction") return "reductions";
  if (family == "convolution") return "convolutions";
  return family;
}

std::string kernels_named(const FamilyAccuracy& f) {
  if (f.source == "wide") return fmt::format("kernels of small and unusual shapes, {}", chip_of(f.hardware));
  if (f.source == "public") return fmt::format("kernels, {}, published", chip_of(f.hardware));
  if (f.source == "compiled") return fmt::format("kernels of torch.compile, {}", chip_of(f.hardware));
  if (f.source == "calls") return fmt::format("single calls of other operations, {}", chip_of(f.hardware));
  if (f.source == "public, serving") return fmt::format("products in serving libraries, {}", chip_of(f.hardware));
  return fmt::format("{}, {}", kernels_of(f.family), chip_of(f.hardware));
}

/// "h200 (several GPUs, public, llm-foundry)" is "steps of several GPUs, H200, published (llm-foundry)".
std::string steps_named(const std::string& group) {
  const auto says = [&](std::string_view word) { return group.find(word) != std::string::npos; };
  const bool several = (says("parallel") || says("several GPUs")) && !says("one GPU");
  const std::string_view run = says("compile") ? "compiled steps" : several ? "steps of several GPUs" : "steps";
  const std::string named = fmt::format("{}, {}", run, chip_of(group));
  if (!says("public")) return named + (says("heldout") ? ", held out" : "");
  constexpr std::string_view kMachine = "public, ";
  const auto machine = group.find(kMachine);
  if (machine == std::string::npos) return named + ", published";
  return fmt::format("{}, published ({}", named, group.substr(machine + kMachine.size()));
}

void pool(SeenRows& all, const SeenRows& more) {
  all.n += more.n;
  all.by.insert(more.by.begin(), more.by.end());
}

/// Rows in the order in which their first group came.
class Rows {
 public:
  void add(const std::string& what, const std::vector<double>& ratios, const SeenRows& seen,
           const RangeCoverage& coverage, bool is_time) {
    Pooled& row = named(what);
    row.ratios.insert(row.ratios.end(), ratios.begin(), ratios.end());
    pool(row.seen, seen);
    row.coverage.cases += coverage.cases, row.coverage.inside += coverage.inside;
    row.is_time = is_time;
  }
  void add_roofline(const std::string& what, const std::vector<double>& ratios) {
    Pooled& row = named(what);
    row.roofline.insert(row.roofline.end(), ratios.begin(), ratios.end());
  }
  void write(std::vector<OverviewRow>& out) const {
    for (const Pooled& row : rows_) {
      if (row.ratios.size() < kFewest) continue;
      out.push_back({row.what, error_statistics(row.ratios), {}, row.seen, row.coverage, row.is_time});
      if (!row.roofline.empty()) out.back().roofline_median = error_statistics(row.roofline).median;
    }
  }

 private:
  struct Pooled {
    std::string what;
    std::vector<double> ratios{}, roofline{};
    SeenRows seen{};
    RangeCoverage coverage{};
    bool is_time = true;
  };
  Pooled& named(const std::string& what) {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Pooled& row) { return row.what == what; });
    return found != rows_.end() ? *found : rows_.emplace_back(Pooled{.what = what});
  }
  std::vector<Pooled> rows_;
};

}  // namespace

std::vector<OverviewRow> accuracy_overview(std::span<const FamilyAccuracy> families,
                                           std::span<const StepAccuracy> steps) {
  Rows kernels, times, memory;
  for (const FamilyAccuracy& f : families) {
    if (f.kind == "analytic") kernels.add(kernels_named(f), f.ratios, f.seen, f.coverage, true);
    if (f.kind == "roofline") kernels.add_roofline(kernels_named(f), f.ratios);
  }
  for (const StepAccuracy& s : steps) {
    if (s.group.find("not comparable") != std::string::npos) continue;
    if (s.quantity.starts_with("step time")) times.add(steps_named(s.group), s.ratios, s.seen, s.coverage, true);
    if (s.quantity == "allocated")
      memory.add(fmt::format("memory allocated, {}", chip_of(s.group)), s.ratios, {}, {}, false);
  }
  std::vector<OverviewRow> out;
  for (const Rows* rows : {&kernels, &times, &memory}) rows->write(out);
  return out;
}

}  // namespace ridgeline
