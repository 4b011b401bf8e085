// A list that many programs hold and none changes: copying one copies a pointer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ridgeline {

template <typename T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<T> values)  // NOLINT(google-explicit-constructor): a vector made for one program
      : values_(std::make_shared<std::vector<T>>(std::move(values))), all_(*values_) {}

  /// Other holders keep the list as it was.
  void push_back(const T& value) {
    if (values_ == nullptr) values_ = std::make_shared<std::vector<T>>();
    else if (values_.use_count() > 1) values_ = std::make_shared<std::vector<T>>(*values_);
    values_->push_back(value);
    all_ = *values_;
  }

  const T& operator[](std::size_t index) const { return all_[index]; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] const T* data() const { return all_.data(); }
  [[nodiscard]] const T* begin() const { return all_.data(); }
  [[nodiscard]] const T* end() const { return all_.data() + all_.size(); }
  operator std::span<const T>() const { return all_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  std::shared_ptr<std::vector<T>> values_;
  std::span<const T> all_;  ///< of `values_`
};

}  // namespace ridgeline
