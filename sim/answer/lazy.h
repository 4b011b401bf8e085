// A value made when it is first asked for.
#pragma once

#include <mutex>
#include <optional>

namespace ridgeline {

/// Threads that ask at once wait for the one that makes it; where that one throws, so does its call, and the next call
/// tries again.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(const Make& make) const {
    std::call_once(made_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  mutable std::once_flag made_;
  mutable std::optional<T> value_;
};

}  // namespace ridgeline
