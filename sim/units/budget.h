// The budget of a question: seconds, bytes of the process, and who may stop the work.
//
// Whoever asks makes a Budget and an UnderBudget, which holds for the calls of its thread; work that goes to other
// threads takes the budget along (with_same_budget; tools/check_threads.py finds work that does not). Every loop whose
// length a question decides calls keep_budget(), which names what grows and throws once the budget is spent or the
// question is stopped. Without a budget the call costs a comparison. A program that links sim/app/counted_memory.cpp
// counts its blocks exactly, and refuses a large one before it is made. Tested by tests/units/budget_test.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

namespace ridgeline {

/// Thrown to whoever waits for a question that was stopped.
struct Cancelled : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

/// Thrown where a budget is spent: one sentence that says what grew. No UserError: studies that note why one of their
/// points failed must not go on with the next one. A bad_alloc, because operator new throws it too.
class OverBudget : public std::bad_alloc {
 public:
  explicit OverBudget(const std::string& message) : message_(message) {}
  [[nodiscard]] const char* what() const noexcept override { return message_.what(); }

 private:
  std::runtime_error message_;  // copies of it do not throw
};

struct BudgetLimits {
  std::int64_t memory = 0;  ///< bytes by which the process may grow; 0: any number
  /// Bytes that a process of several questions may hold: beyond them those end that grew by a quarter of `memory`.
  std::int64_t process = 0;
  std::chrono::seconds time{0};  ///< by the clock and of all the question's threads together; 0: any time
};

/// Bytes that RIDGELINE_MEMORY_BUDGET allows ("4 GiB"); where it is not set kMemoryBudget. Throws UserError for a value
/// that is no number of bytes.
std::int64_t memory_budget();
inline constexpr std::int64_t kMemoryBudget = 1'300'000'000;

/// Bytes of the process's blocks, counted by operator new and delete of sim/app/counted_memory.cpp; 0 without them.
inline constinit std::atomic<std::int64_t> bytes_of_blocks{0};

class Budget;

/// Evaluations that run at once under one budget: as many as its memory is expected to hold, one at least.
class EvaluationSlots {
 public:
  /// Returns the number of the evaluation. `alone`: no other runs until it leaves.
  std::uint64_t enter(const Budget& budget, bool alone);
  void leave();
  void saw(std::int64_t grown);
  /// True if another evaluation ran at some moment since `number` began.
  bool ran_beside(std::uint64_t number);

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  int running_ = 0, waiting_ = 0, waiting_alone_ = 0;
  bool alone_ = false;                         ///< the one that runs shall be
  std::uint64_t begun_ = 0, last_beside_ = 0;  ///< number of the latest one, and of the latest beside others
  std::chrono::steady_clock::time_point next_base_{};
  std::int64_t base_ = 0;              ///< by how much the process had grown when none ran
  std::int64_t of_one_ = -1;           ///< bytes that an evaluation is expected to take; negative: none has begun
  std::atomic<std::int64_t> peak_{0};  ///< of the process's growth since
};

class Budget {
 public:
  /// `stop` and `flag`: either one stops the question. `flag` may be null, else it must outlive the budget.
  explicit Budget(const BudgetLimits& limits, std::stop_token stop = {}, const std::atomic<bool>* flag = nullptr);

  [[nodiscard]] bool stopped() const {
    return stop_.stop_requested() || (flag_ != nullptr && flag_->load(std::memory_order_relaxed));
  }
  /// By how much the process has grown since; 0 where no memory is limited.
  [[nodiscard]] std::int64_t grown() const;
  /// Throws Cancelled where the question is stopped and OverBudget where a limit is passed. `what`: "listing the
  /// configurations of a plan".
  void check(const char* what) const;
  /// Throws as check() would once the process has grown by `bytes` more.
  void check_growth(const char* what, std::int64_t bytes) const;
  /// Throws where the blocks that were counted pass a limit of memory: the block that is about to be made among them.
  void check_blocks(const char* what) const;
  /// Adds the processor time of this thread since it came under a budget, or since this call before.
  void count_processor_time() const;
  /// Processor time of all threads, as far as it was counted.
  [[nodiscard]] std::chrono::nanoseconds processor_time() const { return std::chrono::nanoseconds(processor_time_); }
  [[nodiscard]] const BudgetLimits& limits() const { return limits_; }

 private:
  friend class EvaluationSlot;
  void check_time(const char* what, std::chrono::nanoseconds run) const;
  void check_memory(const char* what, std::int64_t held, std::int64_t more) const;

  BudgetLimits limits_;
  std::stop_token stop_;
  const std::atomic<bool>* flag_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t held_at_begin_ = 0, blocks_at_begin_ = 0;
  mutable std::atomic<std::int64_t> next_look_{0};       ///< at the memory, nanoseconds after the begin
  mutable std::atomic<std::int64_t> processor_time_{0};  ///< nanoseconds, of all threads
  mutable EvaluationSlots slots_;
};

/// Gives freed memory back to the system, which the allocator keeps by the hundred MiB.
void give_memory_back();

namespace budget_detail {
inline constinit thread_local const Budget* current = nullptr;
inline constinit thread_local const char* doing = "the question";  ///< what keep_budget() named last
inline constinit thread_local unsigned calls = 0;
inline constinit thread_local int evaluations = 0;             ///< this thread is in, one in the other
inline constinit thread_local std::int64_t counted_until = 0;  ///< processor time of the thread, nanoseconds
inline constinit thread_local std::int64_t next_count = 0;     ///< of processor time, by the clock
}  // namespace budget_detail

/// Makes a budget that of the thread as long as it lives; null: none.
class UnderBudget {
 public:
  explicit UnderBudget(const Budget* budget);
  ~UnderBudget();
  UnderBudget(const UnderBudget&) = delete;
  UnderBudget& operator=(const UnderBudget&) = delete;

 private:
  const Budget* before_;
};

/// The place of an evaluation while it runs: it begins once the budget expects room for it. Evaluations inside it wait
/// for nothing.
class EvaluationSlot {
 public:
  explicit EvaluationSlot(bool alone = false);
  ~EvaluationSlot();
  EvaluationSlot(const EvaluationSlot&) = delete;
  EvaluationSlot& operator=(const EvaluationSlot&) = delete;
  [[nodiscard]] bool ran_beside_others() const;

 private:
  const Budget* budget_ = nullptr;
  std::uint64_t number_ = 0;
};

/// What `call` returns, which evaluates a whole step, one of several at once, and may be called twice: an evaluation
/// that finds no memory beside others is made again alone.
template <class Call>
auto evaluated(const Call& call) {
  {
    const EvaluationSlot slot;
    try {
      return call();
    } catch (const OverBudget&) {
      if (!slot.ran_beside_others()) throw;
    }
  }
  const EvaluationSlot alone(true);
  return call();
}

/// Of rounds that take more than some microseconds each.
inline void keep_budget(const char* what) {
  if (budget_detail::current == nullptr) return;
  budget_detail::doing = what;
  budget_detail::current->check(what);
}
/// Of rounds that take less: every 256th call of the thread looks.
inline void keep_budget_often(const char* what) {
  if (budget_detail::current != nullptr && (++budget_detail::calls & 255u) == 0) keep_budget(what);
}
/// Before a list of `bytes` is made, which would pass a limit of memory before the next look.
inline void keep_budget_for(std::size_t bytes, const char* what) {
  constexpr std::size_t kSmall = std::size_t{16} << 20;
  if (bytes > kSmall && budget_detail::current != nullptr)
    budget_detail::current->check_growth(what, static_cast<std::int64_t>(bytes));
}
/// Before a further element of `list`, which doubles where it is full.
template <class List>
void keep_budget_to_grow(const List& list, const char* what) {
  if (list.size() == list.capacity()) keep_budget_for(2 * list.size() * sizeof(typename List::value_type), what);
}
/// Whether the question of this thread was stopped.
inline bool is_stopped() { return budget_detail::current != nullptr && budget_detail::current->stopped(); }

/// `call` for another thread, under the budget of this one, which must outlive it.
template <class Call>
auto with_same_budget(Call call) {
  return [budget = budget_detail::current, call = std::move(call)](auto&&... arguments) -> decltype(auto) {
    const UnderBudget under(budget);
    return call(std::forward<decltype(arguments)>(arguments)...);
  };
}

}  // namespace ridgeline
