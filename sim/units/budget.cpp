#include "sim/units/budget.h"

#include <fmt/format.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr const char* kVariable = "RIDGELINE_MEMORY_BUDGET";
constexpr std::int64_t kKept = 100'000'000;  // bytes beyond its blocks that are worth asking the allocator for
constexpr std::chrono::nanoseconds kBetweenLooks = std::chrono::milliseconds(5);  // reading the number takes 5 us

/// Resident bytes of the process; 0 where the system does not say.
std::int64_t held_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), &std::fclose);
  long long whole = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &whole, &resident) != 2) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t nanoseconds_of(clockid_t clock) {
  std::timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::int64_t memory_budget() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr || *given == '\0') return kMemoryBudget;
  const std::optional<Measure> measure = parse_measure(given);
  if (!measure || measure->dimension != Dimension::bytes || measure->value < 1.0 || measure->value > 1e18)
    throw UserError(fmt::format("{}: expected bytes with a unit, as in 4 GiB, got '{}'", kVariable, given));
  return static_cast<std::int64_t>(measure->value);
}

Budget::Budget(const BudgetLimits& limits, std::stop_token stop, const std::atomic<bool>* flag)
    : limits_(limits), stop_(std::move(stop)), flag_(flag), begin_(std::chrono::steady_clock::now()) {
  if (limits_.memory <= 0) return;
  held_at_begin_ = held_bytes();
  blocks_at_begin_ = bytes_of_blocks;
}

void Budget::check(const char* what) const {
  if (stopped()) throw Cancelled();
  if (limits_.memory == 0 && limits_.time.count() == 0) return;
  const std::chrono::nanoseconds run = std::chrono::steady_clock::now() - begin_;
  if (limits_.time.count() > 0) check_time(what, run);
  if (limits_.memory == 0) return;
  check_blocks(what);
  std::int64_t due = next_look_.load(std::memory_order_relaxed);
  if (run.count() < due || !next_look_.compare_exchange_strong(due, (run + kBetweenLooks).count())) return;
  std::int64_t held = held_bytes();
  // Freed blocks that the allocator keeps are no reason to end a question.
  const bool full = held - held_at_begin_ > limits_.memory || (limits_.process > 0 && held > limits_.process);
  if (full && bytes_of_blocks > 0 && held > bytes_of_blocks + kKept) {
    give_memory_back();
    held = held_bytes();
  }
  check_memory(what, held, held - held_at_begin_);
}

void Budget::check_time(const char* what, std::chrono::nanoseconds run) const {
  if (run > limits_.time)
    throw OverBudget(fmt::format("{} takes longer than {} s, the time of one question", what, limits_.time.count()));
  const std::int64_t now = (begin_ + run).time_since_epoch().count();
  if (now < budget_detail::next_count) return;
  budget_detail::next_count = now + kBetweenLooks.count();
  count_processor_time();
  if (processor_time() > limits_.time)
    throw OverBudget(
        fmt::format("{} takes more than {} s of processors, the time of one question", what, limits_.time.count()));
}

void Budget::count_processor_time() const {
  if (limits_.time.count() == 0) return;
  const std::int64_t now = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID);
  processor_time_ += now - std::exchange(budget_detail::counted_until, now);
}

std::int64_t Budget::grown() const {
  if (limits_.memory == 0) return 0;
  return std::max(held_bytes() - held_at_begin_, bytes_of_blocks - blocks_at_begin_);
}

void Budget::check_growth(const char* what, std::int64_t bytes) const {
  if (stopped()) throw Cancelled();
  if (limits_.memory == 0) return;
  const std::int64_t held = held_bytes() + bytes;
  check_memory(what, held, held - held_at_begin_);
}

void Budget::check_blocks(const char* what) const {
  if (limits_.memory == 0) return;
  const std::int64_t blocks = bytes_of_blocks.load(std::memory_order_relaxed);
  check_memory(what, blocks, blocks - blocks_at_begin_);
}

void Budget::check_memory(const char* what, std::int64_t held, std::int64_t more) const {
  slots_.saw(more);
  const bool crowded = limits_.process > 0 && held > limits_.process && more > limits_.memory / 4;
  if (more <= limits_.memory && !crowded) return;
  next_look_ = 0;  // whoever looks next sees the same
  const Bytes allowed{static_cast<double>(crowded ? more : limits_.memory)};
  throw OverBudget(fmt::format("{} takes more than {}{} of memory; {} allows more", what, crowded ? "the last " : "",
                               to_string(allowed), kVariable));
}

UnderBudget::UnderBudget(const Budget* budget) : before_(budget_detail::current) {
  if (before_ != nullptr) before_->count_processor_time();
  if (budget != nullptr && budget->limits().time.count() > 0)
    budget_detail::counted_until = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID);
  budget_detail::current = budget;
}

UnderBudget::~UnderBudget() {
  if (budget_detail::current != nullptr) budget_detail::current->count_processor_time();
  budget_detail::current = before_;
  if (before_ != nullptr && before_->limits().time.count() > 0)
    budget_detail::counted_until = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void EvaluationSlots::saw(std::int64_t grown) {
  std::int64_t before = peak_.load(std::memory_order_relaxed);
  while (grown > before && !peak_.compare_exchange_weak(before, grown, std::memory_order_relaxed)) continue;
}

std::uint64_t EvaluationSlots::enter(const Budget& budget, bool alone) {
  constexpr std::chrono::milliseconds kBetweenChecks{10};
  const std::int64_t memory = budget.limits().memory;
  std::unique_lock lock(mutex_);
  if (of_one_ < 0) of_one_ = memory / 4;
  const auto has_room = [&] {
    if (running_ > 0) {
      const bool somebody_waits_alone = alone || alone_ || waiting_alone_ > 0;
      return !somebody_waits_alone && base_ + (running_ + 1) * of_one_ <= memory - memory / 8;
    }
    // Points of a sweep are begun every 20 us: the number may be some ms old.
    if (const auto now = std::chrono::steady_clock::now(); now >= next_base_) {
      base_ = budget.grown();
      next_base_ = now + kBetweenLooks;
    }
    peak_ = base_;
    return true;
  };
  while (!has_room()) {
    ++waiting_;
    waiting_alone_ += alone ? 1 : 0;
    left_.wait_for(lock, kBetweenChecks);
    waiting_alone_ -= alone ? 1 : 0;
    --waiting_;
    budget.check("the evaluation of steps");
  }
  alone_ = alone;
  if (++running_ > 1) last_beside_ = begun_ + 1;
  return ++begun_;
}

void EvaluationSlots::leave() {
  const std::lock_guard lock(mutex_);
  // Those that run beside each other are not at their largest at the same moment.
  const std::int64_t seen = (running_ > 1 ? 2 : 1) * (peak_ - base_) / running_;
  of_one_ = std::max(seen, of_one_ / 2);
  --running_;
  alone_ = false;
  if (waiting_ > 0) left_.notify_all();
}

bool EvaluationSlots::ran_beside(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return last_beside_ >= number;
}

EvaluationSlot::EvaluationSlot(bool alone) {
  const Budget* budget = budget_detail::current;
  if (budget != nullptr && budget->limits().memory > 0 && budget_detail::evaluations == 0) {
    number_ = budget->slots_.enter(*budget, alone);
    budget_ = budget;
  }
  ++budget_detail::evaluations;
}

bool EvaluationSlot::ran_beside_others() const { return budget_ != nullptr && budget_->slots_.ran_beside(number_); }

EvaluationSlot::~EvaluationSlot() {
  --budget_detail::evaluations;
  if (budget_ != nullptr) budget_->slots_.leave();
}

void give_memory_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace ridgeline
