#include "sim/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "sim/output/terminal.h"
#include "sim/report/text/comparison_words.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/number_words.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kRowsExplained = 4, kFrontShown = 8, kReasonsShown = 8;

std::string in_ms(Seconds t) { return four_digits(in_milliseconds(t)); }
std::string in_gib(std::int64_t bytes) { return fmt::format("{:.4g}", static_cast<double>(bytes) / kGiB); }

std::string way_words(const PlanCandidate& c) { return split_words(c) + "; " + step_words(c); }

bool several_counts(const PlanQuestion& question) {
  std::set<std::int64_t> counts;
  for (const PlanCandidate& c : question.candidates) counts.insert(c.gpus);
  return counts.size() > 1;
}

/// Numbers, then words; these on a line of their own where the page is too narrow.
void write_way(std::string& out, std::string numbers, const std::string& words_of_it) {
  if (numbers.size() + 2 + words_of_it.size() <= page_width()) {
    out += numbers + "  " + words_of_it + "\n";
    return;
  }
  numbers.erase(numbers.find_last_not_of(' ') + 1);
  out += numbers + "\n";
  write_wrapped(out, "      ", words_of_it);
}

void write_heading(std::string& out, const PlanQuestion& question) {
  std::set<std::int64_t> counts;
  for (const PlanCandidate& c : question.candidates) counts.insert(c.gpus);
  write_wrapped(out, "", question.title);
  write_wrapped(out, "",
                fmt::format("{} x {}, cluster {}; a step has {} sequences", fmt::join(counts, ", "), question.hardware,
                            question.cluster, question.batch));
  if (!question.assumed.empty()) write_wrapped(out, "", question.assumed);
}

void write_counts(std::string& out, const PlanSearch& search) {
  std::array<std::int64_t, kPlanFates> counts{};
  for (const PlanEntry& entry : search.entries)
    counts[static_cast<std::size_t>(entry.fate)] += entry.candidate.refusals;
  const auto of = [&](PlanFate fate) { return counts[static_cast<std::size_t>(fate)]; };
  std::int64_t all = 0;
  for (const std::int64_t n : counts) all += n;
  write_wrapped(
      out, "",
      fmt::format("{} ways: {} fit and were predicted, {} do not fit, {} too slow by their bounds, {} cannot run", all,
                  of(PlanFate::predicted), of(PlanFate::no_room) + of(PlanFate::too_large), of(PlanFate::too_slow),
                  of(PlanFate::refused)));
}

void write_plan_rows(std::string& out, const PlanQuestion& question, const PlanAnswer& answer) {
  const bool several = several_counts(question);
  out += "\nbest, by step time (a step: micro-batches x sequences of one)\n";
  out += fmt::format("  {:>2}  {:>8}  {:>15}  {:>9}  {:>6}{}  {}\n", "", "step ms", "range", "tokens/s", "GiB",
                     several ? "  GPUs" : "", "how");
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    const Prediction& p = answer.rows[i].side.prediction;
    const PlanCandidate& c = question.candidates[answer.rows[i].entry];
    write_way(
        out,
        fmt::format("  {:>2}  {:>8}  {:>15}  {:>9}  {:>6}{}", i + 1, in_ms(p.step.time),
                    fmt::format("{} - {}", in_ms(p.step.low), in_ms(p.step.high)), four_digits(p.step.tokens_per_s),
                    in_gib(p.memory.device_used), several ? fmt::format("  {:>4}", c.gpus) : ""),
        way_words(c));
  }
}

/// What the first is made of that another way might save.
void write_best(std::string& out, const PlanQuestion& question, const PlanAnswer& answer) {
  const Prediction& p = answer.rows.front().side.prediction;
  const PlanCandidate& c = question.candidates[answer.rows.front().entry];
  std::string text = fmt::format("MFU {:.0f} %", 100.0 * p.step.mfu);
  if (p.parallel)
    text += fmt::format(", communication {} ms exposed and {} ms hidden, bubble {} ms", in_ms(p.parallel->exposed),
                        in_ms(p.parallel->hidden), in_ms(p.parallel->bubble));
  const double price = answer.rows.front().side.scenario().gpu.price_per_hour;
  const auto gpus = static_cast<double>(c.gpus);
  text += fmt::format(", {:.3g} J a sequence", p.step.power.value() * gpus / p.step.samples_per_s);
  if (price > 0.0)
    text += fmt::format(", {:.3g} USD for a million sequences", price * gpus / 3600.0 / p.step.samples_per_s * 1e6);
  write_wrapped(out, "   1  ", text);
  std::vector<std::string> sets;
  for (const config::Override& change : c.changes)
    sets.push_back(change.key.substr(std::string("training.").size()) + "=" + change.value);
  write_wrapped(out, "      training: ", fmt::format("{}", fmt::join(sets, ", ")));
}

void write_separation(std::string& out, const PlanAnswer& answer) {
  if (answer.rows.size() < 2) return;
  out += "\nwhat separates them from the first\n";
  for (std::size_t i = 1; i < std::min(answer.rows.size(), kRowsExplained + 1); ++i) {
    const Difference& d = answer.rows[i].against_best;
    std::string text =
        fmt::format("{:+.4g} ms, {:+.3g} GiB", in_milliseconds(d.time), static_cast<double>(d.memory) / kGiB);
    std::size_t said = 0;
    for (const ClassDifference& part : d.classes) {
      if (said == 2 || std::abs(part.difference.value()) < 0.2 * std::abs(d.time.value())) break;
      const std::string reason = reason_for(part, answer.rows.front().side, answer.rows[i].side);
      text += fmt::format("{} {} {:+.4g} ms{}", said == 0 ? ":" : ";", class_words(part),
                          in_milliseconds(part.difference), reason.empty() ? "" : " (" + reason + ")");
      ++said;
    }
    write_wrapped(out, fmt::format("  {:>2}  ", i + 1), text);
  }
}

void write_front(std::string& out, const PlanQuestion& question, const PlanSearch& search) {
  const bool several = several_counts(question);
  out += fmt::format("\nnothing is better in time{} and memory than these (up to {:g} times the fastest)\n",
                     several ? ", GPUs" : "", kSlowestOfFront);
  std::map<std::int64_t, std::vector<std::size_t>> by_gpus;
  for (const std::size_t i : search.front) by_gpus[search.entries[i].candidate.gpus].push_back(i);
  std::size_t all_shown = 0;
  for (const auto& [gpus, ways] : by_gpus) {
    const std::size_t shown = std::min(ways.size(), std::max<std::size_t>(3, kFrontShown / by_gpus.size()));
    all_shown += shown;
    for (std::size_t k = 0; k < shown; ++k) {
      // Evenly spaced where there are more: the first and the last always.
      const PlanEntry& entry = search.entries[ways[shown < 2 ? 0 : k * (ways.size() - 1) / (shown - 1)]];
      write_way(out,
                fmt::format("      {:>8} ms  {:>6} GiB{}", in_ms(entry.time), in_gib(entry.memory),
                            several ? fmt::format("  {:>4} GPUs", gpus) : ""),
                way_words(entry.candidate));
    }
  }
  if (search.front.size() > all_shown)
    out += fmt::format("      {} of {}; --format json has all\n", all_shown, search.front.size());
}

void write_order(std::string& out, const PlanAnswer& answer) {
  if (!answer.order) return;
  const PlanOrder& o = *answer.order;
  out += "\nhow sure the order is\n";
  std::string text =
      o.overlap ? "the ranges of first and second overlap" : "the ranges of first and second do not overlap";
  text += fmt::format("; {:.0f} % of the first's step are kernels that the second runs too, whose error is common. ",
                      100.0 * o.common);
  if (o.holds())
    text += fmt::format("Where all kernels and the host are off alike, the second stays {:.3g} to {:.3g} % slower.",
                        100.0 * (o.least - 1.0), 100.0 * (o.most - 1.0));
  else
    text += fmt::format(
        "Where all kernels and the host are off alike, the second takes {:.3g} to {:.3g} % of the first's "
        "time: either may be faster.",
        100.0 * o.least, 100.0 * o.most);
  write_wrapped(out, "  ", text);
}

void write_changes(std::string& out, const PlanQuestion& question, const PlanSearch& search, const PlanAnswer& answer) {
  out += "\nwhat would change the choice\n";
  std::vector<std::string> nothing;
  for (const PlanChange& change : answer.changes) {
    if (change.row == 0) {
      nothing.push_back(change.what);
      continue;
    }
    write_wrapped(out, "  ",
                  fmt::format("{}: number {} ({} ms, the first {} ms)", change.what, change.row + 1, in_ms(change.time),
                              in_ms(change.of_best)));
  }
  if (answer.with_memory) {
    const PlanWithMemory& more = *answer.with_memory;
    write_wrapped(out, "  ",
                  fmt::format("{} GiB a GPU in place of {}: {} ({} ms)", in_gib(more.memory), in_gib(question.capacity),
                              way_words(search.entries[more.entry].candidate), in_ms(more.time)));
  }
  if (!nothing.empty()) write_wrapped(out, "  ", fmt::format("not: {}", fmt::join(nothing, ", ")));
}

void write_left_out(std::string& out, const PlanSearch& search) {
  const std::vector<LeftOut> reasons = left_out_of(search);
  if (reasons.empty()) return;
  out += "\nleft out\n";
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (i >= kReasonsShown) rest += reasons[i].ways;
    else write_wrapped(out, fmt::format("  {:>6}  ", reasons[i].ways), reasons[i].why);
  }
  if (rest > 0) out += fmt::format("  {:>6}  for other reasons (--format json)\n", rest);
}

}  // namespace

std::vector<LeftOut> left_out_of(const PlanSearch& search) {
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;  // by the reason without its numbers
  const auto add = [&](const std::string& why, std::int64_t ways) {
    std::string form;
    for (const char c : why)
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) form += c;
    auto& [count, text] = reasons[form];
    if (count == 0) text = why;
    count += ways;
  };
  for (const PlanEntry& entry : search.entries) {
    const PlanCandidate& c = entry.candidate;
    if (entry.fate == PlanFate::too_large)
      add("needs more memory than the device has, by its states and activations alone", 1);
    if (entry.fate == PlanFate::no_room) add("does not fit as predicted", 1);
    if (entry.fate == PlanFate::too_slow) add("takes longer than the answers, by its least time", 1);
    if (entry.fate != PlanFate::refused) continue;
    if (!entry.why.empty()) add(entry.why, 1);
    else add((c.refused_key.empty() ? "" : c.refused_key + ": ") + c.refused, c.refusals);
  }
  std::vector<LeftOut> result;
  for (const auto& [form, reason] : reasons) result.push_back({reason.second, reason.first});
  std::stable_sort(result.begin(), result.end(), [](const LeftOut& a, const LeftOut& b) { return a.ways > b.ways; });
  return result;
}

void check_that_some_fit(const PlanQuestion& question, const PlanSearch& search) {
  if (!search.best.empty()) return;
  if (search.nearest) {
    const PlanEntry& entry = search.entries[*search.nearest];
    throw UserError(fmt::format("plan: nothing fits on {} GPUs; the nearest needs {} of the {} that a device has{}: {}",
                                entry.candidate.gpus, gib(entry.memory), gib(question.capacity),
                                entry.memory > question.capacity ? "" : ", and comparable runs took more",
                                way_words(entry.candidate)));
  }
  const std::vector<LeftOut> reasons = left_out_of(search);
  throw UserError(fmt::format("plan: no way to train can run{}{}",
                              reasons.empty() ? "" : "; most say: ", reasons.empty() ? "" : reasons.front().why));
}

std::string plan_text(const PlanQuestion& question, const PlanSearch& search, const PlanAnswer& answer) {
  std::string out;
  write_heading(out, question);
  write_counts(out, search);
  write_plan_rows(out, question, answer);
  write_best(out, question, answer);
  write_separation(out, answer);
  write_front(out, question, search);
  write_order(out, answer);
  write_changes(out, question, search, answer);
  write_left_out(out, search);
  return out;
}

}  // namespace ridgeline
