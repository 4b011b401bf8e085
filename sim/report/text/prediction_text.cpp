#include "sim/report/text/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "sim/output/terminal.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/module_text.h"
#include "sim/report/text/names.h"
#include "sim/report/text/number_words.h"
#include "sim/report/text/profile_text.h"
#include "sim/report/text/sensitivity_text.h"
#include "sim/report/text/verdict_words.h"
#include "sim/report/text/workload_words.h"
#include "sim/scenario/step_amount.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

/// Three significant digits, whatever the size: "338 ms", "8.41 ms", "1.20 s".
std::string duration(Seconds t) { return to_string(t); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100.0 * share); }

/// "forward 95.1 ms, backward 190 ms": shares of the kernels' time from 0.5 % of the step on, in the order of `names`.
template <std::size_t N, class Names>
std::string shares(const std::array<Seconds, N>& times, const Names& name_of_entry, Seconds step) {
  std::string out;
  for (std::size_t i = 0; i < N; ++i)
    if (times[i] > 0.005 * step)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name_of_entry(i), duration(times[i]));
  return out;
}

/// "-12.3 ms"; "0 ms" below what anybody could measure.
std::string signed_duration(Seconds t) {
  if (std::abs(t.value()) < 1e-5) return "0 ms";
  return t < Seconds{0} ? "-" + duration(-t) : "+" + duration(t);
}

/// "compute 71 %, dram 21 %, idle 8 %": the largest shares of the step, down to 2 %.
std::string limiting(const Prediction& p) {
  std::vector<std::pair<double, std::string>> shares;
  for (std::size_t i = 0; i < kLimiters; ++i) {
    const bool launch = static_cast<Limiter>(i) == Limiter::launch;
    shares.emplace_back(ratio(p.limited_by[i], p.step.time), launch ? "launches and host" : words(kLimiterNames[i]));
  }
  std::sort(shares.rbegin(), shares.rend());
  std::string out;
  for (const auto& [share, name] : shares)
    if (share >= 0.02) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, percent(share));
  return out;
}

void write_shortage(std::string& out, const MemoryPrediction& m, const MemoryShortage& oom) {
  constexpr std::string_view kMargin = "                ";
  write_wrapped(out, kMargin, fmt::format("runs out {}; the whole step needs {}", shortage_words(oom), gib(m.needed)));
  if (m.would_fit.empty()) return;
  write_wrapped(out, kMargin, "fits with " + as_sets(m.would_fit));
}

/// The host's work, what the GPU waits for it, and the speed of a host at which that changes.
std::string host_line(const StepPrediction& step) {
  const HostShare& host = step.host;
  std::string line = fmt::format("{} of work, the GPU waits {} for it ({})", duration(step.host_time),
                                 host.exposed < microseconds(0.1) ? "0 ms" : duration(host.exposed),
                                 percent(std::max(0.0, ratio(host.exposed, step.time))));
  if (host.tipping > 1.01 * host.scale)
    line += fmt::format("; host-bound on one {:.2g} times slower", host.tipping / host.scale);
  else if (host.tipping > 0.0) line += fmt::format("; GPU-bound on one {:.2g} times faster", host.scale / host.tipping);
  return line + (host.known ? "" : "; host not measured: the range is that of hosts seen");
}

/// Where latency hides and where it shows.
void write_latency(std::string& out, const ExposedLatency& l) {
  const auto part = [](Seconds t) { return t < microseconds(0.1) ? std::string("0 ms") : duration(t); };
  const bool exchanges = l.communication >= microseconds(0.1);
  write_wrapped(out, "  step time =   ",
                fmt::format("math {} + memory {} - both at once {} + neither {}{}", part(l.math), part(l.memory),
                            part(l.overlapped), part(l.latency()),
                            exchanges ? fmt::format(" + communication {}", part(l.communication)) : ""));
  write_wrapped(out, "  neither       ",
                fmt::format("{} in kernels, {} in gaps, {} waiting for the host (hidden: {})", part(l.in_kernels),
                            part(l.gaps), part(l.host_exposed), part(l.host_hidden)));
}

void write_memory(std::string& out, const MemoryPrediction& m) {
  auto to = std::back_inserter(out);
  write_wrapped(out, "  memory        ",
                fmt::format("{} allocated, {} reserved, {} in nvidia-smi; {} {}", gib(m.peak_allocated),
                            gib(m.peak_reserved), gib(m.device_used),
                            !m.runs  ? "DOES NOT FIT in"
                            : m.fits ? "fits in"
                                     : "MAY NOT FIT in",
                            gib(m.capacity)));
  if (m.runs && !m.fits)
    write_wrapped(out, "                ",
                  fmt::format("runs like this one took up to {} with the same software", gib(m.needed_high)));
  if (const auto& oom = m.out_of_memory) write_shortage(out, m, *oom);
  fmt::format_to(to, "  at the peak   ");
  std::size_t column = 16;
  const auto add = [&](std::string_view name, std::int64_t bytes) {
    if (bytes < (8 << 20)) return;
    const std::string text = fmt::format("{} {}", words(name), gib(bytes));
    if (column + text.size() + 2 > page_width()) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n                ";
      column = 16;
    }
    out += text + "   ";
    column += text.size() + 3;
  };
  for (std::size_t i = 0; i < kCategories; ++i) add(kCategoryNames[i], m.at_peak[i]);
  add("cached", m.cached_unused);
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
  if (!m.peak_op.empty())
    fmt::format_to(to, "                reached in {} of the {}{}\n", m.peak_op, phase_name(m.peak_phase),
                   m.peak_layer >= 0 ? fmt::format(", block {}", m.peak_layer) : "");
}

/// What each stage of a pipeline does and holds.
void write_stages(std::string& out, const ParallelPrediction& p) {
  write_wrapped(out, "  pipeline      ",
                fmt::format("a rank waits for others for {} a step on average", duration(p.bubble)));
  for (const RankClass& one : p.ranks)
    write_wrapped(
        out, "                ",
        fmt::format("{}: {} GPU{}, kernels {}, waits {}; {} allocated, {} reserved, {} used, {}", one.name, one.ranks,
                    one.ranks == 1 ? "" : "s", duration(one.busy), duration(one.bubble), gib(one.memory.peak_allocated),
                    gib(one.memory.peak_reserved), gib(one.memory.device_used), verdict(one.memory)));
}

/// Efficiency, and what the ranks exchange.
void write_parallel(std::string& out, const ParallelPrediction& p, Seconds held) {
  write_wrapped(out, "  GPUs          ",
                fmt::format("{}, each as fast as {} of one alone; communication {} exposed, {} hidden", p.gpus,
                            percent(p.efficiency), duration(p.exposed), duration(p.hidden)));
  for (const CommunicationUse& use : p.communication)
    write_wrapped(
        out, "                ",
        fmt::format("{} {} among {} ranks: {:.3g} GB in {} of kernels, {} exposed", use.count, words(name_of(use.kind)),
                    words(name_of(use.group)), static_cast<double>(use.bytes) * 1e-9, duration(use.time),
                    use.exposed < microseconds(0.1) ? "none" : duration(use.exposed)));
  if (p.board > 1.0 && held > Seconds{0})
    write_wrapped(out, "                ",
                  fmt::format("power: the slowest of {} boards is taken to need {:.1f} % more energy than most", p.gpus,
                              100.0 * (p.board - 1.0)));
  if (!p.limit.empty() && p.exposed > microseconds(1.0)) write_wrapped(out, "                ", p.limit);
  if (p.ranks.size() > 1) write_stages(out, p);
  if (p.ranks.empty()) return;
  std::int64_t least = p.ranks.front().communicator_bytes, most = least;
  for (const RankClass& one : p.ranks) {
    least = std::min(least, one.communicator_bytes);
    most = std::max(most, one.communicator_bytes);
  }
  write_wrapped(
      out, "  communicators ",
      fmt::format("{}{} of device memory, outside PyTorch's allocator{}", least < most ? gib(least) + " to " : "",
                  gib(most), p.ranks.size() == 1 ? fmt::format(" ({})", p.ranks.front().name) : ""));
}

void write_kernels(std::string& out, const Prediction& p) {
  auto to = std::back_inserter(out);
  // Names and shapes share what the numbers leave.
  const auto wide = static_cast<int>(page_width() - 44) / 2;
  fmt::format_to(to, "\n  {:>9} {:>6} {:>6}  {:<{}} {:<{}} {}\n", "time", "share", "count", "kernel", wide, "shape",
                 wide, "limited by");
  const std::size_t shown = std::min<std::size_t>(p.kernels.size(), 12);
  Seconds rest = p.step.gpu_busy;
  std::int64_t rest_count = p.step.kernel_count;
  for (std::size_t i = 0; i < shown; ++i) {
    const KernelGroup& k = p.kernels[i];
    rest -= k.time;
    rest_count -= k.count;
    fmt::format_to(to, "  {:>9} {:>6} {:>6}  {:<{}.{}} {:<{}.{}} {}\n", duration(k.time),
                   percent(ratio(k.time, p.step.time)), k.count, k.name, wide, wide, k.shape, wide, wide,
                   words(name_of(k.limiter)));
  }
  if (rest_count > 0)
    fmt::format_to(to, "  {:>9} {:>6} {:>6}  all others\n", duration(rest), percent(ratio(rest, p.step.time)),
                   rest_count);
  if (p.idle > Seconds{0})
    fmt::format_to(to, "  {:>9} {:>6}         GPU idle: gaps between kernels, waiting for the host\n", duration(p.idle),
                   percent(ratio(p.idle, p.step.time)));
}

/// The longest kernels of a simulated step.
void write_profiles(std::string& out, const Prediction& p) {
  std::vector<ProfiledKernel> kernels;
  for (const KernelGroup& k : p.kernels)
    if (k.profile && kernels.size() < 8) kernels.push_back({k.name, k.count, k.time, *k.profile});
  out += profile_tables(kernels);
}

void write_measured(std::string& out, const Scenario& s, const Prediction& p) {
  const MeasuredBeside& m = s.measured;
  if (m.source.empty()) return;
  auto to = std::back_inserter(out);
  out += "\n  measured      ";
  const auto compare = [&](const std::string& text, double predicted, double measured) {
    fmt::format_to(to, "{} (predicted {:+.1f} %)   ", text, 100.0 * (predicted / measured - 1.0));
  };
  if (m.step_time) compare(duration(*m.step_time), p.step.time.value(), m.step_time->value());
  if (m.samples_per_s)
    compare(fmt::format("{} samples/s", four_digits(*m.samples_per_s)), p.step.samples_per_s, *m.samples_per_s);
  const auto memory = [&](const char* what, const std::optional<Bytes>& value, std::int64_t predicted) {
    if (!value) return;
    out += "\n                ";
    compare(fmt::format("{} {}", gib(static_cast<std::int64_t>(value->value())), what), static_cast<double>(predicted),
            value->value());
  };
  memory("allocated", m.peak_allocated, p.memory.peak_allocated);
  memory("reserved", m.peak_reserved, p.memory.peak_reserved);
  memory("in use", m.device_used, p.memory.device_used);
  out += '\n';
  write_wrapped(out, "                ", m.source);
}

}  // namespace

std::string advice_text(const Prediction& p) {
  std::string out;
  if (p.advice.empty()) return out;
  out += "\n  what would help\n";
  for (const Advice& a : p.advice) {
    write_wrapped(out,
                  fmt::format("  {:>9} {:>11}  ", signed_duration(-a.time_saved),
                              fmt::format("{:+.2f} GiB", static_cast<double>(-a.memory_saved_bytes) / kGiB)),
                  as_sets({&a.change, 1}));
    write_wrapped(out, fmt::format("  {:21}  ", ""), a.why);
  }
  return out;
}

std::string prediction_text(const Scenario& s, const Prediction& p, Notes notes) {
  std::string out;
  auto to = std::back_inserter(out);
  out += p.scenario + assumed_words(s) + "\n";
  write_wrapped(out, "", verdict_line(p.memory));
  write_wrapped(
      out, "",
      fmt::format("{}: {} · {} engine · {}", s.gpu.name, training_line(s.training), p.engine, s.software.name));
  out += "\n";
  write_wrapped(out, "  step time     ",
                fmt::format("{} ({} to {}{}){}   {} samples/s{}", duration(p.step.time), duration(p.step.low),
                            duration(p.step.high), p.step.validated ? "" : ", estimated",
                            p.memory.runs ? "" : " if it had the memory", four_digits(p.step.samples_per_s),
                            p.step.tokens_per_s > p.step.samples_per_s
                                ? fmt::format("   {} tokens/s", four_digits(p.step.tokens_per_s))
                                : ""));
  write_wrapped(out, "  limited by    ", limiting(p));
  write_wrapped(out, "  phases        ",
                shares(
                    p.time_by_phase, [](std::size_t i) { return phase_name(static_cast<Phase>(i)); }, p.step.time));
  if (const std::string modules = module_line(p.modules); !modules.empty())
    write_wrapped(out, "  modules       ", modules);
  write_wrapped(out, "  kernels of    ",
                shares(
                    p.time_by_class, [](std::size_t i) { return words(kTimeClassNames[i]); }, p.step.time));
  fmt::format_to(to, "  GPU           {} kernels, busy {} ({}), MFU {}\n", p.step.kernel_count,
                 duration(p.step.gpu_busy), percent(p.step.kernel_active_fraction), percent(p.step.mfu));
  write_wrapped(out, "  host          ", host_line(p.step));
  const Utilization& u = p.step.utilization;
  write_wrapped(out, "  utilisation   ",
                fmt::format("kernels active {}, SMs with work {}, tensor cores {}, DRAM {}", percent(u.kernel_active),
                            percent(u.sm), percent(u.tensor), percent(u.dram)));
  if (p.step.held > 0.001 * p.step.time)
    fmt::format_to(to, "  clock         {} MHz, limited by power: {} W cost {}\n",
                   thousands(p.step.clock.value() * 1e-6), s.gpu.power.limit.value(), duration(p.step.held));
  write_latency(out, p.step.latency);
  write_wrapped(out, "  energy        ",
                fmt::format("{:.3g} J ({:.3g} J to {:.3g} J), {:.0f} W on average; {:.3g} J a sample",
                            p.step.energy.energy.value(), p.step.energy.low.value(), p.step.energy.high.value(),
                            p.step.power.value(), p.step.power.value() * boards_of_step(s) / p.step.samples_per_s));
  if (p.generation)
    write_wrapped(out, "  generation    ",
                  fmt::format("{} to the first token, {} for each after it; {} of keys and values at the end",
                              duration(p.generation->first_token), duration(p.generation->per_token),
                              gib(p.generation->cache_bytes)));
  if (p.parallel) write_parallel(out, *p.parallel, p.step.held);
  write_memory(out, p.memory);
  write_kernels(out, p);
  write_profiles(out, p);
  write_measured(out, s, p);
  if (p.sensitivity) out += sensitivity_table(*p.sensitivity);
  out += advice_text(p);
  return out + notes_text(p, nullptr, notes);
}

std::string prediction_table(std::string_view title, std::span<const Prediction> predictions,
                             std::span<const double> prices_per_hour) {
  // A narrow page has no room for ranges, nor a table with prices for the allocator's part of the memory.
  constexpr std::size_t kWithAll = 96;
  const bool narrow = page_width() < kWithAll, priced = !prices_per_hour.empty();
  const auto row = [&](const std::array<std::string, 10>& c) {
    std::string line = fmt::format("{:<19} {:>7}", c[0], c[1]);
    if (!narrow || !priced) line += fmt::format(" {:>15}", c[2]);
    line += fmt::format(" {:>8}", c[3]);
    if (!narrow && !priced) line += fmt::format(" {:>6} {:>6}", c[4], c[5]);
    line += fmt::format(" {:>6}", c[6]);
    if (priced) line += fmt::format(" {:>7}", c[7]);
    return line + fmt::format("  {:<4} {}\n", c[8], c[9]);
  };
  const bool tokens = !predictions.empty() && predictions.front().step.tokens_per_s > 0.0;
  const char* of_what = priced && tokens ? "tokens" : "samples";
  std::string out(title);
  out += "\n" + row({"", "step", "range", of_what, "alloc", "reserv", priced ? "needs" : "in use", "USD / M", "", ""});
  out += row({"GPU", "ms", "ms", "per s", "GiB", "GiB", "GiB", of_what, "fits", "limited by"});
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    const auto ms = [](Seconds t) { return in_milliseconds(t); };
    std::string reason = limiting(p);
    if (const auto comma = reason.find(','); comma != std::string::npos) reason.resize(comma);
    std::string name = p.hardware;
    if (name.starts_with("nvidia-")) name = name.substr(7);
    const bool memory = p.memory.source != MemorySource::unknown;
    const auto gib_or_none = [&](std::int64_t b) {
      return memory ? fmt::format("{:.2f}", static_cast<double>(b) / kGiB) : "-";
    };
    const double rate = priced && tokens ? p.step.tokens_per_s : p.step.samples_per_s;
    constexpr double kMillion = 1e6, kHour = 3600.0;
    const bool has_price = priced && p.memory.runs && rate > 0.0 && prices_per_hour[i] > 0.0;
    out += row({name, fmt::format("{:.4g}", ms(p.step.time)),
                fmt::format("{:.4g} - {:.4g}", ms(p.step.low), ms(p.step.high)), rate > 0 ? four_digits(rate) : "-",
                gib_or_none(p.memory.peak_allocated), gib_or_none(p.memory.peak_reserved),
                gib_or_none(priced ? p.memory.needed : p.memory.device_used),
                has_price ? fmt::format("{:.3g}", prices_per_hour[i] / kHour / rate * kMillion) : "-",
                !memory          ? "-"
                : !p.memory.runs ? "NO"
                : p.memory.fits  ? "yes"
                                 : "?",
                reason});
  }
  return out;
}

}  // namespace ridgeline
