#include "sim/report/text/comparison_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

/// A change smaller than this is not worth a word.
constexpr double kNoticeable = 0.02;
constexpr std::size_t kMostPhrases = 3;

bool differs(double a, double b) { return std::abs(b - a) > kNoticeable * std::max(std::abs(a), std::abs(b)); }

std::string more_or_less(double difference) { return difference > 0 ? "more" : "less"; }

/// "12 % less", "3.1 times as much".
std::string change_of(double a, double b) {
  if (a > 0 && b > 2 * a) return fmt::format("{:.1f} times as much", b / a);
  return fmt::format("{:.0f} % {}", 100.0 * std::abs(b / a - 1.0), more_or_less(b - a));
}

std::string gigabytes(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.3g} GB", bytes / 1e9) : fmt::format("{:.3g} MB", bytes / 1e6);
}

/// "1 kernel", "12 kernels".
std::string kernels_words(std::int64_t count) { return fmt::format("{} kernel{}", count, count == 1 ? "" : "s"); }

/// Up to three ops that one side runs and the other does not, those with most kernels first.
std::string only_in(const ClassWork& work, const ClassWork& other) {
  std::vector<std::pair<std::int64_t, std::string>> ops;
  for (const auto& [op, count] : work.ops)
    if (!op.empty() && !other.ops.contains(op)) ops.emplace_back(-count, op);
  std::sort(ops.begin(), ops.end());
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(ops.size(), 3); ++i)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", ops[i].second);
  return ops.size() > 3 ? out + " …" : out;
}

std::vector<std::string> work_phrases(const ClassWork& a, const ClassWork& b) {
  std::vector<std::string> out;
  if (a.score_bytes > 0 && b.score_bytes == 0)
    out.push_back(fmt::format("no longer writes the score matrix ({} a step)", gigabytes(a.score_bytes)));
  else if (a.score_bytes == 0 && b.score_bytes > 0)
    out.push_back(fmt::format("writes the score matrix ({} a step)", gigabytes(b.score_bytes)));
  const std::string gone = only_in(a, b), come = only_in(b, a);
  if (!gone.empty() && !come.empty()) out.push_back(fmt::format("{} in place of {}", come, gone));
  else if (!come.empty()) out.push_back(fmt::format("runs {} besides", come));
  else if (!gone.empty()) out.push_back(fmt::format("no more {}", gone));
  if (a.flops > 0 && differs(a.flops, b.flops))
    out.push_back(fmt::format("{} arithmetic", change_of(a.flops, b.flops)));
  if (differs(a.bytes, b.bytes) && a.bytes > 0)
    out.push_back(b.bytes > 2 * a.bytes ? fmt::format("moves {} ({})", change_of(a.bytes, b.bytes), gigabytes(b.bytes))
                                        : fmt::format("moves {} {} ({})", gigabytes(std::abs(b.bytes - a.bytes)),
                                                      more_or_less(b.bytes - a.bytes), change_of(a.bytes, b.bytes)));
  if (a.kernels != b.kernels)
    out.push_back(
        fmt::format("{} {}", kernels_words(std::abs(b.kernels - a.kernels)), b.kernels > a.kernels ? "more" : "fewer"));
  return out;
}

std::vector<std::string> rate_phrases(const ClassWork& a, const ClassWork& b) {
  std::vector<std::string> out;
  const double share_a = a.flops > 0 ? a.tensor_flops / a.flops : 0,
               share_b = b.flops > 0 ? b.tensor_flops / b.flops : 0;
  if (share_a < 0.5 && share_b > 0.5) out.push_back("on tensor cores");
  if (share_a > 0.5 && share_b < 0.5) out.push_back("on CUDA cores, no longer on tensor cores");
  const Limiter limiter = (a.time >= b.time ? a : b).limiter();
  const double ta = a.time.value(), tb = b.time.value();
  if (limiter == Limiter::compute || limiter == Limiter::shared_memory || limiter == Limiter::power) {
    if (a.flops > 0 && differs(a.flops / ta, b.flops / tb))
      out.push_back(fmt::format("{} instead of {}", to_string(FlopsPerSecond{b.flops / tb}),
                                to_string(FlopsPerSecond{a.flops / ta})));
  } else if (limiter == Limiter::dram || limiter == Limiter::l2) {
    const bool dram = limiter == Limiter::dram;
    const double rate_a = (dram ? a.dram_bytes : a.bytes) / ta, rate_b = (dram ? b.dram_bytes : b.bytes) / tb;
    if (rate_a > 0 && differs(rate_a, rate_b))
      out.push_back(fmt::format("{} {} instead of {}", to_string(BytesPerSecond{rate_b}),
                                dram ? "of DRAM" : "of memory", to_string(BytesPerSecond{rate_a})));
  } else {  // there are kernels on both sides
    const Seconds each_a = a.time / static_cast<double>(a.kernels), each_b = b.time / static_cast<double>(b.kernels);
    if (differs(each_a.value(), each_b.value()))
      out.push_back(fmt::format("{} a kernel instead of {}", to_string(each_b), to_string(each_a)));
  }
  if (a.limiter() != b.limiter())
    out.push_back(
        fmt::format("limited by {}, no longer by {}", words(name_of(b.limiter())), words(name_of(a.limiter()))));
  return out;
}

std::string joined(std::vector<std::string> first, const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  std::string out;
  for (std::size_t i = 0; i < std::min(first.size(), kMostPhrases); ++i) out += (i > 0 ? "; " : "") + first[i];
  return out;
}

std::string waiting_reason(const ComparedScenario& before, const ComparedScenario& after) {
  const StepPrediction &a = before.prediction.step, &b = after.prediction.step;
  std::vector<std::string> out;
  if (after.scenario().cuda_graphs && !before.scenario().cuda_graphs) out.emplace_back("the step is one CUDA graph");
  if (before.scenario().cuda_graphs && !after.scenario().cuda_graphs)
    out.emplace_back("no CUDA graph: every kernel is launched");
  const bool waits_a = a.host_time > a.gpu_busy, waits_b = b.host_time > b.gpu_busy;
  if (waits_b)
    out.push_back(fmt::format("the host needs {} for {} of kernels", to_string(b.host_time), to_string(b.gpu_busy)));
  else if (waits_a)
    out.push_back(
        fmt::format("the host keeps ahead: {} for {} of kernels", to_string(b.host_time), to_string(b.gpu_busy)));
  if (a.kernel_count != b.kernel_count)
    out.push_back(fmt::format("{} kernels to launch instead of {}", b.kernel_count, a.kernel_count));
  return joined(out, {});
}

}  // namespace

std::string reason_for(const ClassDifference& d, const ComparedScenario& before, const ComparedScenario& after) {
  if (!d.kernel_class) return waiting_reason(before, after);
  if (d.after.kernels == 0) return "none any more";
  if (d.before.kernels == 0) return fmt::format("{}: {}", kernels_words(d.after.kernels), only_in(d.after, d.before));
  const auto work = work_phrases(d.before, d.after), rate = rate_phrases(d.before, d.after);
  const bool work_first = std::abs(d.from_work.value()) >= std::abs(d.from_rate.value());
  return work_first ? joined(work, rate) : joined(rate, work);
}

std::string class_words(const ClassDifference& d) {
  if (!d.kernel_class) return "GPU waits";
  if (*d.kernel_class == KernelClass::elementwise) return "element-wise, sums";
  if (*d.kernel_class == KernelClass::optimizer) return "optimizer, clipping";
  return words(name_of(*d.kernel_class));
}

}  // namespace ridgeline
