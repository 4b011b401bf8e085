#include "sim/report/text/module_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/units/parse.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

bool is_number(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Modules that only a number tells apart, as one.
struct Folded {
  std::string name;
  std::vector<std::size_t> members;  ///< of the uses
  ModuleUse sum;
  std::vector<Folded> inside;
};

void add(ModuleUse& sum, const ModuleUse& one) {
  sum.kernels += one.kernels;
  sum.bytes_at_peak += one.bytes_at_peak;
  for (std::size_t i = 0; i < kPhases; ++i) sum.time_by_phase[i] += one.time_by_phase[i];
}

class ModuleTree {
 public:
  explicit ModuleTree(const ModuleUses& uses) : uses_(uses), children_(uses.size()) {
    for (std::size_t i = 1; i < uses.size(); ++i) children_[uses[i].parent].push_back(i);
  }

  Folded folded() const {
    Folded root;
    if (uses_.empty()) return root;
    root.members = {0};
    root.sum = uses_[0];
    fill(root);
    return root;
  }

 private:
  void fill(Folded& node) const {
    for (const std::size_t member : node.members)
      for (const std::size_t child : children_[member]) {
        const std::string name = is_number(uses_[child].name) ? "*" : uses_[child].name;
        auto place =
            std::find_if(node.inside.begin(), node.inside.end(), [&](const Folded& f) { return f.name == name; });
        if (place == node.inside.end()) place = node.inside.insert(node.inside.end(), Folded{name, {}, {}, {}});
        place->members.push_back(child);
        add(place->sum, uses_[child]);
      }
    for (Folded& child : node.inside) fill(child);
  }

  const ModuleUses& uses_;
  std::vector<std::vector<std::size_t>> children_;
};

/// A numbered list stands for what is in it.
const std::vector<Folded>& parts_of(const Folded& node) {
  return node.inside.size() == 1 && node.inside[0].name == "*" ? node.inside[0].inside : node.inside;
}

std::string line_of(const std::vector<Folded>& parts, Seconds whole, bool deeper) {
  constexpr double kWorthNaming = 0.005;
  std::string out;
  for (const Folded& part : parts) {
    if (!(part.sum.time().value() > kWorthNaming * whole.value())) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", part.name, to_string(part.sum.time()));
    const std::string inner = deeper ? line_of(parts_of(part), part.sum.time(), false) : "";
    if (inner.find(',') != std::string::npos) out += fmt::format(" ({})", inner);
  }
  return out;
}

Seconds of(const ModuleUse& use, Phase phase) { return use.time_by_phase[static_cast<std::size_t>(phase)]; }

class ModuleTable {
 public:
  ModuleTable(Seconds whole, bool memory) : whole_(whole), memory_(memory) {}

  void row(const std::string& name, const ModuleUse& use) {
    const Seconds forward = of(use, Phase::forward), backward = of(use, Phase::backward),
                  other = use.time() - forward - backward;
    const auto cell = [](Seconds t) { return t.value() > kRounding ? to_string(t) : std::string("-"); };
    text_ +=
        fmt::format("  {:<{}} {:>7} {:>9} {:>9} {:>9} {:>6}", name.substr(0, kName), kName, use.kernels, cell(forward),
                    cell(backward), cell(other), fmt::format("{:.0f} %", 100.0 * use.time().value() / whole_.value()));
    if (memory_) text_ += fmt::format(" {:>11}", gib(use.bytes_at_peak));
    text_ += '\n';
  }
  void rows(const Folded& node, int level, int depth) {
    if (level >= depth) return;
    for (const Folded& child : node.inside) {
      const std::string name = child.name == "*" ? fmt::format("all {}", child.members.size()) : child.name;
      row(std::string(2 * static_cast<std::size_t>(level), ' ') + name, child.sum);
      rows(child, level + 1, depth);
    }
  }
  void outside(const Folded& root) {
    ModuleUse rest = root.sum;
    for (const Folded& child : root.inside) {
      rest.kernels -= child.sum.kernels;
      rest.bytes_at_peak -= child.sum.bytes_at_peak;
      for (std::size_t i = 0; i < kPhases; ++i) rest.time_by_phase[i] -= child.sum.time_by_phase[i];
    }
    row("outside (optimizer, script)", rest);
  }
  [[nodiscard]] std::string text() const {
    std::string head = fmt::format("\n  {:<{}} {:>7} {:>9} {:>9} {:>9} {:>6}", "module", kName, "kernels", "forward",
                                   "backward", "other", "share");
    if (memory_) head += fmt::format(" {:>11}", "at the peak");
    return head + "\n" + text_;
  }

 private:
  static constexpr std::size_t kName = 30;
  static constexpr double kRounding = 1e-12;  ///< seconds that a difference of sums may be off
  Seconds whole_;
  bool memory_;
  std::string text_;
};

int depth_of(const ModuleUses& uses, std::size_t module) {
  int depth = 0;
  for (; module != 0; module = uses[module].parent) ++depth;
  return depth;
}

}  // namespace

std::string module_line(const ModuleUses& uses) {
  if (uses.empty()) return "";
  return line_of(ModuleTree(uses).folded().inside, uses[0].time(), true);
}

std::string module_table(const ModuleUses& uses, int depth, bool memory) {
  if (uses.empty()) return "\n  this step names no modules\n";
  const Folded root = ModuleTree(uses).folded();
  ModuleTable table(root.sum.time(), memory);
  table.rows(root, 0, depth);
  table.outside(root);
  return table.text();
}

ordered_json module_json(const ModuleUses& uses, int depth, bool memory) {
  ordered_json out = ordered_json::array();
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (depth_of(uses, i) > depth) continue;
    const ModuleUse& use = uses[i];
    out.push_back({{"module", path_of(uses, i)},
                   {"kernels", use.kernels},
                   {"time_s", use.time().value()},
                   {"forward_s", of(use, Phase::forward).value()},
                   {"backward_s", of(use, Phase::backward).value()}});
    if (memory) out.back()["bytes_at_peak"] = use.bytes_at_peak;
  }
  return out;
}

}  // namespace ridgeline
