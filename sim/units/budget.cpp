#include "sim/units/budget.h"

#include <fmt/format.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr const char* kVariable = "RIDGELINE_MEMORY_BUDGET";
constexpr std::chrono::nanoseconds kBetweenLooks = std::chrono::milliseconds(5);  // reading the number takes 5 us

/// Resident bytes of the process; 0 where the system does not say.
std::int64_t held_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), &std::fclose);
  long long whole = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &whole, &resident) != 2) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

std::int64_t memory_budget() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr || *given == '\0') {
    const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
    return kMemoryBudget + kMemoryOfAThread * std::max<std::int64_t>(0, cores - 8);
  }
  const std::optional<Measure> measure = parse_measure(given);
  if (!measure || measure->dimension != Dimension::bytes || measure->value < 1.0 || measure->value > 1e18)
    throw UserError(fmt::format("{}: expected bytes with a unit, as in 4 GiB, got '{}'", kVariable, given));
  return static_cast<std::int64_t>(measure->value);
}

Budget::Budget(const BudgetLimits& limits, std::stop_token stop, const std::atomic<bool>* flag)
    : limits_(limits), stop_(std::move(stop)), flag_(flag), begin_(std::chrono::steady_clock::now()) {
  if (limits_.memory > 0) held_at_begin_ = held_bytes();
}

void Budget::check(const char* what) const {
  if (stopped()) throw Cancelled();
  if (limits_.memory == 0 && limits_.time.count() == 0) return;
  const std::chrono::nanoseconds run = std::chrono::steady_clock::now() - begin_;
  if (limits_.time.count() > 0 && run > limits_.time)
    throw OverBudget(fmt::format("{} takes longer than {} s, the time of one question", what, limits_.time.count()));
  if (limits_.memory == 0) return;
  std::int64_t due = next_look_.load(std::memory_order_relaxed);
  if (run.count() < due || !next_look_.compare_exchange_strong(due, (run + kBetweenLooks).count())) return;
  check_memory(what);
}

std::int64_t Budget::grown() const { return limits_.memory == 0 ? 0 : held_bytes() - held_at_begin_; }

void Budget::check_growth(const char* what, std::int64_t bytes) const {
  if (stopped()) throw Cancelled();
  if (limits_.memory > 0) check_memory(what, bytes);
}

void Budget::check_memory(const char* what, std::int64_t further) const {
  const std::int64_t held = held_bytes() + further, more = held - held_at_begin_;
  const bool crowded = limits_.process > 0 && held > limits_.process && more > limits_.memory / 4;
  if (more <= limits_.memory && !crowded) return;
  next_look_ = 0;  // whoever looks next sees the same
  const Bytes allowed{static_cast<double>(crowded ? more : limits_.memory)};
  throw OverBudget(fmt::format("{} takes more than {}{} of memory; {} allows more", what, crowded ? "the last " : "",
                               to_string(allowed), kVariable));
}

void give_memory_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace ridgeline
