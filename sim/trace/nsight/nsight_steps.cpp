#include "sim/trace/nsight/nsight_steps.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "sim/units/budget.h"

namespace ridgeline::trace {
namespace {

/// In lower case, each row of digits as one '#'.
std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && pattern.ends_with('#')) continue;
    pattern += digit ? '#' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return pattern;
}

bool called_step(const std::string& pattern) {
  for (const std::string_view word : {"step", "iter", "batch"})
    if (pattern.find(word) != pattern.npos && pattern.find("optim") == pattern.npos) return true;
  return false;
}

}  // namespace

std::vector<HostEvent> nsight_steps(const ProfilerEvents& events, const std::vector<double>& launched) {
  constexpr std::size_t kMostPatterns = 4096;
  constexpr double kCalledSteps = 0.5, kOtherRanges = 0.9;  // of the GPU's work
  std::map<std::pair<std::int64_t, std::string>, std::vector<HostEvent>> ranges;
  for (const HostEvent& event : events.annotations) {  // ascending
    keep_budget_often("looking for the steps of a report");
    const auto key = std::pair(event.thread, pattern_of(events.names[event.name]));
    if (ranges.size() >= kMostPatterns && !ranges.contains(key)) continue;
    std::vector<HostEvent>& own = ranges[key];
    if (own.empty() || event.begin >= own.back().end) own.push_back(event);
  }
  std::vector<std::pair<double, double>> work;  // when it was launched, and how long it took
  double all = 0.0;
  for (std::size_t g = 0; g < launched.size(); ++g) {
    work.emplace_back(launched[g], events.gpu[g].end - events.gpu[g].begin);
    all += work.back().second;
  }
  std::sort(work.begin(), work.end());
  std::vector<double> until{0.0};
  for (const auto& [at, seconds] : work) until.push_back(until.back() + seconds);
  const auto before = [&](double at) {
    const auto place = std::lower_bound(work.begin(), work.end(), std::pair(at, -1.0)) - work.begin();
    return until[static_cast<std::size_t>(place)];
  };
  const std::vector<HostEvent>* best = nullptr;
  double best_rank = 0.0;
  for (const auto& [key, own] : ranges) {
    double covered = 0.0;
    for (const HostEvent& event : own) covered += before(event.end) - before(event.begin);
    const bool called = called_step(key.second);
    if (covered < (called ? kCalledSteps : kOtherRanges) * all || (!called && own.size() < 2)) continue;
    const double rank = (called ? 2.0 : 1.0) + covered / all;
    if (rank > best_rank) best_rank = rank, best = &own;
  }
  return best == nullptr ? std::vector<HostEvent>{} : *best;
}

}  // namespace ridgeline::trace
