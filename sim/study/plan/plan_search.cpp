#include "sim/study/plan/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

// Of all processes together: what a round predicts, and further ones beside all that were before; they cannot know what
// the others of their round find.
constexpr std::size_t kFirstRound = 16;
constexpr double kFurtherRound = 0.25;
constexpr double kSlack = 1.02;  // of bounds that were too high

class PlanSearcher {
 public:
  PlanSearcher(const PlanQuestion& question, Session& session, Ranks& ranks, const PlanSearchOptions& options)
      : question_(question), session_(session), ranks_(ranks), options_(options) {
    for (const PlanCandidate& candidate : question.candidates) {
      PlanEntry entry{candidate, PlanFate::too_slow, {}, 0};
      if (!candidate.refused.empty()) entry.fate = PlanFate::refused;
      else if (candidate.least_memory > question.capacity && !options.exhaustive) entry.fate = PlanFate::too_large;
      else open_.push_back(result_.entries.size());
      result_.entries.push_back(std::move(entry));
    }
    std::stable_sort(open_.begin(), open_.end(),
                     [&](std::size_t a, std::size_t b) { return candidate(a).least_time < candidate(b).least_time; });
  }

  PlanSearch run() {
    for (std::size_t size = kFirstRound; !open_.empty() && !stopped(); size = next_round()) {
      const std::size_t n = std::min(size, open_.size());
      predict({open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(n)});
      open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(n));
      if (!options_.exhaustive) drop_what_is_no_answer();
    }
    rank();
    if (result_.best.empty() && !stopped()) find_nearest();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const PlanCandidate& candidate(std::size_t i) const { return question_.candidates[i]; }
  [[nodiscard]] std::size_t next_round() const {
    return std::max(kFirstRound, static_cast<std::size_t>(kFurtherRound * static_cast<double>(result_.predictions)));
  }
  [[nodiscard]] bool stopped() const { return is_stopped() || (options_.stop != nullptr && options_.stop->load()); }

  /// Those that are known are not predicted again.
  void predict(const std::vector<std::size_t>& places) {
    std::vector<std::uint64_t> todo;
    std::vector<SweepPoint> points;
    for (const std::size_t i : places) {
      const auto known =
          std::lower_bound(options_.known.begin(), options_.known.end(), i,
                           [](const SweepPoint& point, std::size_t index) { return point.index < index; });
      if (known != options_.known.end() && known->index == i) points.push_back(*known);
      else todo.push_back(i);
    }
    if (!todo.empty()) {
      std::sort(todo.begin(), todo.end());
      (void)ranks_.agreed(true);  // there is work
      const std::vector<SweepPoint> found = ranks_.run(
          question_.sweep, todo, SweepRunOptions{options_.threads, options_.stop, options_.on_points, &session_});
      points.insert(points.end(), found.begin(), found.end());
    }
    for (const SweepPoint& point : points) take(point);
    result_.predictions += points.size();
    if (options_.on_progress)
      options_.on_progress(result_.predictions, open_.size() - std::min(open_.size(), places.size()));
  }

  void take(const SweepPoint& point) {
    PlanEntry& entry = result_.entries[point.index];
    if (!point.ran()) {
      entry.fate = PlanFate::refused;
      entry.why = point.error;
      return;
    }
    entry.fate = point.fits ? PlanFate::predicted : PlanFate::no_room;
    entry.memory = static_cast<std::int64_t>(point[Metric::memory]);
    if (!point.fits) return;
    entry.time = Seconds{point[Metric::step_time]};
    const double bound = candidate(point.index).least_time.value();
    if (bound * bounds_ > entry.time.value()) bounds_ = entry.time.value() / (bound * kSlack);
    fitting_.push_back(point.index);
  }

  void order_fitting() {
    std::sort(fitting_.begin(), fitting_.end(), [&](std::size_t a, std::size_t b) {
      const PlanEntry &x = result_.entries[a], &y = result_.entries[b];
      if (x.time != y.time) return x.time < y.time;
      if (x.memory != y.memory) return x.memory < y.memory;
      return a < b;
    });
  }
  [[nodiscard]] std::map<std::int64_t, Seconds> fastest() const {
    std::map<std::int64_t, Seconds> result;
    for (const std::size_t i : fitting_) result.emplace(candidate(i).gpus, result_.entries[i].time);
    return result;
  }

  /// The first of `fitting_`; of those that are predicted alike and differ by their strategy alone, one.
  [[nodiscard]] std::vector<std::size_t> distinct() const {
    std::vector<std::size_t> result;
    for (const std::size_t i : fitting_) {
      if (result.size() == kPlansShown) break;
      const auto alike = [&](std::size_t other) {
        const PlanEntry &a = result_.entries[other], &b = result_.entries[i];
        PlanCandidate same = b.candidate;
        same.strategy = a.candidate.strategy;
        return a.time == b.time && a.memory == b.memory && split_words(same) == split_words(a.candidate) &&
               step_words(same) == step_words(a.candidate);
      };
      if (std::none_of(result.begin(), result.end(), alike)) result.push_back(i);
    }
    return result;
  }

  void drop_what_is_no_answer() {
    order_fitting();
    const std::vector<std::size_t> best = distinct();
    if (best.size() < kPlansShown) return;
    const Seconds tenth = result_.entries[best.back()].time;
    const auto fastest_of = fastest();
    const auto front = front_of_fitting();
    std::erase_if(open_, [&](std::size_t i) {
      const PlanCandidate& c = candidate(i);
      const Seconds least = c.least_time * bounds_;
      if (least <= tenth) return false;
      const auto on_as_many = fastest_of.find(c.gpus);
      if (on_as_many == fastest_of.end()) return false;
      if (least > on_as_many->second * kSlowestOfFront) return true;
      return std::any_of(front.begin(), front.end(), [&](std::size_t f) {
        const PlanEntry& other = result_.entries[f];
        // On fewer GPUs it may yet fall behind the fastest there: then it hides nothing.
        return other.time < least && other.memory <= c.least_memory && other.candidate.gpus == c.gpus;
      });
    });
  }

  /// Of `fitting_`, in its order: by time, so that only an earlier one can be better in everything.
  [[nodiscard]] std::vector<std::size_t> front_of_fitting() const {
    const auto best = fastest();
    std::vector<std::size_t> front;
    for (const std::size_t i : fitting_) {
      const PlanEntry& own = result_.entries[i];
      if (own.time > best.at(own.candidate.gpus) * kSlowestOfFront) continue;
      const bool beaten = std::any_of(front.begin(), front.end(), [&](std::size_t f) {
        const PlanEntry& other = result_.entries[f];
        return other.memory <= own.memory && other.candidate.gpus <= own.candidate.gpus;
      });
      if (!beaten) front.push_back(i);
    }
    return front;
  }

  void rank() {
    order_fitting();
    result_.best = distinct();
    result_.front = front_of_fitting();
  }

  /// Nothing fits: the candidate that needs least, by the bounds again.
  void find_nearest() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < result_.entries.size(); ++i)
      if (result_.entries[i].fate == PlanFate::too_large) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return candidate(a).least_memory < candidate(b).least_memory;
    });
    std::optional<std::size_t> nearest;
    const auto look = [&](std::size_t i) {
      const PlanEntry& entry = result_.entries[i];
      if (entry.fate == PlanFate::no_room && (!nearest || entry.memory < result_.entries[*nearest].memory)) nearest = i;
    };
    for (std::size_t i = 0; i < result_.entries.size(); ++i) look(i);
    for (std::size_t begin = 0; begin < order.size() && !stopped(); begin += kFirstRound) {
      if (nearest && candidate(order[begin]).least_memory >= result_.entries[*nearest].memory) break;
      const std::size_t end = std::min(begin + kFirstRound, order.size());
      const std::vector<std::size_t> places(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                            order.begin() + static_cast<std::ptrdiff_t>(end));
      predict(places);
      for (const std::size_t i : places) look(i);
    }
    result_.nearest = nearest;
  }

  const PlanQuestion& question_;
  Session& session_;
  Ranks& ranks_;
  const PlanSearchOptions& options_;
  PlanSearch result_;
  std::vector<std::size_t> open_, fitting_;
  double bounds_ = 1.0;  ///< factor on the bounds of time
};

}  // namespace

PlanSearch search_plan(const PlanQuestion& question, Session& session, Ranks& ranks, const PlanSearchOptions& options) {
  PlanSearch result = PlanSearcher(question, session, ranks, options).run();
  (void)ranks.agreed(false);  // no more work
  return result;
}

void help_search(const PlanQuestion& question, Session& session, Ranks& ranks, const PlanSearchOptions& options) {
  while (ranks.agreed(false))  // what rank 0 says counts
    ranks.run(question.sweep, {}, SweepRunOptions{options.threads, options.stop, {}, &session});
}

}  // namespace ridgeline
