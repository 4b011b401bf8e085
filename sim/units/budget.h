// The budget of a question: seconds, bytes of the process, and who may stop the work.
//
// Whoever asks makes a Budget and an UnderBudget, which holds for the calls of its thread; work that goes to other
// threads takes the budget along (with_same_budget). Every loop whose length a question decides calls keep_budget(),
// which names what grows and throws once the budget is spent or the question is stopped. Without a budget the call
// costs a comparison. Tested by tests/units/budget_test.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
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
/// points failed must not go on with the next one.
struct OverBudget : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BudgetLimits {
  std::int64_t memory = 0;  ///< bytes by which the process may grow; 0: any number
  /// Bytes that a process of several questions may hold: beyond them those end that grew by a quarter of `memory`.
  std::int64_t process = 0;
  std::chrono::seconds time{0};  ///< from the question on; 0: any time
};

/// Bytes that RIDGELINE_MEMORY_BUDGET allows ("4 GiB"); where it is not set kMemoryBudget, and kMemoryOfAThread for
/// each core above eight. Throws UserError for a value that is no number of bytes.
std::int64_t memory_budget();
inline constexpr std::int64_t kMemoryBudget = 1'300'000'000, kMemoryOfAThread = 100'000'000;
/// Steps of the largest shipped models take so many times as much where their kernels are simulated.
inline constexpr std::int64_t kMoreToSimulate = 2;

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

 private:
  void check_memory(const char* what, std::int64_t further = 0) const;

  BudgetLimits limits_;
  std::stop_token stop_;
  const std::atomic<bool>* flag_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t held_at_begin_ = 0;
  mutable std::atomic<std::int64_t> next_look_{0};  ///< at the memory, nanoseconds after the begin
};

/// Gives freed memory back to the system, which the allocator keeps by the hundred MiB.
void give_memory_back();

namespace budget_detail {
inline constinit thread_local const Budget* current = nullptr;
inline constinit thread_local unsigned calls = 0;
}  // namespace budget_detail

/// Makes a budget that of the thread as long as it lives; null: none.
class UnderBudget {
 public:
  explicit UnderBudget(const Budget* budget) : before_(std::exchange(budget_detail::current, budget)) {}
  ~UnderBudget() { budget_detail::current = before_; }
  UnderBudget(const UnderBudget&) = delete;
  UnderBudget& operator=(const UnderBudget&) = delete;

 private:
  const Budget* before_;
};

/// Of rounds that take more than some microseconds each.
inline void keep_budget(const char* what) {
  if (budget_detail::current != nullptr) budget_detail::current->check(what);
}
/// Of rounds that take less: every 256th call of the thread looks.
inline void keep_budget_often(const char* what) {
  if (budget_detail::current != nullptr && (++budget_detail::calls & 255u) == 0) budget_detail::current->check(what);
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
