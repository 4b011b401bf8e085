#include "sim/report/text/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/report/text/number_words.h"
#include "sim/report/text/verdict_words.h"
#include "sim/report/text/workload_words.h"
#include "sim/scenario/assumed_sizes.h"
#include "sim/scenario/short_flags.h"
#include "sim/scenario/step_amount.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr std::string_view kSummaryMargin = "                ";

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// "  label         text", wrapped.
void say_row(std::string& out, std::string_view label, std::string_view text) {
  write_wrapped(out, fmt::format("  {:<14}", label), text, kSummaryColumns);
}

/// "llama-3-8b on nvidia-rtx-3090, bf16 because nothing was said".
std::string summary_title(const Scenario& s, const Prediction& p) {
  std::string title = p.scenario;
  if (!s.gpu.name.empty() && title.find(s.gpu.name) == title.npos) title += " on " + s.gpu.name;
  return title + assumed_words(s);
}

std::string summary_time(const StepPrediction& step) {
  return fmt::format("{} ({} to {}{})", to_string(step.time), to_string(step.low), to_string(step.high),
                     step.validated ? "" : ", estimated");
}

/// Tokens a second where the step has tokens, and samples where there is room for them.
std::string summary_rate(const StepPrediction& step) {
  if (step.tokens_per_s > step.samples_per_s) return fmt::format("{} tokens/s", four_digits(step.tokens_per_s));
  return step.samples_per_s > 0 ? fmt::format("{} samples/s", four_digits(step.samples_per_s)) : "";
}

void say_time(std::string& out, const StepPrediction& step) {
  std::string line = fmt::format("{}, {}", summary_time(step), summary_rate(step));
  if (step.tokens_per_s > step.samples_per_s && step.samples_per_s > 0) {
    const std::string samples = fmt::format(", {} samples/s", four_digits(step.samples_per_s));
    if (kSummaryMargin.size() + line.size() + samples.size() <= kSummaryColumns) line += samples;
  }
  say_row(out, "step time", line);
}

/// Categories, what the allocator keeps unused and the context: the device's memory, of the whole step.
void say_memory(std::string& out, const MemoryPrediction& m) {
  if (m.source == MemorySource::unknown) return;
  std::vector<std::pair<std::string, std::int64_t>> parts;
  const auto& categories = m.runs ? m.at_peak : m.needed_at_peak;
  std::int64_t sum = 0;
  const auto add = [&](std::string name, std::int64_t bytes) {
    sum += bytes;
    if (bytes > 0) parts.emplace_back(std::move(name), bytes);
  };
  for (std::size_t i = 0; i < kCategories; ++i) add(words(kCategoryNames[i]), categories[i]);
  add("cached", m.runs ? m.cached_unused : m.needed_unused);
  add("CUDA context", m.context);
  // Parts too small to be worth a word are said together.
  const std::int64_t small = (m.runs ? m.device_used : m.needed) / 40, nothing = std::int64_t{5} << 20;
  std::int64_t rest = 0;
  std::erase_if(parts, [&](const auto& part) {
    if (part.second < small) rest += part.second;
    return part.second < small;
  });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (rest > nothing) parts.emplace_back("rest", rest);
  if (sum == m.context) parts.emplace_back("PyTorch", (m.runs ? m.device_used : m.needed) - sum);
  std::string line;
  for (const auto& [name, bytes] : parts)
    line += fmt::format("{}{} {:.2f}", line.empty() ? "GiB: " : ", ", name, static_cast<double>(bytes) / kGiB);
  say_row(out, "memory", line);
}

/// A limiter in words, and the meaning of its share of the step.
constexpr std::array<std::string_view, kLimiters> kLimitSentences{
    "arithmetic: kernels at the rate of the math units",        "DRAM bandwidth: kernels that wait for device memory",
    "L2 bandwidth: kernels that wait for the L2 cache",         "shared memory: kernels that wait for its bandwidth",
    "latency: kernels that neither math nor memory keeps busy", "launches and host: the GPU waits for work",
    "power: kernels at a clock that the power limit lowers",    "links: the GPU waits for other GPUs"};
constexpr std::array<std::string_view, kLimiters> kShortLimits{
    "arithmetic", "DRAM", "L2", "shared memory", "latency", "launches and host", "power", "links"};

void say_limit(std::string& out, const Prediction& p) {
  std::vector<std::pair<double, std::size_t>> shares;
  for (std::size_t i = 0; i < kLimiters; ++i) shares.emplace_back(ratio(p.limited_by[i], p.step.time), i);
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string line =
      fmt::format("{}, {:.0f} % of the step", kLimitSentences[shares[0].second], 100.0 * shares[0].first);
  constexpr double kWorthSaying = 0.05;
  for (std::size_t i = 1; i < 3; ++i)
    if (shares[i].first >= kWorthSaying)
      line +=
          fmt::format("{}{} {:.0f} %", i == 1 ? "; " : ", ", kShortLimits[shares[i].second], 100.0 * shares[i].first);
  say_row(out, "limited by", line);
}

std::string optimizer_words(const OptimizerDescription& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
    case OptimizerKind::sgd:
    case OptimizerKind::sgd_momentum: {
      const std::string name = optimizer.kind == OptimizerKind::adamw  ? "AdamW"
                               : optimizer.kind == OptimizerKind::adam ? "Adam"
                                                                       : "SGD";
      const char* how = optimizer.implementation == OptimizerImplementation::fused     ? "fused"
                        : optimizer.implementation == OptimizerImplementation::foreach ? "foreach"
                                                                                       : "for-loop";
      return fmt::format("torch's {} ({})", name, how);
    }
    case OptimizerKind::adafactor: return "Adafactor";
    case OptimizerKind::adamw_8bit: return "bitsandbytes' 8-bit AdamW";
    case OptimizerKind::adamw_kahan: return "AdamW with Kahan sums";
    case OptimizerKind::bert_adam: return "BertAdam";
    case OptimizerKind::lion:
      return optimizer.implementation == OptimizerImplementation::fused     ? "bitsandbytes' Lion"
             : optimizer.implementation == OptimizerImplementation::foreach ? "timm's Lion (foreach)"
                                                                            : "lion-pytorch";
    case OptimizerKind::lion_8bit: return "bitsandbytes' 8-bit Lion";
    case OptimizerKind::lamb: return "apex's FusedLAMB";
    case OptimizerKind::schedule_free_adamw: return "AdamWScheduleFree";
    case OptimizerKind::muon: return "torch's Muon beside AdamW";
    case OptimizerKind::none: return "";
  }
  return "";
}

/// Whose code runs.
std::string code_words(const Scenario& s) {
  const std::string engine = s.compile ? " under torch.compile" : "";
  if (s.recorded) return fmt::format("the recorded operations, {}", s.software.name);
  const TrainingDescription& t = s.training;
  const std::string framework = t.parallel.megatron() ? "Megatron-LM" : t.parallel.deepspeed() ? "DeepSpeed" : "";
  std::string line = t.parallel.megatron()     ? "Megatron-LM's network"
                     : s.model.program.given() ? "the network's program"
                     : s.model.written_plain() ? "plain PyTorch modules"
                                               : "Transformers' modules";
  line += engine;
  if (t.parallel.deepspeed()) line += " in DeepSpeed's engine";
  if (t.preference) line += ", TRL's DPOTrainer";
  if (t.lora)
    line += t.lora->frozen == FrozenWeights::as_stored ? ", PEFT's adapters" : ", PEFT's adapters, bitsandbytes' NF4";
  if (!t.inference)
    if (const std::string optimizer = optimizer_words(t.optimizer); !optimizer.empty()) line += ", " + optimizer;
  return line + ", " + s.software.name;
}

void say_several(std::string& out, const Prediction& p) {
  if (p.parallel)
    say_row(out, "GPUs",
            fmt::format("{}, each as fast as {:.0f} % of one alone; communication {} exposed", p.parallel->gpus,
                        100.0 * p.parallel->efficiency, to_string(p.parallel->exposed)));
  if (p.generation)
    say_row(out, "generation",
            fmt::format("{} to the first token, {} for each after it", to_string(p.generation->first_token),
                        to_string(p.generation->per_token)));
}

void say_measured(std::string& out, const Scenario& s, const StepPrediction& step) {
  const MeasuredBeside& m = s.measured;
  if (m.step_time)
    say_row(out, "measured",
            fmt::format("{} (predicted {:+.1f} %)", to_string(*m.step_time),
                        100.0 * (ratio(step.time, *m.step_time) - 1.0)));
  else if (m.samples_per_s)
    say_row(out, "measured",
            fmt::format("{} samples/s (predicted {:+.1f} %)", four_digits(*m.samples_per_s),
                        100.0 * (step.samples_per_s / *m.samples_per_s - 1.0)));
}

/// "-30.0 ms"; "0 ms" below what anybody could measure.
std::string change_words(Seconds t) {
  constexpr double kNothing = 1e-5;
  if (std::abs(t.value()) < kNothing) return "0 ms";
  return t < Seconds{0} ? "-" + to_string(-t) : "+" + to_string(t);
}

/// At most `most` pieces of advice in at most `lines` lines.
void say_advice(std::string& out, const Prediction& p, std::size_t most, std::size_t lines) {
  for (std::size_t i = 0; i < std::min(most, p.advice.size()); ++i) {
    const Advice& a = p.advice[i];
    const std::string flags = as_flags({&a.change, 1});
    std::string row = fmt::format("  {:<12}  {:>8} {:>10}", i == 0 ? "what helps" : "", change_words(-a.time_saved),
                                  fmt::format("{:+.2f} GiB", static_cast<double>(-a.memory_saved_bytes) / kGiB));
    if (row.size() + 2 + flags.size() <= kSummaryColumns) row += "  " + flags + "\n";
    else {
      row += '\n';
      write_wrapped(row, std::string(kSummaryMargin) + "  ", flags, kSummaryColumns);
    }
    if (count_lines(row) > lines) return;
    lines -= count_lines(row);
    out += row;
  }
}

/// Faults of the question, and where the rest is.
std::string summary_end(const Prediction& p) {
  std::string out;
  if (!p.unread.empty()) write_wrapped(out, "  note: ", p.unread.front(), kSummaryColumns);
  const std::size_t notes = p.notes.size() - std::min<std::size_t>(p.notes.size(), p.unread.empty() ? 0 : 1);
  say_row(out, "more",
          fmt::format("--explain: kernels, phases, host, energy{}",
                      notes == 0 ? "" : fmt::format(", {} note{}", notes, notes == 1 ? "" : "s")));
  return out;
}

/// Lines that give way, one after the other, where not all have room.
enum class Left : std::uint8_t { nothing, code, measured, limit };

std::string summary_body(const Scenario& s, const Prediction& p, double run_tokens, Left left) {
  std::string out;
  std::string sizes = assumed_sizes(s);
  if (!sizes.empty()) sizes = "; --batch and --seq name other sizes";
  say_row(out, "asked", workload_line(s) + sizes);
  if (p.memory.runs) {
    say_time(out, p.step);
    if (left < Left::measured) say_measured(out, s, p.step);
    say_several(out, p);
    if (run_tokens > 0.0) say_row(out, "run", run_words(s, p, run_tokens));
  }
  say_memory(out, p.memory);
  if (p.memory.runs && left < Left::limit) say_limit(out, p);
  if (left < Left::code) say_row(out, "code", code_words(s));
  return out;
}

}  // namespace

std::string ladder_text(std::span<const LadderRow> ladder, std::size_t most) {
  if (ladder.empty()) return "  what would fit  nothing of what was tried\n";
  const bool tight = std::any_of(ladder.begin(), ladder.end(),
                                 [](const LadderRow& row) { return row.memory.runs && !row.memory.fits; });
  std::vector<const LadderRow*> rows;
  for (const LadderRow& row : ladder) rows.push_back(&row);
  const auto made = [&] {
    std::string out = fmt::format("  {:<18}{:>7} {:>9} {:>9}  {}\n", "what would fit", "GiB", "step", "tokens/s",
                                  tight ? "flags (+: and above, ?: tight)" : "flags (+: with those above)");
    for (const LadderRow* row : rows) {
      const std::string step = row->step ? to_string(row->step->time) : "-";
      const std::string rate = row->step ? four_digits(row->step->tokens_per_s) : "-";
      const std::string fits = !row->memory.runs ? "too much" : row->memory.fits ? step : step + "?";
      const std::string line = fmt::format("  {:<18}{:>7.2f} {:>9} {:>9}  ", (row->adds ? "+ " : "") + row->label,
                                           static_cast<double>(row->memory.needed) / kGiB, fits, rate);
      const std::string flags = as_flags(row->own);
      if (line.size() + flags.size() <= kSummaryColumns) out += line + flags + "\n";
      else {
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        write_wrapped(out, std::string(20, ' '), flags, kSummaryColumns);
      }
    }
    return out;
  };
  // Rows that do not fit give way, those that others add to last.
  while (!rows.empty() && count_lines(made()) > most) {
    auto victim = rows.end();
    for (auto row = rows.begin(); row != rows.end(); ++row)
      if (!(*row)->memory.runs && (std::next(row) == rows.end() || !(*std::next(row))->adds)) victim = row;
    rows.erase(victim == rows.end() ? std::prev(rows.end()) : victim);
  }
  return rows.empty() ? "" : made();
}

std::string run_words(const Scenario& s, const Prediction& p, double tokens) {
  if (p.step.tokens_per_s <= 0.0) throw UserError("--tokens: the step has no tokens");
  constexpr double kBillion = 1e9, kHour = 3600.0, kDay = 24.0, kJoulesOfKilowattHour = 3.6e6;
  const double seconds = tokens / p.step.tokens_per_s, hours = seconds / kHour, boards = boards_of_step(s);
  const std::string amount = tokens >= kBillion ? fmt::format("{:.4g} B", tokens / kBillion) : four_digits(tokens);
  const std::string time = hours >= 2.0 * kDay ? fmt::format("{:.1f} days", hours / kDay)
                           : hours >= 1.0      ? fmt::format("{:.1f} hours", hours)
                                               : fmt::format("{:.1f} minutes", 60.0 * hours);
  std::string line = fmt::format("{} tokens: {} steps, {}, {} kWh", amount, four_digits(seconds / p.step.time.value()),
                                 time, four_digits(p.step.power.value() * boards * seconds / kJoulesOfKilowattHour));
  if (s.gpu.price_per_hour > 0.0) line += fmt::format(", {} USD", thousands(s.gpu.price_per_hour * boards * hours));
  return line;
}

std::string summary_text(const Scenario& s, const Prediction& p, const std::vector<LadderRow>* ladder,
                         double run_tokens) {
  std::string out = summary_title(s, p);
  // The verdict stands in the second line at the latest.
  if (out.size() > kSummaryColumns) {
    const std::size_t blank = out.rfind(' ', kSummaryColumns - 4);
    std::size_t end = blank == std::string::npos ? kSummaryColumns - 4 : blank;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;  // not inside of a letter
    out.resize(end);
    out += " ...";
  }
  out += '\n';
  write_wrapped(out, "", verdict_line(p.memory), kSummaryColumns);
  out += '\n';
  const std::string end = summary_end(p);
  const std::size_t taken = count_lines(out) + count_lines(end);
  std::string body;
  for (const Left left : {Left::nothing, Left::code, Left::measured, Left::limit}) {
    body = summary_body(s, p, run_tokens, left);
    if (taken + count_lines(body) <= kSummaryLines) break;
  }
  out += body;
  const std::size_t room = kSummaryLines - std::min(kSummaryLines, count_lines(out) + count_lines(end));
  if (p.memory.runs) {
    constexpr std::size_t kMostAdvice = 3;
    if (room > 1 && !p.advice.empty()) {
      out += '\n';
      say_advice(out, p, kMostAdvice, room - 1);
    }
  } else if (ladder != nullptr) {
    out += '\n';
    out += ladder_text(*ladder, room - 1);
  } else if (!p.memory.would_fit.empty()) {
    say_row(out, "fits with", as_flags(p.memory.would_fit));
  }
  return out + end;
}

std::string summary_line(const Scenario& s, const Prediction& p) {
  const MemoryPrediction& m = p.memory;
  std::string line = fmt::format("{}: {}", summary_title(s, p), verdict_line(m));
  if (m.runs) line += fmt::format("; {}, {}", summary_time(p.step), summary_rate(p.step));
  return line + "\n";
}

}  // namespace ridgeline
