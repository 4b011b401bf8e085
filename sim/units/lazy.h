// A value made when it is first asked for.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

namespace ridgeline {

/// Threads that ask at once wait for the one that makes it; where that one throws, so does its call, and the next call
/// tries again. No call_once: ThreadSanitizer does not follow exceptions through pthread_once.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(const Make& make) const {
    if (!made_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(making_);
      if (!made_.load(std::memory_order_relaxed)) {
        value_.emplace(make());
        made_.store(true, std::memory_order_release);
      }
    }
    return *value_;
  }
  /// Null where nobody has made it.
  [[nodiscard]] const T* known() const { return made_.load(std::memory_order_acquire) ? &*value_ : nullptr; }

 private:
  mutable std::mutex making_;
  mutable std::atomic<bool> made_{false};
  mutable std::optional<T> value_;
};

}  // namespace ridgeline
