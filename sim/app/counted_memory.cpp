// operator new and delete of the program: malloc, whose blocks are counted in bytes_of_blocks.
//
// A large block is counted, and refused where it would exceed the budget of its thread, before it is made: threads that
// make their lists at the same moment cannot exceed a budget together, and no list has to announce itself. Small blocks
// are counted by the hundred KiB, and end the question at its next look. Nothing is refused while an exception unwinds:
// destructors of JSON make lists. Sanitizers bring their own operator new.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RIDGELINE_SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(RIDGELINE_SANITIZED) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#include <malloc.h>

#include "sim/units/budget.h"

namespace {

constexpr std::size_t kLargeBlock = std::size_t{16} << 20;
constexpr std::int64_t kCountedTogether = 1 << 18;

/// Bytes of small blocks that a thread made (and freed: negative) and did not add to bytes_of_blocks yet.
constinit thread_local std::int64_t uncounted = 0;
constinit thread_local bool adds_at_exit = false;

void add_uncounted() {
  ridgeline::bytes_of_blocks.fetch_add(uncounted, std::memory_order_relaxed);
  uncounted = 0;
}

struct AddsAtExit {
  ~AddsAtExit() { add_uncounted(); }
};

void begin_thread() {
  adds_at_exit = true;
  static thread_local const AddsAtExit adds;
}

void count_small(std::int64_t bytes) {
  if (!adds_at_exit) [[unlikely]]
    begin_thread();
  uncounted += bytes;
  if (uncounted > kCountedTogether || uncounted < -kCountedTogether) add_uncounted();
}

/// Counts the block and throws OverBudget where there is no room for it.
void reserve_block(std::size_t size) {
  namespace budget = ridgeline::budget_detail;
  const auto bytes = static_cast<std::int64_t>(size);
  ridgeline::bytes_of_blocks.fetch_add(bytes, std::memory_order_relaxed);
  const ridgeline::Budget* current = budget::current;
  if (current == nullptr || std::uncaught_exceptions() > 0) return;
  budget::current = nullptr;  // the message is made without a budget
  try {
    current->check_blocks(budget::doing);
  } catch (...) {
    budget::current = current;
    ridgeline::bytes_of_blocks.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
  budget::current = current;
}

}  // namespace

void* operator new(std::size_t size) {
  const bool large = size >= kLargeBlock;
  if (large) [[unlikely]]
    reserve_block(size);
  for (;;) {
    if (void* made = std::malloc(size > 0 ? size : 1)) [[likely]] {
      const auto usable = static_cast<std::int64_t>(malloc_usable_size(made));
      count_small(large ? usable - static_cast<std::int64_t>(size) : usable);
      return made;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      if (large) ridgeline::bytes_of_blocks.fetch_sub(static_cast<std::int64_t>(size), std::memory_order_relaxed);
      throw std::bad_alloc();
    }
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  count_small(-static_cast<std::int64_t>(malloc_usable_size(block)));
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
#endif
