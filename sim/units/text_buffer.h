// Text that is only added to, for files of megabytes: what is added is copied to its end and nothing else is done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace ridgeline {

class TextBuffer {
 public:
  explicit TextBuffer(std::size_t expected_bytes = 0) { text_.resize(std::max<std::size_t>(expected_bytes, 256)); }

  /// The end of the text, where `bytes` more may be written; wrote() says how far they were.
  char* room(std::size_t bytes) {
    if (text_.size() - size_ < bytes) text_.resize(std::max(2 * text_.size(), size_ + bytes));
    return text_.data() + size_;
  }
  void wrote(const char* end) { size_ = static_cast<std::size_t>(end - text_.data()); }

  void add(char c) {
    *room(1) = c;
    ++size_;
  }
  void add(std::string_view text) {
    std::memcpy(room(text.size()), text.data(), text.size());
    size_ += text.size();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// What was added last; of a text that is not empty.
  [[nodiscard]] char back() const { return text_[size_ - 1]; }
  [[nodiscard]] std::string take() && {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  std::string text_;  ///< as long as there is room
  std::size_t size_ = 0;
};

}  // namespace ridgeline
