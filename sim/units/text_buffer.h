// Text that is only added to, for files of megabytes: what is added is copied to its end and nothing else is done. A
// text of gigabytes goes to a sink piece by piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ridgeline {

using TextSink = std::function<void(std::string_view)>;

class TextBuffer {
 public:
  explicit TextBuffer(std::size_t expected_bytes = 0) {
    text_.resize(std::max<std::size_t>(expected_bytes, 256) + kClosing);
  }
  /// `sink` gets the text in pieces of about kPiece bytes, and the last one from flush().
  explicit TextBuffer(TextSink sink) : sink_(std::move(sink)) { text_.resize(kPiece); }

  /// The end of the text, where `bytes` more may be written; wrote() says how far they were.
  char* room(std::size_t bytes) {
    if (text_.size() - size_ < bytes + kClosing) make_room(bytes + kClosing);
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

  /// For destructors: never fails. At most kClosing of them without another addition between.
  void close(char c) noexcept { text_[size_++] = c; }
  static constexpr std::size_t kClosing = 64;

  /// Room for a text of about so many bytes; no more than a piece of one that goes to a sink.
  void expect(std::size_t bytes) {
    if (!sink_) (void)room(bytes);
  }
  void flush() {
    if (sink_ && size_ > 0) sink_(std::string_view(text_.data(), std::exchange(size_, 0)));
  }

  /// Bytes that no sink has taken yet.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// What was added last; of a text that is not empty and goes to no sink.
  [[nodiscard]] char back() const { return text_[size_ - 1]; }
  [[nodiscard]] std::string take() && {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  void make_room(std::size_t bytes) {
    flush();
    if (text_.size() - size_ < bytes) text_.resize(std::max(2 * text_.size(), size_ + bytes));
  }

  TextSink sink_;
  std::string text_;  ///< as long as there is room
  std::size_t size_ = 0;
};

}  // namespace ridgeline
