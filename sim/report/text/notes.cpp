#include "sim/report/text/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/report/text/memory_words.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostLines = 8, kMostOperations = 4;

/// All operations of one name without a rule.
struct OperationKind {
  std::string name;
  std::int64_t launches = 0, shapes = 0;
  double share = 0.0;  ///< of the GPU's busy time
};
std::vector<OperationKind> kinds_of(const Prediction& p) {
  std::map<std::string, OperationKind> kinds;
  for (const ApproximatedOp& op : p.approximated) {
    OperationKind& kind = kinds[op.name];
    kind.name = op.name;
    kind.launches += op.launches;
    ++kind.shapes;
    if (p.step.gpu_busy.value() > 0) kind.share += ratio(op.time, p.step.gpu_busy);
  }
  std::vector<OperationKind> out;
  for (auto& [name, kind] : kinds) out.push_back(std::move(kind));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

std::string share_words(double share) {
  return share >= 0.0005 ? fmt::format("{:.1f} % of the GPU time", 100.0 * share) : "under 0.1 % of the GPU time";
}

std::vector<std::string> operation_lines(const Prediction& p) {
  const std::vector<OperationKind> kinds = kinds_of(p);
  std::vector<std::string> lines;
  OperationKind rest;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const OperationKind& kind = kinds[i];
    if (i + 1 < kMostOperations || kinds.size() == kMostOperations) {
      lines.push_back(fmt::format("{} x {}{} without a rule on this GPU, costed by bytes: {}", kind.launches, kind.name,
                                  kind.shapes > 1 ? fmt::format(" in {} shapes", kind.shapes) : "",
                                  share_words(kind.share)));
      continue;
    }
    rest.launches += kind.launches;
    ++rest.shapes;
    rest.share += kind.share;
  }
  if (rest.shapes > 0)
    lines.push_back(fmt::format("{} x {} other operations without a rule, costed by bytes: {}", rest.launches,
                                rest.shapes, share_words(rest.share)));
  return lines;
}

std::vector<std::string> folded(const Prediction& p, const ReplayResult* replay) {
  std::vector<std::string> lines;
  if (replay != nullptr)
    for (const auto& [what, times] : replay->defects.counts) {
      double share = 0.0;
      if (what.find("carried over") != what.npos && p.step.gpu_busy.value() > 0)
        for (const ReplayedOp& op : replay->ops)
          if (!op.understood) share += ratio(op.predicted, p.step.gpu_busy);
      lines.push_back(fmt::format("{} x {}{}", times, what,
                                  share > 0 ? fmt::format(": with all that has no rule {}", share_words(share)) : ""));
    }
  for (std::string& line : operation_lines(p)) lines.push_back(std::move(line));
  for (const std::string& note : p.notes) {
    const bool of_operation =
        std::any_of(p.approximated.begin(), p.approximated.end(), [&](const auto& op) { return op.note == note; });
    if (!of_operation && std::find(lines.begin(), lines.end(), note) == lines.end()) lines.push_back(note);
  }
  if (lines.size() <= kMostLines) return lines;
  const std::size_t left_out = lines.size() - kMostLines + 1;
  lines.resize(kMostLines - 1);
  lines.push_back(fmt::format("{} more: --notes prints all", left_out));
  return lines;
}

}  // namespace

std::string notes_text(const Prediction& p, const ReplayResult* replay, Notes notes) {
  std::vector<std::string> lines;
  if (notes == Notes::folded) {
    lines = folded(p, replay);
  } else {
    if (replay != nullptr)
      for (const auto& [what, times] : replay->defects.counts) lines.push_back(fmt::format("{} x {}", times, what));
    lines.insert(lines.end(), p.notes.begin(), p.notes.end());
  }
  std::string out;
  if (!lines.empty()) out += '\n';
  for (const std::string& line : lines) write_wrapped(out, "  note: ", line);
  return out;
}

}  // namespace ridgeline
